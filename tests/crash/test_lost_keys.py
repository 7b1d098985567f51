"""A lost ENCRYPTION_KEY, or a conversation whose row is broken, silences nobody, and what is wrong is said."""

import json
import sqlite3
import urllib.request

import pytest
from crash.served import ServedBot
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply

pytestmark = pytest.mark.any_database

OLD, NEW = "old key " * 5, "new key " * 5
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf50"
    "0f000386018035c4b6550000000049454e44ae426082"
)
CHATS = range(1000, 1020)


@pytest.fixture
def bot_api():
    with BotApi.running() as api:
        yield api


@pytest.fixture
def model():
    def answer(body):
        last = body["messages"][-1]["content"]
        return Reply(text=f"Seen: {last if isinstance(last, str) else 'a picture'}")

    with OpenAIApi.running(answer) as api:
        yield api


def settings_of(folder, api, model, key):
    return {
        "DATABASE_URL": f"sqlite:///{folder / 'bot.db'}",
        "TELEGRAM_BOT_TOKEN": api.token,
        "TELEGRAM_API_URL": api.url,
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_MODEL": "gpt-5.5",
        **({"ENCRYPTION_KEY": key} if key else {}),
    }


def wait_for_answers(api, chats, text):
    for chat in chats:
        api.wait_until(lambda chat=chat: text in "".join(api.visible_texts(chat)), timeout=60, what=f"chat {chat}")


def readiness(bot):
    with urllib.request.urlopen(f"{bot.url}/readyz", timeout=10) as answer:
        return json.load(answer)


@pytest.mark.parametrize("key", [NEW, None])
def test_chats_with_files_go_on_after_their_key_is_lost(tmp_path, bot_api, model, key):
    with ServedBot(tmp_path, **settings_of(tmp_path, bot_api, model, OLD)) as bot:
        bot.start()
        for chat in CHATS:
            bot_api.person_sends_photo(PNG, chat_id=chat)
        wait_for_answers(bot_api, CHATS, "Seen: a picture")
        assert "warnings" not in readiness(bot)
    with ServedBot(tmp_path, **settings_of(tmp_path, bot_api, model, key)) as bot:
        banner = "".join(bot.start())
        before = len(bot.log)
        for chat in CHATS:
            bot_api.person_says("And now?", chat_id=chat)
        wait_for_answers(bot_api, CHATS, "Seen: And now?")
        assert "some stored files cannot be read" in banner
        assert "encrypt --give-up-unreadable" in banner
        ready = readiness(bot)
        assert ready["ready"] is True
        assert "ENCRYPTION_KEY" in ready["warnings"][0]
        assert bot.log[before:].count("unreadable") <= 2
        assert "Traceback" not in bot.log[before:]
    assert "cannot be read" in json.dumps(model.bodies()[-1]["messages"])


def test_a_chat_whose_row_is_broken_gets_an_apology_and_others_their_answers(tmp_path, bot_api, model):
    settings = settings_of(tmp_path, bot_api, model, None)
    with ServedBot(tmp_path, **settings) as bot:
        bot.start()
        for chat in (1000, 1001):
            bot_api.person_says("Hello", chat_id=chat)
        wait_for_answers(bot_api, (1000, 1001), "Seen: Hello")
    with sqlite3.connect(tmp_path / "bot.db") as database:
        database.execute("UPDATE contexts SET metadata = '{broken' WHERE context_keys LIKE '%1000%'")
    database.close()
    with ServedBot(tmp_path, **settings) as bot:
        bot.start()
        before = len(bot.log)
        for chat in (1000, 1001):
            bot_api.person_says("Again", chat_id=chat)
        wait_for_answers(bot_api, (1001,), "Seen: Again")
        wait_for_answers(bot_api, (1000,), "Sorry, I couldn’t")
        assert "Seen: Again" not in "".join(bot_api.visible_texts(1000))
        assert bot.log[before:].count("unreadable_context") <= 5
        assert readiness(bot)["ready"] is True
