"""The tools with which an agent sets, lists and cancels reminders."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from botservice import AgentContext, Author, ToolCall
from botservice.agent.reminding import REMINDER_TOOLS, Reminders
from botservice.agent.tool_executor import execute
from botservice.conversation.reminder import MAX_WAITING
from botservice.conversation.reminder_queries import read_waiting

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


class Bot:
    """Calls tools as a model does, at a time that stands still."""

    def __init__(self, context: AgentContext) -> None:
        self.context = context
        self.now = NOON
        self.tools = {each.name: each for each in Reminders(lambda: self.now).tools()}

    async def call(self, name: str, **arguments: object) -> str:
        outcome = await execute(self.tools, ToolCall("", name, arguments), self.context)
        assert not outcome.is_error, outcome.text
        return outcome.text

    async def waiting(self):
        return await self.context.storage.read(lambda connection: read_waiting(connection, self.context.id))


@pytest.fixture
async def bot(context: AgentContext) -> Bot:
    await context.chat_history.append_user_message("remind me", author=Author("test", "7", "alice"))
    return Bot(context)


async def test_a_time_from_now_needs_no_place(bot):
    said = await bot.call("remind_me", text="Tea is ready", in_minutes=4)
    assert said == "Reminder 1 is set for Monday, 2026-05-04 12:04 (UTC), in 4 min."
    reminder = (await bot.waiting())[0]
    assert (reminder.due_at, reminder.text, reminder.author.id) == (NOON + timedelta(minutes=4), "Tea is ready", "7")


async def test_the_time_of_a_place_is_that_place_s(bot):
    said = await bot.call("remind_me", text="Call", at="2026-05-05T09:00", time_zone="Europe/Madrid")
    assert said == "Reminder 1 is set for Tuesday, 2026-05-05 09:00 (Europe/Madrid), in 19 h."
    assert (await bot.waiting())[0].due_at == datetime(2026, 5, 5, 7, tzinfo=UTC)


async def test_without_a_place_it_is_utc_and_the_model_is_told_to_say_so(bot):
    said = await bot.call("remind_me", text="Call", at="2026-05-05T09:00")
    assert "(UTC)" in said
    assert "the person's time zone is not known: say so, ask for it" in said


async def test_the_place_that_a_person_told_once_is_remembered_for_that_person(bot):
    await bot.call("remind_me", text="One", at="2026-05-05T09:00", time_zone="Asia/Seoul")
    assert "(Asia/Seoul)" in await bot.call("remind_me", text="Two", at="2026-05-05T09:00")
    await bot.context.chat_history.append_user_message("me too", author=Author("test", "8", "bob"))
    assert "(UTC)" in await bot.call("remind_me", text="Three", at="2026-05-05T09:00")


NOT_SET: list[tuple[dict[str, Any], str]] = [
    ({"text": ""}, "the text must have"),
    ({"text": "x" * 3000, "in_days": 1}, "the text must have"),
    ({"text": "x"}, "either at, or a time from now"),
    ({"text": "x", "at": "2026-05-05T09:00", "in_days": 1}, "either at, or a time from now"),
    ({"text": "x", "at": "tomorrow"}, "no ISO date and time"),
    ({"text": "x", "at": "2026-05-04T11:59"}, "that is past; it is Monday, 2026-05-04 12:00 (UTC) now"),
    ({"text": "x", "in_hours": -1}, "that is past"),
    ({"text": "x", "in_days": 1e300}, "more than five years"),
    ({"text": "x", "in_days": 4000}, "more than five years"),
    ({"text": "x", "in_days": 1, "time_zone": "Mars/Base"}, "no time zone 'Mars/Base'"),
]


async def test_what_cannot_be_set_is_said_to_the_model(bot):
    for arguments, why in NOT_SET:
        said = await bot.call("remind_me", **arguments)
        assert said.startswith("Not set: ")
        assert why in said
    assert await bot.waiting() == []


async def test_the_same_call_of_the_same_turn_is_the_same_reminder(bot):
    bot.context.turn_id = 5
    first = await bot.call("remind_me", text="Call", in_hours=1)
    bot.now += timedelta(hours=2)
    assert (await bot.call("remind_me", text="Call", in_hours=1)).startswith(first.partition(", in")[0])
    bot.context.turn_id = 6
    await bot.call("remind_me", text="Call", in_hours=1)
    assert len(await bot.waiting()) == 2


async def test_a_chat_has_room_for_so_many(bot):
    for number in range(MAX_WAITING):
        await bot.call("remind_me", text=str(number), in_hours=1)
    assert "cancel some first" in await bot.call("remind_me", text="one more", in_hours=1)
    assert "cancelled" in await bot.call("cancel_reminder", number=1)
    assert "is set" in await bot.call("remind_me", text="one more", in_hours=1)


async def test_what_waits_is_listed_with_what_cancels_it(bot, sqlite_storage):
    assert "No reminder waits" in await bot.call("list_reminders")
    await bot.call("remind_me", text="Later", in_days=2, repeats="weekly", ask_agent=True)
    await bot.call("remind_me", text="Sooner", in_days=1)
    assert (await bot.call("list_reminders")).splitlines() == [
        "2: 2026-05-05 12:00 UTC: Sooner",
        "1: 2026-05-06 12:00 UTC, weekly: Later (a task for you)",
        "It is 2026-05-04 12:00 UTC.",
    ]
    other = Bot(await AgentContext.get_or_create(sqlite_storage, {"chat_id": "2"}))
    assert await other.call("cancel_reminder", number=1) == "No reminder 1 waits in this chat."
    assert await bot.call("cancel_reminder", number=1) == "Reminder 1 is cancelled."
    assert await bot.call("cancel_reminder", number=1) == "No reminder 1 waits in this chat."


def test_the_default_agent_s_tools_tell_the_model_what_they_take():
    remind = REMINDER_TOOLS[0].schema["function"]
    assert remind["name"] == "remind_me"
    assert set(remind["parameters"]["properties"]) == {
        "text", "at", "in_minutes", "in_hours", "in_days", "time_zone", "repeats", "ask_agent",
    }  # fmt: skip
    assert remind["parameters"]["required"] == ["text"]
    assert all(each.idempotent for each in REMINDER_TOOLS)
