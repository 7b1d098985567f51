"""The tools with which an agent reminds people, or itself."""

import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from botservice.agent.tool import Tool
from botservice.conversation.context import AgentContext
from botservice.conversation.reminder import LATEST, LONGEST_TEXT, MAX_WAITING, Reminder, Repeats, read_moment, spell
from botservice.conversation.reminder_queries import (
    NewReminder,
    cancel_reminder,
    count_waiting,
    find_reminder,
    find_time_zone,
    insert_reminder,
    is_scheduled_turn,
    read_waiting,
)
from botservice.conversation.time_zones import find_zone, refuse_zone
from botservice.people.names import transport_of
from botservice.storage.database import Connection

_UTC = ZoneInfo("UTC")
_NO_ZONE = (
    " This is UTC, because the person's time zone is not known: say so, ask for it, and set the reminder again if it "
    "differs."
)


class _ReminderRefused(Exception):
    """A reminder cannot be set as the model asked; the message tells the model why."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """A reminder as the model asked for it.

    Attributes:
        delay: The time from now, or None if none was given.
        key: The same call in the same turn has the same one.
    """

    context: AgentContext
    key: str
    now: datetime
    text: str
    at: str | None
    delay: timedelta | None
    time_zone: str | None
    repeats: Repeats | None
    is_task: bool

    def store(self, connection: Connection) -> str:
        """Store the reminder, unless it is stored already or cannot be, and return what the model is told."""
        known = find_reminder(connection, self.key)  # a call that was cut off is made again
        if known is not None:
            return _tell(known, self.now)
        try:
            return self._store(connection)
        except _ReminderRefused as error:
            return f"Not set: {error}"

    def _store(self, connection: Connection) -> str:
        if not 0 < len(self.text) <= LONGEST_TEXT:
            raise _ReminderRefused(f"the text must have 1 to {LONGEST_TEXT} characters.")
        author = self.context.last_author
        zone = _zone(self.time_zone or find_time_zone(connection, self.context.id, author) or _UTC.key)
        due_at = _due_at(self.at, self.delay, zone, self.now)
        if self.is_task and is_scheduled_turn(connection, self.context.turn_id):
            raise _ReminderRefused(
                "a task that was scheduled schedules no further tasks; say what is left to do instead."
            )
        if self.is_task and self.context.has_several_askers:  # it would run by the right of one of them
            raise _ReminderRefused("several people ask at once; let the one who wants the task ask for it alone.")
        if count_waiting(connection, self.context.id) >= MAX_WAITING:
            raise _ReminderRefused(f"{MAX_WAITING} reminders wait in this chat already; cancel some first.")
        new = NewReminder(
            self.key,
            self.context.id,
            transport_of(self.context.context_keys),
            self.text,
            due_at,
            self.now,
            is_task=self.is_task,
            repeats=self.repeats,
            time_zone=zone.key,
            language=self.context.language,
            author=author,
        )
        told = _tell(insert_reminder(connection, new), self.now)
        depends_on_zone = self.delay is None or self.repeats is not None
        is_guess = depends_on_zone and zone is _UTC and self.time_zone is None
        return told + _NO_ZONE if is_guess else told


class Reminders:
    """Sets, lists and cancels the reminders of a chat."""

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock

    def tools(self) -> Sequence[Tool]:
        """Return the tools."""
        shown = Tool(self.list_reminders, idempotent=True, reads_untrusted=True)  # whose words these were is not known
        return [Tool(self.remind_me, idempotent=True), shown, Tool(self.cancel_reminder, idempotent=True)]

    async def remind_me(  # noqa: PLR0913 - models name what they give
        self,
        context: AgentContext,
        text: str,
        *,
        at: str | None = None,
        in_minutes: float = 0,
        in_hours: float = 0,
        in_days: float = 0,
        time_zone: str | None = None,
        repeats: Literal["daily", "weekdays", "weekly"] | None = None,
        ask_agent: bool = False,
    ) -> str:
        """Send a message to this chat later, once or again and again: a reminder, or something to find out then.

        Give either at, or a time from now. Never guess a time zone: leave it out where the person has not told it.

        Args:
            text: What the chat is told then, in the person's language and addressed to them.
            at: The first time, as an ISO date and time such as 2026-05-01T14:00.
            in_minutes: Minutes from now.
            in_hours: Hours from now.
            in_days: Days from now.
            time_zone: An IANA name, such as Europe/Madrid, if the person told where they are.
            repeats: How often it comes again at that time of day.
            ask_agent: Whether the text is a task that you do then, such as a search; its answer is sent.
        """
        wish = _Wish(
            context,
            _key(context, text, at, in_minutes, in_hours, in_days, time_zone, repeats, ask_agent),
            self._now(context),
            text.strip(),
            at,
            _delay(in_minutes, in_hours, in_days),
            time_zone,
            None if repeats is None else Repeats(repeats),
            ask_agent,
        )
        return await context.storage.write(wish.store, sort_key=(context.id,))

    async def list_reminders(self, context: AgentContext) -> str:
        """List the reminders that wait in this chat, with their numbers."""
        now = self._now(context)
        waiting = await context.storage.read(lambda connection: read_waiting(connection, context.id))
        if not waiting:
            return f"No reminder waits in this chat. It is {now:%Y-%m-%d %H:%M} UTC."
        return "\n".join([*map(describe, waiting), f"It is {now:%Y-%m-%d %H:%M} UTC."])

    async def cancel_reminder(self, context: AgentContext, number: int) -> str:
        """Cancel a reminder of this chat, for good.

        Args:
            number: Its number, as list_reminders gives it.
        """
        now = self._now(context)
        is_gone = await context.storage.write(
            lambda connection: cancel_reminder(connection, context.id, number, now), sort_key=(context.id,)
        )
        return f"Reminder {number} is cancelled." if is_gone else f"No reminder {number} waits in this chat."

    def _now(self, context: AgentContext) -> datetime:
        return context.storage.now() if self._clock is None else self._clock()


def describe(reminder: Reminder) -> str:
    """Return a reminder in a line: its number, when it is due, how often, and what it says."""
    again = f", {reminder.repeats.value}" if reminder.repeats is not None else ""
    task = " (a task for you)" if reminder.is_task else ""
    return f"{reminder.id}: {spell(reminder.due_at, reminder.time_zone)}{again}: {reminder.text}{task}"


def _key(context: AgentContext, *arguments: object) -> str:
    """Return the key of a call: the same call in the same turn is the same reminder."""
    if context.turn_id is None:
        return uuid.uuid4().hex
    digest = hashlib.sha256(json.dumps(arguments).encode()).hexdigest()
    return f"{context.turn_id}:{digest}"


def _delay(minutes: float, hours: float, days: float) -> timedelta | None:
    """Return the delay that the model asked for, or None if it gave none."""
    try:
        delay = timedelta(minutes=minutes, hours=hours, days=days)
    except (OverflowError, ValueError):
        return timedelta.max
    return delay or None


def _zone(name: str) -> ZoneInfo:
    zone = find_zone(name)
    if zone is None:
        raise _ReminderRefused(refuse_zone(name))
    return _UTC if zone.key == _UTC.key else zone


def _due_at(at: str | None, delay: timedelta | None, zone: ZoneInfo, now: datetime) -> datetime:
    """Return when a reminder is due for the first time."""
    if (at is None) == (delay is None):
        raise _ReminderRefused("give either at, or a time from now.")
    moment = read_moment(at, zone) if at is not None else now + min(max(delay or timedelta(), timedelta()), LATEST * 2)
    if moment is None:
        raise _ReminderRefused(f"{at!r} is no ISO date and time, such as 2026-05-01T14:00.")
    if moment > now + LATEST:
        raise _ReminderRefused("that is more than five years from now.")
    if moment <= now:
        raise _ReminderRefused(f"that is past; it is {now.astimezone(zone):%A, %Y-%m-%d %H:%M} ({zone.key}) now.")
    return moment


def _tell(reminder: Reminder, now: datetime) -> str:
    """Return what the model is told of a reminder that is set."""
    zone = find_zone(reminder.time_zone) or _UTC
    again = f", and {reminder.repeats.value} from then on" if reminder.repeats is not None else ""
    wait = _spell_wait(reminder.due_at - now)
    local = reminder.due_at.astimezone(zone)
    return f"Reminder {reminder.id} is set for {local:%A, %Y-%m-%d %H:%M} ({zone.key}), {wait}{again}."


def _spell_wait(wait: timedelta) -> str:
    minutes = max(0, round(wait.total_seconds() / 60))
    days, rest = divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    parts = [f"{count} {name}" for count, name in ((days, "d"), (hours, "h"), (minutes, "min")) if count]
    return f"in {' '.join(parts)}" if parts else "in less than a minute"


REMINDER_TOOLS = tuple(Reminders().tools())
"""Remind, list and cancel, by the clock of the storage."""
