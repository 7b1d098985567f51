"""Turns that wait or were set aside, from the command line."""

import asyncio
import json
from collections.abc import Callable

import pytest
from turns.messenger import message, office

from botservice import LLMError, Storage
from botservice.turns.inbox import Inbox

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def backlog(sqlite_url: str) -> None:
    """One turn that was set aside, and one that waits."""

    async def make() -> None:
        async with Storage.open(sqlite_url) as storage:
            async with office(storage, [LLMError("no such\nmodel", is_transient=False)]) as bot:
                await bot.write("first", order=1)
                await bot.messenger.until(lambda: "1" in bot.messenger.visible)
            inbox = Inbox(storage, lambda *_: None)
            for order in range(2, 14):
                await inbox.accept("messenger", [message("next", chat="2", order=order)])

    asyncio.run(make())


@pytest.mark.usefixtures("backlog")
def test_turns_are_listed_with_what_became_of_them(run: Run) -> None:
    code, said, _ = run("turns")
    lines = said.splitlines()
    assert code == 0
    assert len(lines) == 11, "one was set aside, and twelve that wait share ten turns"
    assert lines[0].split()[1] == "waiting"
    assert "messenger" in lines[0]
    assert "chat_id=2" in lines[0]
    assert "3 messages" in lines[9]
    assert "set aside" in lines[10]
    assert lines[10].endswith("'no such\\nmodel'"), "what somebody else wrote moves no cursor"


@pytest.mark.usefixtures("backlog")
def test_turns_are_listed_as_json_with_their_age_and_error(run: Run) -> None:
    listed = [json.loads(line) for line in run("turns", "--json")[1].splitlines()]
    assert [each["status"] for each in listed] == ["waiting"] * 10 + ["set aside"]
    assert listed[-1]["error"] == "no such\nmodel"
    assert listed[-1]["age_seconds"] > 0
    assert listed[-1]["context_keys"] == {"transport": "messenger", "chat_id": "1"}


@pytest.mark.usefixtures("backlog")
def test_all_turns_that_were_set_aside_are_tried_again(run: Run) -> None:
    assert (
        run("turns", "retry", "--all", "--failed-since", "2999-01-01")[1] == "0 turns are tried again by the service\n"
    )
    assert run("turns", "retry", "--all", "--failed-since", "2000-01-01T08:00")[1] == (
        "1 turn is tried again by the service\n"
    )
    assert run("turns", "retry", "--all")[1] == "0 turns are tried again by the service\n"
    statuses = [json.loads(line)["status"] for line in run("turns", "--json")[1].splitlines()]
    assert "set aside" not in statuses


@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name one turn, or give --all"),
        (["1", "--all"], "name one turn, or give --all"),
        (["1", "--failed-since", "2000-01-01"], "--failed-since goes with --all"),
        (["--all", "--failed-since", "yesterday"], "must be a time such as"),
    ],
)
def test_what_cannot_be_meant_is_refused(run: Run, arguments: list[str], told: str) -> None:
    code, _, said = run("turns", "retry", *arguments)
    assert code == 1
    assert told in said


@pytest.mark.usefixtures("backlog")
def test_a_turn_is_tried_again_or_dropped(run: Run) -> None:
    code, said, _ = run("turns", "retry", "1")
    assert (code, said) == (0, "turn 1 is tried again by the service\n")
    assert json.loads(run("turns", "--json")[1].splitlines()[0])["status"] == "running"
    assert run("turns", "drop", "2")[0] == 0
    assert "2" not in [line.split()[0] for line in run("turns")[1].splitlines()]


@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize("command", ["retry", "drop"])
def test_a_turn_that_is_not_there_is_said(run: Run, command: str) -> None:
    code, said, error = run("turns", command, "77")
    assert (code, said) == (1, "")
    assert "there is no turn 77: `botservice turns` lists them" in error


@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize("command", [["turns", "retry"], ["turns", "drop"], ["replay", "1", "--turn"]])
def test_a_number_that_no_turn_can_have_is_refused(run: Run, command: list[str]) -> None:
    code, said, error = run(*command, "9" * 20)
    assert (code, said) == (2, "")
    assert "less than or equal to" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("command", [["worker"], ["serve", "--no-worker"]])
def test_an_sqlite_file_takes_no_worker_of_its_own(run: Run, command: list[str]) -> None:
    code, _, error = run(*command)
    assert code == 1
    assert "needs Postgres" in error
    assert "DATABASE_URL=postgresql://" in error
