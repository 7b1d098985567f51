"""A bot that is killed at any moment loses nothing, and repeats no more than it says it may."""

import itertools
import json
import os
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from crash.served import WarmBot
from standins.bot_api import BotApi
from standins.openai_api import RESPONSES, Ending, OpenAIApi, Reply, ToolUse
from standins.openai_responses import as_chat

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CHATS = 8
KILLS = int(os.environ.get("BOTSERVICE_TEST_KILLS", "6"))
WAITING_PER_CHAT = 2
ANSWERED_SECONDS = 120


def model(body: dict) -> Reply:
    """Look the invoice up and pay it, at once; then answer with its name."""
    last_user = next(message for message in reversed(body["messages"]) if message["role"] == "user")
    invoice = last_user["content"].removeprefix("pay ")
    if body["messages"][-1]["role"] == "tool":
        return Reply(text=f"done {invoice}", delay=0.02)
    calls = [ToolUse("look_up", {"invoice": invoice}), ToolUse("pay", {"invoice": invoice})]
    return Reply(tool_calls=calls, delay=0.02)


class People:
    """Everybody who writes to the bot, and what each has said and seen."""

    def __init__(self, api: BotApi, chats: int) -> None:
        self._api = api
        self._numbers = {chat: itertools.count(1) for chat in range(1000, 1000 + chats)}
        self.said: dict[int, list[str]] = {chat: [] for chat in self._numbers}

    def write(self, seed: random.Random) -> None:
        """Have everybody whose questions are nearly all answered ask the next one."""
        chats = list(self._numbers)
        seed.shuffle(chats)
        for chat in chats:
            answered = len(self.answers(chat))
            while len(self.said[chat]) - answered < WAITING_PER_CHAT:
                invoice = f"{chat}-{next(self._numbers[chat])}"
                self.said[chat].append(invoice)
                self._api.person_says(f"pay {invoice}", chat_id=chat)

    def answers(self, chat: int) -> set[str]:
        return {text.removeprefix("done ") for text in self._api.visible_texts(chat) if text.startswith("done ")}

    def everyone_is_answered(self) -> bool:
        return all(self.answers(chat) >= set(said) for chat, said in self.said.items())


@pytest.mark.parametrize("way_in", ["polling", "webhook"])
def test_kills_lose_nothing_and_repeat_no_more_than_is_allowed(tmp_path: Path, way_in: str) -> None:
    seed = random.Random(f"kills-{way_in}")
    tool_log = tmp_path / "tools.log"
    tool_log.touch()
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        settings = {
            "DATABASE_URL": f"sqlite:///{tmp_path / 'bot.db'}",
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "OPENAI_API": "responses",
            "CRASH_TOOL_LOG": str(tool_log),
        }
        if way_in == "webhook":
            settings |= {"PORT": str(free_port()), "HOST": "127.0.0.1"}
            settings["PUBLIC_URL"] = f"http://127.0.0.1:{settings['PORT']}"
        people = People(api, CHATS)
        with WarmBot(tmp_path, "--app", "crash_bot:service", **settings) as bot:
            for _ in range(KILLS):
                bot.start()
                people.write(seed)
                _wait_for_some_traffic(llm, seed)
                bot.kill()
            bot.start()
            people.write(seed)
            api.wait_until(people.everyone_is_answered, timeout=ANSWERED_SECONDS, what="everyone is answered")
            assert bot.kill() == -9
            assert "database is locked" not in bot.log
        _check_answers(api, people)
        _check_tools(tool_log, people)
        _check_model_calls(llm, people)
        _check_reasoning(llm)
        _check_database(tmp_path / "bot.db", people)


def _wait_for_some_traffic(llm: OpenAIApi, seed: random.Random) -> None:
    """Wait for a random number of model calls: a moment that depends on the work, not on the clock."""
    left = itertools.count(seed.randrange(1, 2 * CHATS), -1)
    llm.wait_for_call(lambda _: next(left) == 1, path=RESPONSES, since=len(llm.journal), timeout=60)


def _check_answers(api: BotApi, people: People) -> None:
    for chat, said in people.said.items():
        seen = [text.removeprefix("done ") for text in api.visible_texts(chat) if text.startswith("done ")]
        first_seen = list(dict.fromkeys(seen))
        assert first_seen == said, f"chat {chat}: every question is answered, in its order"
    again = sum(len(said) for said in _repeated(api, people).values())
    assert again <= KILLS * CHATS
    for chat, repeats in _repeated(api, people).items():
        assert max(Counter(repeats).values(), default=0) <= KILLS, f"chat {chat}"


def _repeated(api: BotApi, people: People) -> dict[int, list[str]]:
    repeated = {}
    for chat in people.said:
        counts = Counter(text for text in api.visible_texts(chat) if text.startswith("done "))
        repeated[chat] = [text for text, count in counts.items() for _ in range(count - 1)]
    return repeated


def _check_tools(tool_log: Path, people: People) -> None:
    runs = Counter(tool_log.read_text().splitlines())
    twice = [line for line, count in runs.items() if line.startswith("pay ") and count > 1]
    assert twice == [], "a call that is not idempotent is never run again"
    looked_up = {line.removeprefix("look_up ") for line in runs if line.startswith("look_up ")}
    assert looked_up == {invoice for said in people.said.values() for invoice in said}
    assert max(runs.values()) <= 1 + KILLS


def _check_model_calls(llm: OpenAIApi, people: People) -> None:
    calls: Counter[str] = Counter()
    for body in map(as_chat, llm.bodies(RESPONSES)):
        last_user = next(message for message in reversed(body["messages"]) if message["role"] == "user")
        calls[last_user["content"].removeprefix("pay ")] += 1
    invoices = [invoice for said in people.said.values() for invoice in said]
    assert set(calls) == set(invoices)
    # Two calls a question, and at most one more for every kill that cut the question's turn off.
    assert sum(calls.values()) <= 2 * len(invoices) + KILLS * CHATS
    assert max(calls.values()) <= 2 + KILLS


def _check_reasoning(llm: OpenAIApi) -> None:
    """Check that every step went back to the model as the model gave it, whichever process went on with it."""
    assert llm.endings(Ending.REFUSED, path=RESPONSES) == []
    for body in llm.bodies(RESPONSES):
        kinds = [item.get("type", "message") for item in body["input"]]
        work = kinds[next((place for place, kind in enumerate(kinds) if kind != "message"), len(kinds)) :]
        assert work in ([], ["reasoning", *["function_call"] * 2, *["function_call_output"] * 2])


def _check_database(path: Path, people: People) -> None:
    with sqlite3.connect(path) as database:
        turns = Counter(row[0] for row in database.execute("SELECT status FROM turns"))
        assert turns == {"done": sum(map(len, people.said.values()))}
        for keys, context_id in database.execute("SELECT context_keys, id FROM contexts").fetchall():
            said = people.said[int(json.loads(keys)["chat_id"])]
            rows = database.execute(
                "SELECT role, text FROM messages WHERE context_id = ? ORDER BY position", (context_id,)
            ).fetchall()
            expected = [
                pair for invoice in said for pair in (("user", f"pay {invoice}"), ("assistant", f"done {invoice}"))
            ]
            assert rows == expected, "the history has every question once, with its answer after it"
        unsent = database.execute("SELECT count(*) FROM deliveries WHERE status = 'failed'").fetchone()[0]
        assert unsent == 0
    database.close()


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
