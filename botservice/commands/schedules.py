"""/reminders, /schedule and /schedules: what the agent is to say or do later, once or by a rule."""

import re
from typing import Final

from botservice.commands.command import Command
from botservice.conversation.reminder import LONGEST_TEXT, MAX_WAITING, Reminder, Repeats, spell
from botservice.conversation.reminder_queries import (
    NewReminder,
    cancel_reminder,
    count_waiting,
    delete_schedule,
    find_time_zone,
    insert_reminder,
    pause_schedule,
    read_schedules,
    read_waiting,
    resume_schedule,
)
from botservice.conversation.schedule_rules import ScheduleWish, is_too_often, next_by_rule, read_schedule
from botservice.conversation.time_zones import known_zone
from botservice.core.formatted_text import FormattedText, Span
from botservice.core.messages import Button, Moment
from botservice.core.quoting import shortened
from botservice.people.access_values import AccessRole
from botservice.people.names import transport_of
from botservice.texts.formatted import below, bulleted, line, words
from botservice.turns.commands import CommandAnswer, CommandRequest

_LONGEST_SHOWN: Final = 200  # characters of each text
_CHANGE: Final = re.compile(r"(delete|pause|resume)\s+#?(\d{1,18})", re.IGNORECASE)
_CHANGES: Final = {
    "delete": (delete_schedule, "schedule.deleted"),
    "pause": (pause_schedule, "schedule.paused"),
    "resume": (resume_schedule, "schedule.resumed"),
}


async def _schedule(request: CommandRequest) -> CommandAnswer:
    if not request.message.is_private and request.role is not AccessRole.OWNER:
        return CommandAnswer(request.say("schedule.for_owners"))
    change = _CHANGE.fullmatch(request.call.arguments.strip())
    if change is not None:
        return await _change(request, change[1].lower(), int(change[2]))
    wish = read_schedule(request.call.arguments)
    if wish is None or not wish.text:
        return CommandAnswer(request.say("schedule.how"))
    if wish.mistyped_zone is not None:
        name, nearest = wish.mistyped_zone
        return CommandAnswer(request.say("schedule.no_zone", name=name, nearest=nearest))
    return await _make(request, wish)


async def _make(request: CommandRequest, wish: ScheduleWish) -> CommandAnswer:
    context, author, now = request.context, request.message.author, request.now
    zone, waiting = await context.storage.read(
        lambda connection: (find_time_zone(connection, context.id, author), count_waiting(connection, context.id))
    )
    name = wish.zone.key if wish.zone is not None else zone or "UTC"
    due_at = next_by_rule(wish.rule, name, now)
    if due_at is None or is_too_often(wish.rule):
        return CommandAnswer(request.say("schedule.too_often"))
    if len(wish.text) > LONGEST_TEXT:
        return CommandAnswer(request.say("schedule.too_long", limit=LONGEST_TEXT))
    if waiting >= MAX_WAITING:
        return CommandAnswer(request.say("schedule.too_many", limit=MAX_WAITING))
    new = NewReminder(
        f"schedule:{request.turn.id}",
        context.id,
        transport_of(context.context_keys),
        wish.text,
        due_at,
        now,
        is_task=True,
        rule=wish.rule,
        time_zone=name,
        language=context.language,
        author=author,
    )
    time = spell(due_at, name)
    return CommandAnswer(
        request.say("schedule.set", time=time),
        apply=lambda connection: insert_reminder(connection, new),
        moments=(Moment(time, due_at),),
    )


async def _change(request: CommandRequest, what: str, number: int) -> CommandAnswer:
    found = next((each for each in await _read(request) if each.id == number), None)
    if found is None:
        return CommandAnswer(request.say("schedule.unknown", number=number))
    apply, key = _CHANGES[what]
    return CommandAnswer(
        request.say(key, number=number, text=_in_short(found.text)),
        apply=lambda connection: apply(connection, found, request.now),
    )


async def _schedules(request: CommandRequest) -> CommandAnswer:
    found = await _read(request)
    if not found:
        return CommandAnswer(below(request.say("schedules.none"), request.say("schedule.how")))
    lines = []
    for each in found:
        when = request.label("schedules.paused") if each.is_paused else spell(each.due_at, each.time_zone)
        lines.append(line(Span(str(each.id), bold=True), f" · {when} · {each.rule} · ", words(_in_short(each.text))))
    moments = [Moment(spell(each.due_at, each.time_zone), each.due_at) for each in found if not each.is_paused]
    return CommandAnswer(below(request.say("schedules.list"), bulleted(lines)), moments=tuple(moments))


async def _read(request: CommandRequest) -> list[Reminder]:
    return await request.context.storage.read(lambda connection: read_schedules(connection, request.context.id))


def _in_short(text: str) -> str:
    return shortened(" ".join(text.split()), _LONGEST_SHOWN)


SCHEDULE: Final = Command("schedule", _schedule)
SCHEDULES: Final = Command("schedules", _schedules)


_MOST_BUTTONS: Final = 8
_CANCEL: Final = re.compile(r"cancel\s+#?(\d{1,18})", re.IGNORECASE)
_REPEATS: Final = {
    Repeats.DAILY: "reminders.daily",
    Repeats.WEEKDAYS: "reminders.weekdays",
    Repeats.WEEKLY: "reminders.weekly",
}


async def _answer(request: CommandRequest) -> CommandAnswer:
    context_id = request.context.id
    waiting = await request.context.storage.read(lambda connection: read_waiting(connection, context_id))
    wanted = _CANCEL.fullmatch(request.call.arguments)
    if wanted is not None:
        return _cancel(request, waiting, int(wanted[1]))
    if not waiting:
        return CommandAnswer(request.say("reminders.none" if request.has_tool("remind_me") else "reminders.empty"))
    lines = [_line(each, request) for each in waiting]
    buttons = [
        Button(request.label("reminders.cancel_button", number=each.id), f"/{REMINDERS.name} cancel {each.id}")
        for each in waiting[:_MOST_BUTTONS]
    ]
    text = below(request.say("reminders.list"), bulleted(lines))
    moments = [Moment(_due(each, request).text, each.due_at) for each in waiting]
    return CommandAnswer(text, tuple(buttons), moments=tuple(moments))


def _cancel(request: CommandRequest, waiting: list[Reminder], number: int) -> CommandAnswer:
    found = next((each for each in waiting if each.id == number), None)
    if found is None:
        return CommandAnswer(request.say("reminders.unknown", number=number))
    return CommandAnswer(
        request.say("reminders.cancelled", text=_in_short(found.text)),
        apply=lambda connection: cancel_reminder(connection, request.context.id, number, request.now),
    )


def _line(reminder: Reminder, request: CommandRequest) -> FormattedText:
    again = "" if reminder.repeats is None else ", " + request.label(_REPEATS[reminder.repeats])
    due = _due(reminder, request)
    return line(Span(str(reminder.id), bold=True), " · ", due, f"{again} · ", words(_in_short(reminder.text)))


def _due(reminder: Reminder, request: CommandRequest) -> Span:
    return request.say_time(reminder.due_at, known_zone(reminder.time_zone))


REMINDERS: Final = Command("reminders", _answer, needs="remind_me")
