"""A bot that listens is killed while it decides, and while it answers: it decides at most twice, and answers once."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from crash.served import WarmBot
from crash.watching import rows
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply
from turns.group_scenes import is_of_gate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_DECIDED = "SELECT decision FROM gate_decisions WHERE decision IS NOT NULL ORDER BY turn_id"
GROUP, ANSWER = -1001000000001, "On the third floor."


class Model:
    """Says yes and answers; hangs at one of both as long as it is told to."""

    def __init__(self, hangs_at: str) -> None:
        self.hangs_at = hangs_at
        self.asked: list[str] = []
        self.names: set[tuple[str, str]] = set()
        self._changed = threading.Condition()

    def __call__(self, body: dict[str, Any]) -> Reply:
        kind = "gate" if is_of_gate(body["messages"]) else "agent"
        with self._changed:
            self.asked.append(kind)
            self.names.add((kind, body["model"]))
            self._changed.notify_all()
        return Reply(text="yes" if kind == "gate" else ANSWER, hang_after=0 if kind == self.hangs_at else None)

    def wait(self, *kinds: str) -> None:
        """Return when it was asked for just these."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.asked) >= len(kinds), timeout=60)
            assert self.asked == list(kinds)


def wires(llm: OpenAIApi, api: BotApi, path: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": f"sqlite:///{path}",
        "OPENAI_BASE_URL": llm.base_url,
        "OPENAI_MODEL": "gpt-5.5",
        "GATE_MODEL": "gpt-6-luna",
        "OBSERVE": "off",
        "GROUP_ANSWERS": "listening",
        "TELEGRAM_BOT_TOKEN": api.token,
        "TELEGRAM_API_URL": api.url,
    }


def decisions(path: Path) -> list[tuple[str | None, int]]:
    """Return what was decided, and how often a model was asked for it."""
    with sqlite3.connect(path) as database:
        found = database.execute("SELECT decision, tries FROM gate_decisions ORDER BY turn_id").fetchall()
    database.close()
    return found


def test_killed_between_decision_and_answer_it_answers_once_and_decides_once(tmp_path: Path) -> None:
    model = Model("agent")
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        api.add_group(GROUP)
        with WarmBot(tmp_path, **wires(llm, api, tmp_path / "bot.db")) as bot:
            bot.start()
            api.person_says("Which floor is it?", chat_id=GROUP)
            model.wait("gate", "agent")
            bot.kill()
            model.hangs_at = ""
            bot.start()
            api.wait_until(lambda: api.visible_texts(GROUP) == [ANSWER], timeout=60, what="it is answered")
            assert model.asked == ["gate", "agent", "agent"]
            api.person_says("Thanks, which room?", chat_id=GROUP)
            api.wait_until(lambda: len(api.visible_texts(GROUP)) == 2, timeout=60, what="the next one, too")
    with sqlite3.connect(tmp_path / "bot.db") as database:
        said = database.execute("SELECT text FROM messages ORDER BY position").fetchall()
    database.close()
    assert decisions(tmp_path / "bot.db") == [("yes", 1), ("yes", 1)]
    assert model.names == {("gate", "gpt-6-luna"), ("agent", "gpt-5.5")}
    assert [text for (text,) in said] == ["Which floor is it?", ANSWER, "Thanks, which room?", ANSWER]


def test_killed_while_it_decides_it_asks_once_more_and_then_stays_silent(tmp_path: Path) -> None:
    model = Model("gate")
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        api.add_group(GROUP)
        with WarmBot(tmp_path, **wires(llm, api, tmp_path / "bot.db")) as bot:
            bot.start()
            api.person_says("Which floor is it?", chat_id=GROUP)
            model.wait("gate")
            bot.kill()
            bot.start()
            model.wait("gate", "gate")
            bot.kill()
            model.hangs_at = ""
            bot.start()
            decided = [("failed", 3)]
            api.wait_until(lambda: decisions(tmp_path / "bot.db") == decided, timeout=60, what="it gives up")
            api.person_says(f"@{api.username} which floor?", chat_id=GROUP)
            api.wait_until(lambda: api.visible_texts(GROUP) == [ANSWER], timeout=60, what="who asks is answered")
            assert model.asked == ["gate", "gate", "agent"]


def test_another_replica_answers_what_the_killed_one_had_decided(tmp_path: Path, postgres_url: str) -> None:
    model, folders = Model("agent"), [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        api.add_group(GROUP)
        shared = {**wires(llm, api, tmp_path / "unused.db"), "DATABASE_URL": postgres_url}
        shared["PUBLIC_URL"] = "https://bot.example"
        with WarmBot(folders[0], **shared) as one, WarmBot(folders[1], **shared) as two:
            one.start()
            api.reach_webhooks_at(one.url)
            api.person_says("Which floor is it?", chat_id=GROUP)
            model.wait("gate", "agent")
            two.start()
            api.reach_webhooks_at(two.url)
            model.hangs_at = ""
            one.kill()
            api.wait_until(lambda: api.visible_texts(GROUP) == [ANSWER], timeout=60, what="it is answered")
            assert model.asked == ["gate", "agent", "agent"]
            for number in range(3):  # the limit is 3, over both
                api.person_says(f"Which room has number {number}?", chat_id=GROUP)
                decided = 2 + number
                api.wait_until(
                    lambda decided=decided: len(rows(postgres_url, _DECIDED)) == decided, timeout=60, what="a decision"
                )
            api.wait_until(lambda: len(api.visible_texts(GROUP)) == 3, timeout=60, what="three answers")
    assert [decision for (decision,) in rows(postgres_url, _DECIDED)] == ["yes", "yes", "yes", "limit"]
