"""Replicas on one Postgres that die, hang and wake up again: their chats move, and they write nothing more."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from crash.served import WarmBot
from crash.watching import is_ready, rows, said, settings, wait_for
from standins.bot_api import BotApi
from standins.openai_api import Gate, OpenAIApi, Reply, ToolUse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHAT = 1000


class Model:
    """Holds the first answer back until its gate opens, and gives every other one at once."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.calls = 0

    def __call__(self, body: dict[str, Any]) -> Reply:
        self.calls += 1
        return Reply(text="from the first", wait=self.gate) if self.calls == 1 else Reply(text="from the other")


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("one", "two")]
    for folder in made:
        folder.mkdir()
    return made


def test_the_chats_of_a_killed_replica_are_taken_over_at_once(folders: list[Path], postgres_url: str) -> None:
    model = Model()
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url)
        with WarmBot(folders[0], **wires) as one, WarmBot(folders[1], **wires) as two:
            one.start()
            two.start()
            api.reach_webhooks_at(one.url)
            api.person_says("go", chat_id=CHAT)
            llm.wait_for_call()
            one.kill()
            killed_at = time.monotonic()
            llm.wait_for_call(since=len(llm.journal), timeout=60)
            assert time.monotonic() - killed_at < 15, "far above what it takes, because machines that test are busy"
            api.wait_until(lambda: api.visible_texts(CHAT) == ["from the other"], timeout=60, what="it is answered")
    assert said(postgres_url) == [("user", "go"), ("assistant", "from the other")]


def test_a_replica_that_wakes_up_after_losing_its_chats_writes_nothing(folders: list[Path], postgres_url: str) -> None:
    model = Model()
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url)
        with WarmBot(folders[0], **wires) as one, WarmBot(folders[1], **wires) as two:
            one.start()
            two.start()
            api.reach_webhooks_at(one.url)
            api.person_says("go", chat_id=CHAT)
            llm.wait_for_call()
            os.kill(one.pid, signal.SIGSTOP)
            stopped_at = time.monotonic()
            model.gate.open()  # the answer that it waited for is there when it wakes up
            api.wait_until(lambda: "from the other" in api.visible_texts(CHAT), timeout=60, what="the other answers")
            assert time.monotonic() - stopped_at < 20, "far above what it takes, because machines that test are busy"
            before = rows(postgres_url, "SELECT * FROM turns"), rows(postgres_url, "SELECT * FROM messages")
            os.kill(one.pid, signal.SIGCONT)
            api.reach_webhooks_at(two.url)
            wait_for(lambda: "storage.connection_lost" in one.log or "claim_lost" in one.log)
            wait_for(lambda: is_ready(one))
            assert (rows(postgres_url, "SELECT * FROM turns"), rows(postgres_url, "SELECT * FROM messages")) == before
            assert api.visible_texts(CHAT) == ["from the other"]
            api.reach_webhooks_at(one.url)
            api.person_says("again", chat_id=CHAT)
            api.wait_until(lambda: len(api.visible_texts(CHAT)) == 2, timeout=60, what="it works again")
    assert [role for role, _ in said(postgres_url)] == ["user", "assistant"] * 2


def test_a_replica_that_wakes_up_in_the_middle_of_an_answer_leaves_what_another_one_has_shown(
    folders: list[Path], postgres_url: str
) -> None:
    gate, group, asked = Gate(), -1001, [False]

    def model(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["content"].endswith("go") and not asked[0]:
            asked[0] = True
            return Reply(pieces=["a" * 300, "b" * 300, "c" * 300], chunk_wait=gate, wait_at=2)
        return Reply(text="from the other")

    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url)
        with WarmBot(folders[0], **wires) as one, WarmBot(folders[1], **wires) as two:
            one.start()
            two.start()
            api.reach_webhooks_at(one.url)
            api.person_says(f"@{api.username} go", chat_id=group)
            wait_for(lambda: rows(postgres_url, "SELECT 1 FROM deliveries WHERE external_id IS NOT NULL"))  # it grows
            os.kill(one.pid, signal.SIGSTOP)
            api.wait_until(lambda: api.visible_texts(group) == ["from the other"], timeout=60, what="the other answers")
            gate.open()  # what comes of the answer waits for the one that hangs
            os.kill(one.pid, signal.SIGCONT)
            wait_for(lambda: is_ready(one))
            api.person_says(f"@{api.username} again", chat_id=group)
            api.wait_until(lambda: len(api.visible_texts(group)) == 2, timeout=60, what="it works again")
            assert api.visible_texts(group) == ["from the other"] * 2


def paying(body: dict[str, Any]) -> Reply:
    """Pay, and say what came of it."""
    last = body["messages"][-1]
    return (
        Reply(text=last["content"])
        if last["role"] == "tool"
        else Reply(tool_calls=[ToolUse("pay", {"invoice": last["content"]})])
    )


