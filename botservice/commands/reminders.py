"""/reminders: listing and cancelling the reminders of a chat."""

import re
from typing import Final

from botservice.commands.command import Command
from botservice.conversation.reminder import Reminder, Repeats, known_zone
from botservice.conversation.reminder_queries import cancel_reminder, read_waiting
from botservice.core.formatted_text import FormattedText, Span
from botservice.core.messages import Button, Moment
from botservice.core.quoting import shortened
from botservice.texts.formatted import below, bulleted, line, words
from botservice.turns.command_parsing import CommandAnswer, CommandRequest

_MOST_BUTTONS: Final = 8
_LONGEST_SHOWN: Final = 200  # characters of each text
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


def _in_short(text: str) -> str:
    return shortened(" ".join(text.split()), _LONGEST_SHOWN)


REMINDERS: Final = Command("reminders", _answer, needs="remind_me")
