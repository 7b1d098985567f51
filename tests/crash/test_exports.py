"""Archives of a person's data: one a day, one more before everything is forgotten, and gone once they have arrived."""

import sqlite3

import pytest
from crash.served import ServedBot
from standins.bot_api import BotApi

pytestmark = pytest.mark.any_database
CHAT = 1000


def archives(api):
    return [call for call in api.calls("sendDocument", chat_id=CHAT) if call.files]


def blobs(path):
    with sqlite3.connect(path) as database:
        query = "SELECT count(*) FROM blobs WHERE sha256 NOT IN (SELECT coalesce(system_prompt, '') FROM turns)"
        (count,) = database.execute(query).fetchone()
    database.close()
    return count


def test_an_archive_a_day_arrives_and_is_not_kept(tmp_path):
    path = tmp_path / "bot.db"
    with BotApi.running() as api:
        settings = {"DATABASE_URL": f"sqlite:///{path}", "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
        with ServedBot(tmp_path, **settings) as bot:
            bot.start()
            api.person_says("My dog is called Rex", chat_id=CHAT)
            api.wait_until(lambda: api.visible_texts(CHAT), timeout=60, what="an answer")
            api.person_says("/export", chat_id=CHAT)
            api.wait_until(lambda: len(archives(api)) == 1, timeout=60, what="the archive")
            api.person_says("/export", chat_id=CHAT)
            api.wait_until(lambda: "the next one from" in api.visible_texts(CHAT)[-1], timeout=60, what="a later time")
            assert blobs(path) == 0, "it has arrived, so it is not kept"
            api.person_says("/export last", chat_id=CHAT)
            api.wait_until(lambda: len(archives(api)) == 2, timeout=60, what="one before all is forgotten")
            api.person_says("/export last", chat_id=CHAT)
            api.wait_until(lambda: "the next one from" in api.visible_texts(CHAT)[-1], timeout=60, what="a later time")
            assert len(archives(api)) == 2
            assert "Traceback" not in bot.log
