"""Questions that people have taken back: nobody is answered, and nothing is tried for ever."""

import asyncio

import pytest
from sqlalchemy import select
from standins.payments import Till, cashier
from standins.slack_api import BOT_USER, Hang, SlackApi

from botservice import Storage
from botservice.storage.tables.conversations import deliveries

DIRECT, CHANNEL = "D0ALICE", "C0GENERAL"
SENTENCE = "Here is one more sentence of the answer. "


async def ended(storage: Storage) -> list[tuple[str, str | None]]:
    """Return what became of every message."""
    query = select(deliveries.c.status, deliveries.c.error).where(deliveries.c.kind == "message")
    return await storage.read(lambda connection: [(row.status, row.error) for row in connection.execute(query)])


async def until_ended(storage: Storage, *expected: tuple[str, str | None]) -> None:
    while sorted(found := await ended(storage)) != sorted(expected):
        assert len(found) <= len(expected), found
        await asyncio.sleep(0.01)


def asks(api: SlackApi, channel: str, text: str = "my pin is 4711, is it safe?", **more: str) -> str:
    return api.person_says(text if channel == DIRECT else f"<@{BOT_USER}> {text}", channel=channel, **more)


@pytest.mark.parametrize("channel", [DIRECT, CHANNEL])
@pytest.mark.parametrize("is_told", [True, False])
async def test_a_question_that_was_deleted_is_not_answered(
    api: SlackApi, bot_on_both, storage: Storage, typist, channel: str, is_told: bool
) -> None:
    async with bot_on_both(api, typist):
        ts = asks(api, channel)
        await api.until(lambda: api.world.statuses)
        event = api.deleted_event(channel, ts)
        if is_told:
            api.send_event(event)
            await api.all_taken()
        typist.write("It is safe.")
        typist.finish()
        await api.until(typist.pieces.empty)
        other = asks(api, channel, "hello")
        typist.write("hi")
        typist.finish()
        await api.until(lambda: "hi" in api.said(channel))
        reason = "its question was deleted" if is_told else "Slack refuses: thread_not_found"
        await until_ended(storage, ("delivered", None), ("failed", reason))
    assert [(post.shown, post.thread_ts) for post in api.bot_posts(channel)] == [("hi", other)]


@pytest.mark.parametrize("channel", [DIRECT, CHANNEL])
async def test_what_has_grown_of_an_answer_goes_with_its_question(
    api: SlackApi, bot_on, sqlite_storage: Storage, typist, channel: str
) -> None:
    async with bot_on(api, typist):
        ts = asks(api, channel)
        typist.write(SENTENCE)
        await api.until(lambda: [each for each in api.world.posts if each.is_streaming])
        api.send_event(api.deleted_event(channel, ts))
        await api.all_taken()
        typist.finish()
        await api.until(lambda: "ok" in api.outcomes("chat.delete"))
        await until_ended(sqlite_storage, ("failed", "its question was deleted"))
    assert api.bot_posts(channel) == []


@pytest.mark.parametrize("channel", [DIRECT, CHANNEL])
async def test_a_deleted_reply_is_not_answered_though_its_thread_is_there(
    api: SlackApi, bot_on, sqlite_storage: Storage, typist, channel: str
) -> None:
    async with bot_on(api, typist):
        thread = asks(api, channel, "hello")
        typist.write("hi")
        typist.finish()
        await api.until(lambda: "hi" in api.said(channel))
        ts = asks(api, channel, thread_ts=thread)
        await api.until(lambda: len(typist.prompts) == 2)
        api.send_event(api.deleted_event(channel, ts))
        await api.all_taken()
        typist.write("It is safe.")
        typist.finish()
        await api.until(typist.pieces.empty)
        await until_ended(sqlite_storage, ("delivered", None), ("failed", "its question was deleted"))
    assert api.said(channel) == ["hi"]


async def test_what_concerns_one_person_is_told_nowhere_where_its_question_is_gone(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        order = api.order(Hang(), "chat.postEphemeral")
        ts = asks(api, CHANNEL, "!memory")
        await api.until(lambda: order.used)
        api.deleted_event(CHANNEL, ts)
        order.release()
        await api.until(lambda: "thread_not_found" in api.outcomes("chat.postEphemeral"))
        await until_ended(sqlite_storage, ("failed", "Slack refuses: thread_not_found"))
    assert api.said(CHANNEL) == api.said() == api.world.whispers == []


async def test_a_question_for_a_word_is_corrected_where_what_was_asked_is_gone(api: SlackApi, bot_on) -> None:
    till = Till()
    async with bot_on(api, cashier(), tools=till.tools):
        ts = asks(api, CHANNEL, "pay her")
        question = (await api.until(lambda: api.bot_posts(CHANNEL)))[0]
        api.send_event(api.deleted_event(CHANNEL, ts))
        await api.until(lambda: not any(block["type"] == "actions" for block in question.blocks))
    assert till.paid == []
