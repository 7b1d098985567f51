"""A hundred chats that all write at once, through real wires."""

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from crash.served import WarmBot
from crash.test_kills import free_port
from standins.bot_api import BotApi
from standins.openai_api import RESPONSES, Ending, OpenAIApi, Reply, ToolUse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CHATS = 100
MESSAGES = 2


def answer(body: dict) -> Reply:
    """Answer after 50 ms, as a quick model does."""
    return Reply(text=f"re: {body['messages'][-1]['content']}", delay=0.05)


def test_a_hundred_chats_lose_nothing_and_keep_their_order(tmp_path: Path) -> None:
    with OpenAIApi.running(answer) as llm, BotApi.running() as api:
        port = free_port()
        settings = {
            "DATABASE_URL": f"sqlite:///{tmp_path / 'bot.db'}",
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "OPENAI_MODEL": "gpt-5.5",
            "PORT": str(port),
            "PUBLIC_URL": f"http://127.0.0.1:{port}",
        }
        expected = {chat: [f"m{number} of {chat}" for number in range(MESSAGES)] for chat in range(5000, 5000 + CHATS)}
        with WarmBot(tmp_path, **settings) as bot:
            bot.start()
            for number in range(MESSAGES):
                for chat, said in expected.items():
                    api.person_says(said[number], chat_id=chat)
            for chat in expected:
                api.wait_for_messages(chat, MESSAGES, "re: ", timeout=400)
            log = bot.log
        assert "database is locked" not in log
        assert "ERROR" not in log
        for chat, said in expected.items():
            assert _answers(api, chat) == [f"re: {text}" for text in said], f"chat {chat}: once each, in order"
    assert len(llm.bodies()) == CHATS * MESSAGES
    with sqlite3.connect(tmp_path / "bot.db") as database:
        assert Counter(row[0] for row in database.execute("SELECT status FROM turns")) == {"done": CHATS * MESSAGES}
        names = {
            row[1]: json.loads(row[0])["chat_id"] for row in database.execute("SELECT context_keys, id FROM contexts")
        }
        assert len(names) == CHATS
    database.close()


def use_a_tool(body: dict) -> Reply:
    """Look at the clock before every answer; take so long that all chats are at it at once."""
    calls = () if body["messages"][-1]["role"] == "tool" else [ToolUse("current_time")]
    return Reply(text="" if calls else "re: done", tool_calls=calls, delay=3)


def test_a_hundred_chats_use_tools_at_once_and_no_reasoning_is_lost(tmp_path: Path) -> None:
    with OpenAIApi.running(use_a_tool) as llm, BotApi.running() as api:
        port = free_port()
        settings = {
            "DATABASE_URL": f"sqlite:///{tmp_path / 'bot.db'}",
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "OPENAI_MODEL": "gpt-6.1-sol",
            "OPENAI_API": "responses",
            "PORT": str(port),
            "PUBLIC_URL": f"http://127.0.0.1:{port}",
        }
        chats = range(5000, 5000 + CHATS)
        with WarmBot(tmp_path, **settings) as bot:
            bot.start()
            for chat in chats:
                api.person_says("what time is it?", chat_id=chat)
            api.wait_until(
                lambda: all(_answers(api, chat) for chat in chats), timeout=400, what="every message is answered"
            )
            log = bot.log
        assert "ERROR" not in log
        assert {tuple(_answers(api, chat)) for chat in chats} == {("re: done",)}
    assert len(llm.endings(Ending.COMPLETED, path=RESPONSES)) == len(llm.endings(path=RESPONSES)) == 2 * CHATS
    thought = [[item for item in body["input"] if item.get("type") == "reasoning"] for body in llm.bodies(RESPONSES)]
    assert sorted(len(items) for items in thought) == [0] * CHATS + [1] * CHATS
    returned = [item for items in thought for item in items]
    given = {item["id"]: item for item in llm.seals.given}
    assert [given[item["id"]] for item in returned] == returned, "as it came"
    assert len({item["id"] for item in returned}) == CHATS


def _answers(api: BotApi, chat: int) -> list[str]:
    return [text for text in api.visible_texts(chat) if text.startswith("re: ")]
