"""Pausing a conversation from the command line."""

import asyncio
from collections.abc import Callable

import pytest

from botservice import AgentContext, Storage
from botservice.conversation.pausing import Pause

Run = Callable[..., tuple[int, str, str]]
CHAT = {"transport": "telegram", "chat_id": "42"}


def pause_of(url: str) -> Pause | None:
    """Make the chat if it is not there, and return its pause."""

    async def read() -> Pause | None:
        async with Storage.open(url) as storage:
            return Pause.of((await AgentContext.get_or_create(storage, CHAT)).metadata)

    return asyncio.run(read())


def test_a_chat_is_paused_for_a_time_and_resumed(run: Run, sqlite_url: str) -> None:
    assert pause_of(sqlite_url) is None
    assert run("contexts", "pause", "telegram:42", "--for", "1h")[1] == "context 1 is paused for 1h\n"
    pause = pause_of(sqlite_url)
    assert pause is not None
    assert pause.until is not None
    assert (pause.until - pause.since).total_seconds() == 3600
    assert not pause.is_told, "the people there do not know of it yet"
    assert run("contexts", "pause", "1")[1] == "context 1 is paused\n"
    assert run("contexts", "resume", "1")[1] == "context 1 is answered again\n"
    assert run("contexts", "resume", "telegram:42")[1] == "context 1 was not paused\n"
    assert pause_of(sqlite_url) is None


def test_a_topic_of_a_chat_that_is_paused_stays_paused_until_the_chat_is_resumed(run: Run, sqlite_url: str) -> None:
    pause_of(sqlite_url)

    async def make_topic() -> None:
        async with Storage.open(sqlite_url) as storage:
            await AgentContext.get_or_create(storage, CHAT | {"thread_id": "7"})

    asyncio.run(make_topic())
    run("contexts", "pause", "telegram:42")
    said = run("contexts", "resume", "telegram:42/7")[1]
    assert said == "context 2 stays paused with its whole chat: resume context 1\n"
    run("contexts", "resume", "1")
    assert run("contexts", "resume", "2")[1] == "context 2 was not paused\n"


def test_a_channel_is_paused_in_whose_threads_alone_people_write(run: Run, sqlite_url: str) -> None:
    channel = {"transport": "slack", "team_id": "T1", "channel_id": "C2"}

    async def is_paused(thread: str) -> bool:
        async with Storage.open(sqlite_url) as storage:
            return (await AgentContext.get_or_create(storage, channel | {"thread_ts": thread})).pause is not None

    assert not asyncio.run(is_paused("1.000001"))
    assert run("contexts", "pause", "slack:T1/C2")[1] == "context 2 is paused\n"
    assert asyncio.run(is_paused("1.000001"))
    assert run("contexts", "resume", "slack:T1/C2")[1] == "context 2 is answered again\n"
    assert not asyncio.run(is_paused("1.000001"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["pause", "telegram:42", "--for", "long"], "--for must be a number with m, h or d"),
        (["pause", "telegram:43"], "nobody has written in telegram:43 yet"),
        (["pause", "slack:T1/C2/1.000001"], "nobody has written in slack:T1/C2/1.000001 yet"),
        (["resume", "slack:T1/C2"], "nobody has written in slack:T1/C2 yet"),
        (["resume", "9"], "there is no context 9"),
        (["pause", "somewhere"], "somewhere"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_remedy(
    run: Run, sqlite_url: str, arguments: list[str], reason: str
) -> None:
    pause_of(sqlite_url)
    code, _, error = run("contexts", *arguments)
    assert code != 0
    assert reason in error
