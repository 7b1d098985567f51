"""A visible stream that was cut off by a kill is replaced by the answer, and not repeated."""

import sqlite3
from pathlib import Path

import pytest
from crash.served import WarmBot
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GROUP = -1001000000001
ANSWER = "Here is one more sentence of the answer, which goes on for a while. " * 20
KILLS = 3


def is_kept(database: Path) -> bool:
    """Return whether it is stored which message grows: until then, a kill may cost a second one."""
    with sqlite3.connect(database, timeout=30) as connection:
        return connection.execute("SELECT count(external_id) FROM deliveries").fetchone() == (1,)


def test_a_growing_message_that_is_cut_off_by_a_kill_becomes_the_answer(tmp_path: Path) -> None:
    calls = []

    def model(body: dict) -> Reply:
        calls.append(body)
        return Reply(text=ANSWER, hang_after=60 if len(calls) <= KILLS else None)

    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        database = tmp_path / "bot.db"
        settings = {
            "DATABASE_URL": f"sqlite:///{database}",
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "OPENAI_MODEL": "gpt-5.5",
        }
        with WarmBot(tmp_path, **settings) as bot:
            for kill in range(1, KILLS + 1):
                bot.start()
                if kill == 1:
                    api.person_says(f"@{api.username} tell me", chat_id=GROUP)
                api.wait_until(lambda kill=kill: len(calls) >= kill, timeout=60, what="the model is asked")
                api.wait_until(lambda: is_kept(database), timeout=60, what="the answer grows")
                assert [text[:100] for text in api.visible_texts(GROUP)] == [ANSWER[:100]]
                assert bot.kill() == -9
            bot.start()
            api.wait_until(
                lambda: [text.strip() for text in api.visible_texts(GROUP)] == [ANSWER.strip()],
                timeout=60,
                what="the answer stands there once",
            )
            bot.kill()
        assert len(api.calls("sendMessage", chat_id=GROUP)) == 1
