"""The texts of reminders, in the language of the person who asked."""

from datetime import datetime
from typing import Final

from botservice.conversation.reminder import Reminder
from botservice.conversation.reminder_times import spell
from botservice.core.formatted_text import FormattedText
from botservice.texts.formatted import say

_TASK: Final = "⏰ (scheduled on "


def announce(reminder: Reminder) -> str:
    """Return what the chat is told when a reminder is due."""
    return f"⏰ {reminder.text}"


def say_late(reminder: Reminder) -> FormattedText:
    """Return the remark below a reminder that comes late: no text of a reminder can hide it."""
    return say("reminders.late", reminder.language, time=spell(reminder.due_at, reminder.time_zone))


def ask(reminder: Reminder, now: datetime) -> str:
    """Return what the agent is asked when a task is due."""
    asked = spell(reminder.created_at, reminder.time_zone)
    late = f"; it was due at {spell(reminder.due_at, reminder.time_zone)}" if reminder.is_late(now) else ""
    return f"{_TASK}{asked}{late}) {reminder.text}"


def holds_task(text: str) -> bool:
    """Return whether a message holds what the agent is asked when a task is due: a model wrote that."""
    return _TASK in text


def explain(reminder: Reminder) -> str:
    """Return why a reminder is there, for the record of its turn."""
    who = reminder.author and (reminder.author.name or reminder.author.id)
    again = f", {reminder.repeats.value}" if reminder.repeats is not None else ""
    return (
        f"Reminder {reminder.id} is due: asked for by {who or 'the chat'} on "
        f"{spell(reminder.created_at, reminder.time_zone)}, for {spell(reminder.due_at, reminder.time_zone)}{again}"
    )