def test_a_replica_that_wakes_up_in_a_tool_goes_no_further(folders: list[Path], postgres_url: str) -> None:
    log, gate = folders[0] / "tools.log", folders[0] / "gate"
    log.touch()
    os.mkfifo(gate)
    told = []

    def model(body: dict[str, Any]) -> Reply:
        reply = paying(body)
        told.extend([reply.text] if reply.text else [])
        return reply

    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url) | {"CRASH_TOOL_LOG": str(log)}
        one, two = (WarmBot(folder, "--app", "crash_bot:service", **wires) for folder in folders)
        with one, two:
            one.start()
            two.start()
            api.reach_webhooks_at(one.url)
            api.person_says("7", chat_id=CHAT)
            with gate.open("wb"):  # the tool waits there by now
                os.kill(one.pid, signal.SIGSTOP)
                api.wait_until(lambda: api.visible_texts(CHAT), timeout=60, what="the other answers")
                gate.unlink()
            os.kill(one.pid, signal.SIGCONT)
            wait_for(lambda: "storage.connection_lost" in one.log or "claim_lost" in one.log)
            wait_for(lambda: is_ready(one))
            api.person_says("8", chat_id=CHAT)
            api.wait_until(lambda: len(api.visible_texts(CHAT)) == 2, timeout=60, what="it works again")
            first, second = api.visible_texts(CHAT)
    assert "unknown" in first
    assert second == "paid 8"
    assert log.read_text().splitlines() == ["pay 7", "pay 8"]
    assert told == [first, second], "nobody asks a model with what a tool gave whose turn has gone on elsewhere"
    assert said(postgres_url) == [("user", "7"), ("assistant", first), ("user", "8"), ("assistant", "paid 8")]


def test_a_process_that_hangs_keeps_its_file_and_goes_on_where_it_was(tmp_path: Path) -> None:
    model = Model()
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        wires = settings(llm, api, f"sqlite:///{tmp_path / 'bot.db'}")
        with WarmBot(tmp_path, **wires) as one, WarmBot(tmp_path, **wires) as two:
            one.start()
            api.reach_webhooks_at(one.url)
            api.person_says("go", chat_id=CHAT)
            llm.wait_for_call()
            os.kill(one.pid, signal.SIGSTOP)
            with pytest.raises(AssertionError, match=f"another process works on .*its id is {one.pid}"):
                two.start()
            model.gate.open()
            os.kill(one.pid, signal.SIGCONT)
            api.wait_until(lambda: api.visible_texts(CHAT) == ["from the first"], timeout=60, what="it goes on")
            api.person_says("again", chat_id=CHAT)
            api.wait_until(lambda: len(api.visible_texts(CHAT)) == 2, timeout=60, what="it works on")
    assert model.calls == 2


class Web(WarmBot):
    command = ("serve", "--no-worker")


class WorkerProcess(WarmBot):
    command = ("worker",)
    ready_line = "database"


def test_where_too_much_waits_the_platform_delivers_later_and_everyone_is_answered(
    folders: list[Path], postgres_url: str
) -> None:
    chats = range(CHAT, CHAT + 20)
    with OpenAIApi.running(lambda _: "hello") as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url)
        with Web(folders[0], MAX_WAITING="5", **wires) as web, WorkerProcess(folders[1], **wires) as worker:
            web.start()
            api.reach_webhooks_at(web.url)
            for chat in chats:
                api.person_says("hi", chat_id=chat)
            wait_for(lambda: "MAX_WAITING is 5" in web.log)
            assert rows(postgres_url, "SELECT count(*) FROM turns")[0][0] <= 5
            worker.start()
            api.wait_until(
                lambda: all(api.visible_texts(chat) == ["hello"] for chat in chats), timeout=120, what="all answered"
            )
    assert len(said(postgres_url)) == 2 * len(chats)


def test_a_web_process_takes_in_and_a_worker_process_answers(folders: list[Path], postgres_url: str) -> None:
    with OpenAIApi.running(lambda _: "hello") as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url)
        with Web(folders[0], **wires) as web, WorkerProcess(folders[1], **wires) as worker:
            web.start()
            api.reach_webhooks_at(web.url)
            api.person_says("hi", chat_id=CHAT)
            wait_for(lambda: rows(postgres_url, "SELECT status FROM turns") == [("queued",)])
            assert llm.bodies() == []
            worker.start()
            api.wait_until(lambda: api.visible_texts(CHAT) == ["hello"], timeout=60, what="it is answered")
            api.person_says("hi again", chat_id=CHAT)
            api.wait_until(lambda: api.visible_texts(CHAT) == ["hello"] * 2, timeout=60, what="it is answered")
            assert is_ready(web)
            assert worker.kill(signal.SIGTERM) == 0
            assert web.kill(signal.SIGTERM) == 0
