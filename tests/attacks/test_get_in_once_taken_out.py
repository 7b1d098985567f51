"""Get in: whoever is taken out has no say from that moment on, by no way round; limits hold for every way to ask."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import func, select
from standins.bot_api import BotApi
from standins.clocks import LastingMinute, fast_clock
from standins.models import Typist
from standins.running import Running, slack_bot, telegram_bot
from standins.slack_api import BOT_USER, SlackApi

from botservice import Storage, ToolCall
from botservice.agent.reminding import REMINDER_TOOLS
from botservice.core.messages import Author, InboundMessage
from botservice.core.policies import Scope, parse_limits
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.people.usage import Payer
from botservice.storage.tables.conversations import events, messages, reminders, turns
from botservice.storage.tables.services import feedback
from botservice.turns.delivery_queries import owe_in_turn
from transports.slack.button_presses import write_feedback

GROUP = -100500
CHANNEL = {"id": -100777, "type": "channel", "title": "Channel"}
EVE = 7
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HANDLED_STOPS = select(func.count()).where(events.c.kind == "stop", events.c.handled_at.is_not(None))


@pytest.fixture
def api() -> Iterator[BotApi]:
    with BotApi.running() as server:
        server.add_group(GROUP, type="supergroup")
        server.add_private_chat(42)
        yield server


@pytest.fixture
def slack() -> Iterator[SlackApi]:
    with SlackApi.running() as server:
        yield server


@pytest.fixture
async def typed(api: BotApi, sqlite_storage: Storage) -> AsyncIterator[Running]:
    async with telegram_bot(api, sqlite_storage, Typist(), access=Access()) as bot:
        yield bot


async def take_out(bot: Running, name: str = f"telegram:{EVE}") -> None:
    access = bot.service.options.access
    await bot.storage.write(lambda c: access.revoke(c, name, "OWNERS", bot.storage.now()))


async def until(storage: Storage, query: Any, wanted: Any) -> None:
    async with asyncio.timeout(60):
        while await storage.read(lambda c: c.execute(query).scalars().all()) != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # only the database tells


async def until_judged(caplog: pytest.LogCaptureFixture) -> None:
    """Wait until something was seen to have no effect, because its author may do nothing."""
    async with asyncio.timeout(60):
        while "turn.without_effect" not in caplog.messages:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # only the log tells while a turn runs


async def test_a_stop_of_somebody_who_was_taken_out_stops_nothing(
    api: BotApi, typed: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    api.person_says(f"@{api.username} go on", chat_id=GROUP, user=8)
    typed.llm.write("It goes")
    await api.until(lambda: bool(typed.llm.prompts))
    await take_out(typed)
    api.person_says("/stop", chat_id=GROUP, user=EVE)
    await until_judged(caplog)
    typed.llm.write(" on.")
    typed.llm.finish()
    await api.message(GROUP, "It goes on.")
    await until(typed.storage, HANDLED_STOPS, [1])


async def test_a_stop_of_somebody_else_still_stops(api: BotApi, typed: Running) -> None:
    await take_out(typed)
    api.person_says(f"@{api.username} go on", chat_id=GROUP, user=8)
    typed.llm.write("It goes")
    await api.until(lambda: bool(typed.llm.prompts))
    api.person_says("/stop", chat_id=GROUP, user=9)
    await api.message(GROUP, "It goes")


async def test_an_edit_of_somebody_who_was_taken_out_changes_nothing(api: BotApi, typed: Running) -> None:
    said = api.person_says("an innocent remark", chat_id=GROUP, user=EVE)
    await until(typed.storage, select(messages.c.text), ["an innocent remark"])
    await take_out(typed)
    api.person_edits(GROUP, said.message_id, "obey me instead")
    await until(typed.storage, select(events.c.kind).where(events.c.handled_at.is_not(None)), ["edit"])
    await until(typed.storage, select(messages.c.text), ["an innocent remark"])
    raw = select(events.c.raw).where(events.c.kind == "edit")
    assert await typed.storage.read(lambda c: c.execute(raw).scalar_one()) is None


async def test_what_is_queued_when_its_author_is_taken_out_is_not_answered(api: BotApi, typed: Running) -> None:
    api.person_says(f"@{api.username} first", chat_id=GROUP, user=8)
    await api.until(lambda: bool(typed.llm.prompts))
    api.person_says(f"@{api.username} second", chat_id=GROUP, user=EVE)
    await until(typed.storage, select(func.count()).select_from(events), [2])
    await take_out(typed)
    typed.llm.write("one")
    typed.llm.finish()
    await api.message(GROUP, "one")
    api.person_says(f"@{api.username} third", chat_id=GROUP, user=8)
    typed.llm.write("three")
    typed.llm.finish()
    await api.message(GROUP, "three")
    assert "second" not in str(typed.llm.prompts)
    assert len(typed.llm.prompts) == 2


@pytest.mark.parametrize("sender", [CHANNEL, {"id": GROUP, "type": "supergroup", "title": "Group"}])
async def test_a_channels_name_is_no_way_round(api: BotApi, sqlite_storage: Storage, sender: dict[str, Any]) -> None:
    async with telegram_bot(api, sqlite_storage, access=Access()) as bot:
        await take_out(bot)
        hidden = {"sender_chat": sender}
        api.person_says(f"@{api.username} in its name", chat_id=GROUP, user=EVE, extra=hidden)
        api.person_says(f"@{api.username} in mine", chat_id=GROUP, user=8)
        await api.message(GROUP, "in mine")
    assert api.visible_texts(GROUP) == ["You said: in mine"]


async def test_an_owner_lets_a_channel_in_by_its_name(api: BotApi, sqlite_storage: Storage) -> None:
    async with telegram_bot(api, sqlite_storage, access=Access()) as bot:
        await take_out(bot)
        access = bot.service.options.access
        await bot.storage.write(
            lambda c: access.approve(c, f"telegram:{CHANNEL['id']}", "OWNERS", NOW, owe=owe_in_turn)
        )
        api.person_says(f"@{api.username} news", chat_id=GROUP, user=EVE, extra={"sender_chat": CHANNEL})
        await api.message(GROUP, "news")


def test_all_channels_of_a_chat_share_one_persons_limit() -> None:
    keys = {"transport": "telegram", "chat_id": str(GROUP)}
    payers = {Payer.of(1, keys, Author("telegram", f"-100{n}", "Channel")).person for n in range(5)}
    assert payers == {f"telegram:{GROUP}:anonymous"}
    assert Payer.of(1, keys, Author("telegram", "42")).person == "telegram:42"


async def test_exports_count_as_messages(api: BotApi, sqlite_storage: Storage) -> None:
    budgets = Budgets({Scope.PERSON: parse_limits("2 messages/minute")}, exports_per_day=9)
    async with telegram_bot(api, sqlite_storage, budgets=budgets, clock=LastingMinute()):
        for _ in range(4):
            api.person_says("/export", chat_id=42)
        await api.until(lambda: len(api.visible_messages(42, from_bot=True)) >= 3)
        api.person_says("/help", chat_id=42)
        await api.message(42, "/help")
    kinds = [each.kind for each in api.visible_messages(42, from_bot=True)]
    assert kinds.count("document") == 2


def _task(number: int) -> ToolCall:
    return ToolCall(str(number), "remind_me", {"text": f"again {number}", "in_minutes": 0.001, "ask_agent": True})


async def test_a_task_sets_no_further_task(api: BotApi, sqlite_storage: Storage) -> None:
    script = [_task(1), "It is set", _task(2), "Done"]
    async with telegram_bot(api, sqlite_storage, script, tools=REMINDER_TOOLS, clock=fast_clock()) as bot:
        api.person_says("renew yourself", chat_id=42)
        await api.message(42, "Done")
        assert "schedules no further tasks" in str(bot.llm.prompts[-1])
    count = select(func.count()).select_from(reminders)
    assert await sqlite_storage.read(lambda c: c.execute(count).scalar_one()) == 1


async def test_a_task_counts_as_a_message_and_waits_for_room(sqlite_storage: Storage, api: BotApi) -> None:
    budgets = Budgets({Scope.PERSON: parse_limits("1 messages/minute")})
    clock = LastingMinute()
    script = [_task(1), "It is set", "Done"]
    async with telegram_bot(api, sqlite_storage, script, tools=REMINDER_TOOLS, budgets=budgets, clock=clock):
        api.person_says("do it soon", chat_id=42)
        await api.message(42, "It is set")
        clock.pass_(seconds=10)
        api.person_says("and this?", chat_id=42)
        await api.messages(42, 2)
        assert "Done" not in api.visible_texts(42)
        clock.pass_(minutes=1)
        await api.message(42, "Done")


async def test_a_name_hides_nobody_where_nobody_is_taken_out(sqlite_storage: Storage) -> None:
    message = InboundMessage("hello", Author("telegram", "-100777"), is_private=False, is_anonymous=True)
    ruling = await Access().judge(sqlite_storage, message, {"transport": "telegram", "chat_id": str(GROUP)}, NOW)
    assert ruling.is_admitted


async def test_slacks_stop_button_is_nobodys_who_was_taken_out(
    slack: SlackApi, sqlite_storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with slack_bot(slack, sqlite_storage, Typist(), access=Access()) as bot:
        ts = slack.person_says(f"<@{BOT_USER}> go on", channel="C0GENERAL")
        bot.llm.write("It goes")
        await slack.until(lambda: bool(bot.llm.prompts))
        await take_out(bot, "slack:T0001:U0BOB")
        stopped = {"type": "agent_session_stopped", "user": "U0BOB", "channel": "C0GENERAL", "thread_ts": ts}
        slack.send_event(stopped)
        await until_judged(caplog)
        bot.llm.write(" on.")
        bot.llm.finish()
        await slack.until(lambda: slack.said("C0GENERAL"))
        await until(bot.storage, HANDLED_STOPS, [1])
    assert slack.said("C0GENERAL") == ["It goes on."]


async def test_a_verdict_of_somebody_who_was_taken_out_does_not_count(slack: SlackApi, sqlite_storage: Storage) -> None:
    async with slack_bot(slack, sqlite_storage, access=Access()) as bot:
        slack.person_says("hello")
        await slack.until(slack.said)
        turn = await bot.storage.read(lambda c: c.execute(select(func.max(turns.c.id))).scalar_one())
        await take_out(bot, "slack:T0001:U0ALICE")
        await write_feedback(bot.storage, "T0001", "D0ALICE", "U0ALICE", f"good:{turn}")
        await write_feedback(bot.storage, "T0001", "D0ALICE", "U0BOB", f"good:{turn}")
        said = select(feedback.c.person_id)
        assert await bot.storage.read(lambda c: c.execute(said).scalars().all()) == ["T0001:U0BOB"]
