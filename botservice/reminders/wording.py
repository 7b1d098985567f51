"""What reminders say, in the language of who asked for them."""
# ruff: noqa: RUF001 - ten languages have their own signs

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from botservice.reminders.reminder import Reminder
from botservice.reminders.times import spell

_LATE: Final[Mapping[str, str]] = {
    "en": "This comes late: it was due at {time}.",
    "de": "Das kommt zu spät: Fällig war es um {time}.",
    "es": "Llega tarde: tocaba a las {time}.",
    "fr": "Ceci arrive en retard : c’était prévu pour {time}.",
    "it": "Arriva in ritardo: era previsto per {time}.",
    "pt": "Chega atrasado: estava marcado para {time}.",
    "ru": "Это пришло с опозданием: было назначено на {time}.",
    "ko": "늦게 알려 드립니다. 원래 시각은 {time}였습니다.",
    "ja": "お知らせが遅れました。予定は {time} でした。",
    "zh": "提醒晚了：原定时间是 {time}。",
}


def announce(reminder: Reminder, now: datetime) -> str:
    """Return what the chat is told when a reminder is due, with a remark where it comes late."""
    said = f"⏰ {reminder.text}"
    if not reminder.is_late(now):
        return said
    late = _LATE.get(reminder.language or "en", _LATE["en"])
    return f"{said}\n\n{late.format(time=spell(reminder.due_at, reminder.time_zone))}"


def ask(reminder: Reminder, now: datetime) -> str:
    """Return what the agent is asked when a task is due."""
    asked = spell(reminder.created_at, reminder.time_zone)
    late = f"; it was due at {spell(reminder.due_at, reminder.time_zone)}" if reminder.is_late(now) else ""
    return f"⏰ (scheduled on {asked}{late}) {reminder.text}"


def explain(reminder: Reminder) -> str:
    """Return why a reminder is there, for the record of its turn."""
    who = reminder.author and (reminder.author.name or reminder.author.id)
    again = f", {reminder.repeats.value}" if reminder.repeats is not None else ""
    return (
        f"Reminder {reminder.id} is due: asked for by {who or 'the chat'} on "
        f"{spell(reminder.created_at, reminder.time_zone)}, for {spell(reminder.due_at, reminder.time_zone)}{again}"
    )
