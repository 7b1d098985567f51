"""Shared messages and questions about messages: who said what is known from Slack to the row."""

import asyncio
from typing import Any

import pytest
from people.crowd import find_rows
from sqlalchemy import select, union_all
from standins.slack_api import BOT_USER, SlackApi

from botservice import AgentContext, Author, Message, Storage, ToolCall
from botservice.agent.remembering import remember
from botservice.core.message_references import Reference, ReferenceKind
from botservice.people.facts import Refused
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import contexts, deliveries, turns
from transports.slack.interactions import ASK_CALLBACK, QUESTION_BLOCK, QUESTION_INPUT

MENTION = f"<@{BOT_USER}>"
BOB = Author("slack", "T0001:U0BOB", "Bob")
ALICE = Author("slack", "T0001:U0ALICE")
MARK = "zx81marker"
PATIENCE_SECONDS = 60


def shared(text: str, user: str = "U0BOB", name: str = "Bob", **more: Any) -> dict[str, Any]:
    """Return a shared message as Slack shows it below the one that shares it."""
    return {
        "is_msg_unfurl": True,
        "is_share": True,
        "text": text,
        "fallback": f"[May 4th] {name}: {text}",
        "author_id": user,
        "author_name": name,
        "channel_id": "C0OTHER",
        "ts": "1700000000.000100",
        **more,
    }


async def said(storage: Storage) -> list[Message]:
    """Return what people said, in all conversations."""
    keys = await storage.read(lambda c: list(c.execute(select(contexts.c.context_keys)).scalars()))
    found = [await AgentContext.get_or_create(storage, each) for each in keys]
    every = [message for each in found for message in await each.chat_history.messages()]
    return [each for each in every if each.role == "user"]


async def quiet(storage: Storage) -> None:
    """Wait until no turn is open, and nothing is to be sent."""
    is_open = select(turns.c.id).where(turns.c.status.in_(["queued", "running"]))
    is_owed = select(deliveries.c.id).where(deliveries.c.status.in_(["pending", "attempting"]))
    busy = union_all(is_open, is_owed).limit(1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await storage.read(lambda c: c.execute(busy).first()):  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)


async def test_a_shared_message_is_its_authors_and_goes_with_them(api: SlackApi, bot_on, sqlite_storage) -> None:
    async with bot_on(api) as bot:
        api.person_says("look at this", attachments=[shared(f"the code is {MARK} &amp; so on")])
        await api.until(api.said)
        await quiet(sqlite_storage)
        (kept,) = await said(sqlite_storage)
        text = f"the code is {MARK} & so on"
        assert (kept.text, kept.references) == (
            "look at this",
            (Reference(ReferenceKind.SHARE, BOB, text, "1700000000.000100"),),
        )
        assert f"[shared from Bob: {text}]" in str(bot.llm.prompts[-1])
        given = str(as_values(await read_person(sqlite_storage, ALICE))["messages"])
        assert "[shared: a message of another person]" in given
        assert MARK not in given
        await forget_person(sqlite_storage, BOB)
        assert await find_rows(sqlite_storage, MARK) == []
        (kept,) = await said(sqlite_storage)
        assert kept.full_text == "look at this\n[shared from somebody]"
        api.person_says("and now?")
        await api.until(lambda: "You said: and now?" in api.said())
        assert MARK not in str(bot.llm.prompts[-1])


async def test_a_shared_message_is_no_fact_about_whoever_shares_it(api: SlackApi, bot_on, sqlite_storage) -> None:
    script = [ToolCall("1", "remember", {"text": "I live in Lyon", "topic": "home"}), "well"]
    async with bot_on(api, script, tools=[remember]) as bot:
        api.person_says("remember what he says", attachments=[shared("I live in Lyon")])
        await api.until(lambda: api.said() == ["well"])
    assert Refused.NOT_SAID.value in str(bot.llm.prompts[-1])


async def test_a_shared_answer_of_the_bot_is_not_anybodys(api: SlackApi, bot_on, sqlite_storage) -> None:
    async with bot_on(api):
        api.person_says("is it so?", attachments=[shared("the sky is blue", BOT_USER, "Agent")])
        await api.until(api.said)
    (kept,) = await said(sqlite_storage)
    assert kept.references[0].is_of_assistant
    assert kept.full_text == "is it so?\n[shared from you: the sky is blue]"


async def test_a_question_about_a_message_keeps_whose_it_is(api: SlackApi, bot_on, sqlite_storage) -> None:
    async with bot_on(api) as bot:
        ts = api.person_says(f"The code is {MARK}", channel="C0OTHER", user="U0BOB", deliver=False)
        api.interact(
            "message_action",
            callback_id=ASK_CALLBACK,
            message={"type": "message", "user": "U0BOB", "ts": ts, "text": f"The code is {MARK}"},
            channel={"id": "C0OTHER", "name": "other"},
            response_url=f"{api.base}/response/asked",
        )
        modal = (await api.until(lambda: api.world.modals))[0]
        view = modal | {"state": {"values": {QUESTION_BLOCK: {QUESTION_INPUT: {"value": "Which code?"}}}}}
        api.interact("view_submission", view=view, retries=True)
        await api.until(lambda: api.world.responses)
        await quiet(sqlite_storage)
        (kept,) = await said(sqlite_storage)
        (about,) = kept.references
        assert (kept.text, about.kind, about.author.id) == ("Which code?", ReferenceKind.ABOUT, BOB.id)
        assert (about.text, about.external_id) == (f"The code is {MARK}", ts)
        assert MARK in str(bot.llm.prompts[-1])
        await forget_person(sqlite_storage, BOB)
        (kept,) = await said(sqlite_storage)
        assert kept.full_text == "[about a message of somebody]\nWhich code?"
        assert await find_rows(sqlite_storage, MARK) == []


@pytest.mark.parametrize(
    "odd", [{"author_id": 7}, {"author_id": None, "author_name": ["x"]}, {"ts": {}, "fallback": 5}]
)
async def test_whatever_comes_as_a_shared_message_is_answered(api: SlackApi, bot_on, sqlite_storage, odd) -> None:
    async with bot_on(api):
        api.person_says("hello", attachments=[shared("the sky is blue", **odd), 7, None])
        await api.until(api.said)
    assert (await said(sqlite_storage))[0].text == "hello"


async def test_what_is_shared_in_a_thread_before_the_bot_comes_keeps_whose_it_is(
    api: SlackApi, bot_on, sqlite_storage
) -> None:
    async with bot_on(api):
        root = api.person_says("look", channel="C0GENERAL", user="U0CAROL", deliver=False)
        api.world.find("C0GENERAL", root).attachments = [shared("the launch is on Friday")]
        api.person_says(f"{MENTION} when is it?", channel="C0GENERAL", thread_ts=root)
        await api.until(lambda: api.said("C0GENERAL"))
    first = (await said(sqlite_storage))[0]
    assert (first.text, [each.text for each in first.references]) == ("look", ["the launch is on Friday"])
