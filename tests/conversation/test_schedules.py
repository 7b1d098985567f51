"""Schedules: what owners have the agent do again and again, by a rule, in the time of a place."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from turns.messenger import Messenger, echo, office

from botservice import AgentContext, Author, InboundMessage
from botservice.commands.standard import standard_commands
from botservice.conversation.reminder_queries import read_schedules, read_waiting
from botservice.conversation.schedule_rules import is_too_often, next_by_rule, read_schedule
from botservice.core.states import TurnStatus
from botservice.people.access_values import AccessRole
from botservice.storage.tables.conversations import reminders
from botservice.texts import LANGUAGES
from botservice.turns.commands import CommandRequest, parse_command
from botservice.turns.turn import Turn

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)  # a Monday
MADRID = "Europe/Madrid"
ANNA = Author("messenger", "7", "anna")


@pytest.mark.parametrize(
    ("written", "rule", "zone", "text"),
    [
        ("every monday 09:00 post the open pull requests", "0 9 * * 1", None, "post the open pull requests"),
        ("every Sunday at 9:05 rest", "5 9 * * 0", None, "rest"),
        ("every day 18:30 x", "30 18 * * *", None, "x"),
        ("daily 18:30 Europe/Madrid say  so\nplease", "30 18 * * *", MADRID, "say  so\nplease"),
        ("every weekday 08:00 x", "0 8 * * 1-5", None, "x"),
        ("every 2 hours look", "0 */2 * * *", None, "look"),
        ("every hour look", "0 * * * *", None, "look"),
        ("every 15 minutes UTC look", "*/15 * * * *", "UTC", "look"),
        ("daily 18:30 CET look", "30 18 * * *", "CET", "look"),
        ("0 9 * * 1-5 look at 9", "0 9 * * 1-5", None, "look at 9"),
        ("0 9 1 jan mon America/Argentina/Buenos_Aires x", "0 9 1 jan mon", "America/Argentina/Buenos_Aires", "x"),
        ("daily 18:30", "30 18 * * *", None, ""),
        ("daily 18:30 Nowhere/Atall x", "30 18 * * *", None, "Nowhere/Atall x"),
    ],
)
def test_what_people_write_becomes_a_rule(written, rule, zone, text):
    wish = read_schedule(written)
    assert (wish.rule, wish.zone and wish.zone.key, wish.text) == (rule, zone, text)


@pytest.mark.parametrize("written", ["and/or", "src/main", "tests/unit", "https://x.org", "TCP/IP", "a/" + "b" * 900])
def test_a_word_with_a_stroke_is_not_taken_for_a_mistyped_zone(written):
    assert read_schedule(f"daily 09:00 {written} look").mistyped_zone is None


@pytest.mark.parametrize(
    "written",
    [
        *("", "every", "every monday", "every monday 25:00 x", "every fortnight 09:00 x", "every 5 hours x"),
        *("every 0 hours x", "every 7 minutes x", "daily x", "* * * * x", "61 9 * * 1 x", "every ٣ hours x"),
        "every " + "9" * 400 + " hours x",
    ],
)
def test_what_is_written_otherwise_is_none(written):
    assert read_schedule(written) is None


def test_a_time_of_a_place_stays_where_its_clocks_are_changed():
    before = datetime(2026, 3, 27, 12, tzinfo=UTC)
    times = [before]
    for _ in range(4):
        times.append(next_by_rule("30 9 * * *", MADRID, times[-1]))
    assert [f"{each:%d %H:%M}" for each in times[1:]] == ["28 08:30", "29 07:30", "30 07:30", "31 07:30"]


def test_a_time_that_is_left_out_comes_all_the_same_and_one_that_comes_twice_counts_once():
    spring = [next_by_rule("30 2 * * *", MADRID, datetime(2026, 3, 28, 12, tzinfo=UTC))]
    spring.append(next_by_rule("30 2 * * *", MADRID, spring[0]))
    assert [f"{each:%d %H:%M}" for each in spring] == ["29 01:00", "30 00:30"]
    autumn = [next_by_rule("30 2 * * *", MADRID, datetime(2026, 10, 24, 12, tzinfo=UTC))]
    autumn.append(next_by_rule("30 2 * * *", MADRID, autumn[0]))
    assert [f"{each:%d}" for each in autumn] == ["25", "26"]


def test_a_rule_comes_every_five_minutes_at_most_or_not_at_all():
    assert is_too_often("* * * * *")
    assert is_too_often("0,3 9 * * *")
    assert not is_too_often("*/5 * * * *")
    assert not is_too_often("0,58 9 * * *")
    # Minutes that come behind those of the next hour, an hour that is next to one other, and the end of a day.
    assert is_too_often("0,5,10,15,20,25,30,35,40,45,50,51,52,53,54,55 * * * *")
    assert is_too_often("0,59 1,3,5,7,9,11,13,15,17,18 * * *")
    assert is_too_often("1,58 0,23 * * *")
    assert next_by_rule("0 0 29 2 1", "UTC", NOON) is not None


@pytest.fixture
async def chat(storage) -> AgentContext:
    return await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "1"})


async def command(context, text, *, role=AccessRole.OWNER, is_private=False, number=1, language="en", now=NOON):
    message = InboundMessage(text, ANNA, is_private=is_private, language=language)
    turn = Turn(number, context.id, TurnStatus.RUNNING, "messenger", 1, now)
    request = CommandRequest(parse_command(text), message, context, turn, None, now, role)
    answer = await standard_commands().answer(request)
    if answer.apply is not None:
        await context.storage.write(answer.apply)
    return answer.text.plain


async def schedules(context):
    return await context.storage.read(lambda connection: read_schedules(connection, context.id))


async def test_owners_make_list_pause_resume_and_delete_schedules(chat):
    said = await command(chat, f"/schedule every monday 09:00 {MADRID} post the open pull requests")
    assert said == "I will do that, for the first time at 2026-05-11 09:00 (Europe/Madrid)."
    await command(chat, "/schedule every 2 hours look", number=2)
    assert (await command(chat, "/schedules")).splitlines()[2:] == [
        "- 1 · 2026-05-11 09:00 (Europe/Madrid) · 0 9 * * 1 · post the open pull requests",
        "- 2 · 2026-05-04 16:00 (Europe/Madrid) · 0 */2 * * * · look",
    ]
    assert "/schedule resume 2" in await command(chat, "/schedule pause 2")
    assert "- 2 · paused · " in await command(chat, "/schedules")
    assert await command(chat, "/schedule resume #2", now=NOON + timedelta(days=1)) == "It goes on: look"
    assert f"{(await schedules(chat))[1].due_at:%d %H}" == "05 14"
    assert await command(chat, "/schedule delete 1") == "Deleted: post the open pull requests"
    assert [each.id for each in await schedules(chat)] == [2]
    assert "There is no schedule 1 here" in await command(chat, "/schedule pause 1")


async def test_in_groups_only_owners_and_alone_everybody_who_has_access(chat):
    for role in (None, AccessRole.MEMBER):
        assert (
            await command(chat, "/schedule daily 9:00 x", role=role) == "In a group, only an owner may make schedules."
        )
        assert "only an owner" in await command(chat, "/schedule delete 1", role=role)
    assert await schedules(chat) == []
    assert "for the first time" in await command(chat, "/schedule daily 9:00 x", role=None, is_private=True)


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/schedule", "Write when, and what I shall do"),
        ("/schedule tomorrow x", "Write when, and what I shall do"),
        ("/schedule daily 09:00", "Write when, and what I shall do"),
        ("/schedule * * * * * x", "too often, or never"),
        ("/schedule 0 0 31 2 * x", "Write when, and what I shall do"),
        ("/schedule daily 09:00 " + "x" * 2001, "at most 2"),
        ("/schedule daily 09:00 Europ/Madrid x", "no time zone Europ/Madrid. Did you mean Europe/Madrid?"),
        ("/schedule daily 09:00 europe/madird x", "no time zone europe/madird. Did you mean Europe/Madrid?"),
        ("/schedule 0 9 * * 1 America/NewYork x", "Did you mean America/New_York?"),
        ("/schedules", "There is no schedule here"),
    ],
)
async def test_what_is_wrong_is_said(chat, text, says):
    assert says in await command(chat, text)
    assert await schedules(chat) == []


@pytest.mark.any_database
async def test_there_may_be_so_many(chat):
    for number in range(50):
        await command(chat, "/schedule daily 09:00 x", number=number)
    assert "Delete one first" in await command(chat, "/schedule daily 09:00 x", number=99)


@pytest.mark.any_database
async def test_a_schedule_is_no_reminder_that_anybody_may_cancel(chat):
    await command(chat, "/schedule daily 09:00 x")
    assert await chat.storage.read(lambda connection: read_waiting(connection, chat.id)) == []
    assert "no reminder 1" in await command(chat, "/reminders cancel 1", role=None)


@pytest.mark.any_database
@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_language_says_it(chat, language):
    said = await command(chat, "/schedule daily 09:00 x", language=language)
    assert "2026-05-05 09:00" in said
    assert " x" in await command(chat, "/schedules", language=language)


class Clock:
    now = NOON

    def __call__(self):
        return self.now


async def test_a_schedule_has_the_agent_do_it_each_time_and_says_when_it_is_late(storage, chat):
    clock = Clock()
    await command(chat, "/schedule every 2 hours look")
    async with office(storage, echo, clock=clock, access=None) as bot:
        clock.now = NOON + timedelta(hours=2, minutes=1)
        await bot.messenger.shows("1", "re: ⏰ (scheduled on 2026-05-04 12:00 UTC) look")
        clock.now = NOON + timedelta(hours=4, minutes=1)
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) == 2)
    clock.now = NOON + timedelta(days=3, minutes=7)  # it was down for days
    async with office(storage, echo, clock=clock) as bot:
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("1", [])) >= 2)
        late, answer = bot.messenger.visible["1"]
        assert late == "This reminder is late. It was due: May 4, 18:00 UTC"
        assert "; it was due at 2026-05-04 18:00 UTC) look" in answer
        clock.now = NOON + timedelta(days=3, hours=2, minutes=1)
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) == 3)
        assert "due at" not in bot.messenger.visible["1"][2]


async def test_a_release_that_knows_no_rules_leaves_schedules_alone(storage, chat):
    """What 1.0.0 asks for is what is due on its transports, which have the names of platforms."""
    await command(chat, "/schedule every 2 hours look")
    query = select(reminders.c.transport, reminders.c.repeats)
    rows = await storage.read(lambda connection: [tuple(row) for row in connection.execute(query)])
    assert rows == [("hooks:messenger", None)]
    assert (await schedules(chat))[0].transport == "messenger"


async def test_a_paused_schedule_does_nothing(storage, chat):
    clock = Clock()
    await command(chat, "/schedule every 2 hours look")
    await command(chat, "/schedule pause 1")
    clock.now = NOON + timedelta(hours=9)
    async with office(storage, echo, clock=clock, messenger=Messenger()) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "re: hello")
