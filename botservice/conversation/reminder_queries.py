"""Every statement of reminders."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, func, select, update

from botservice.conversation.reminder import Reminder, Repeats, next_time
from botservice.conversation.schedule_rules import next_by_rule
from botservice.conversation.time_zones import stored_zone
from botservice.core.messages import Author, storable
from botservice.core.states import ReminderStatus
from botservice.people.names import HOOKS
from botservice.storage.database import Connection
from botservice.storage.postgres_clock import CLOCKS_DIFFER
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conditions import REMINDER_IS_KEPT, REMINDER_IS_WAITING
from botservice.storage.tables.conversations import events, reminders, turns

# Statements are made once: making one again for every call takes SQLAlchemy longer than running it.
_insert = of_each_database(
    lambda insert: insert(reminders).on_conflict_do_nothing(index_elements=["key"]).returning(reminders.c.id)
)
_VALUES = [each.name for each in fields(Reminder) if each.name != "author"]
_COLUMNS = [*(reminders.c[name] for name in _VALUES), *reminders.c["author_platform", "author_id", "author_name"]]
_BY_KEY = select(*_COLUMNS).where(reminders.c.key == bindparam("key"))
_DUE = select(*_COLUMNS).where(
    REMINDER_IS_WAITING,
    reminders.c.due_at <= bindparam("now"),
    reminders.c.transport.in_(bindparam("transports", expanding=True)),
)
_NEXT_DUE = _DUE.where(reminders.c.context_id == bindparam("context")).order_by(reminders.c.due_at, reminders.c.id)
_IN_CONTEXT = and_(reminders.c.context_id == bindparam("context"), REMINDER_IS_WAITING)
_WAITING = select(*_COLUMNS).where(_IN_CONTEXT, reminders.c.rule.is_(None)).order_by(reminders.c.due_at, reminders.c.id)
_COUNT = select(func.count()).select_from(reminders).where(_IN_CONTEXT)
_WAITING_ONE = update(reminders).where(reminders.c.id == bindparam("row"), REMINDER_IS_WAITING)
_AS_READ = _WAITING_ONE.where(reminders.c.due_at == bindparam("was_due_at"))
_MOVE = _AS_READ.values(due_at=bindparam("next_due_at"), fired_at=bindparam("now"))
_FINISH = _AS_READ.values(status=bindparam("became"), fired_at=bindparam("now"), finished_at=bindparam("now"))
_CANCEL = _WAITING_ONE.where(reminders.c.context_id == bindparam("context"), reminders.c.rule.is_(None)).values(
    status=ReminderStatus.CANCELLED.value, finished_at=bindparam("now")
)
_IS_SCHEDULE = and_(reminders.c.context_id == bindparam("context"), reminders.c.rule.is_not(None), REMINDER_IS_KEPT)
_SCHEDULES = select(*_COLUMNS).where(_IS_SCHEDULE).order_by(reminders.c.id)
_CHANGE_SCHEDULE = update(reminders).where(_IS_SCHEDULE, reminders.c.id == bindparam("row"))
_IS_SCHEDULED = (
    select(turns.c.id)
    .outerjoin(events, events.c.turn_id == turns.c.id)
    .where(turns.c.id == bindparam("turn"), turns.c.transport != "api", events.c.id.is_(None))
)
_FIRED_IN_THE_FUTURE = select(*_COLUMNS).where(REMINDER_IS_WAITING, reminders.c.fired_at > bindparam("now"))


@dataclass(frozen=True, slots=True)
class NewReminder:
    """A reminder that is about to be stored.

    Attributes:
        key: Names it for ever: a second one with the same key is the first one again.
    """

    key: str
    context_id: int
    transport: str
    text: str
    due_at: datetime
    created_at: datetime
    is_task: bool = False
    repeats: Repeats | None = None
    time_zone: str = "UTC"
    language: str | None = None
    author: Author | None = None
    rule: str | None = None


def insert_reminder(connection: Connection, new: NewReminder) -> Reminder:
    """Store a reminder and return it; one that is stored already is returned as it is."""
    author = new.author or Author()
    values = {
        "key": new.key,
        "context_id": new.context_id,
        # Releases before 1.1 know no rules: they leave alone what is of no transport of theirs.
        "transport": new.transport if new.rule is None else f"{HOOKS}{new.transport}",
        "rule": new.rule,
        "status": ReminderStatus.WAITING.value,
        "text": storable(new.text),
        "is_task": new.is_task,
        "due_at": new.due_at,
        "starts_at": new.due_at,
        "repeats": new.repeats and new.repeats.value,
        "time_zone": new.time_zone,
        "language": new.language,
        "author_platform": author.platform,
        "author_id": author.id,
        "author_name": author.name,
        "created_at": new.created_at,
    }
    connection.execute(_insert(connection), values)
    return _read(connection.execute(_BY_KEY, {"key": new.key}).one())


def find_reminder(connection: Connection, key: str) -> Reminder | None:
    """Return the reminder with a key, whatever became of it."""
    row = connection.execute(_BY_KEY, {"key": key}).one_or_none()
    return None if row is None else _read(row)


def read_waiting(connection: Connection, context_id: int) -> list[Reminder]:
    """Return the reminders that wait in a context, the next one first."""
    return [_read(row) for row in connection.execute(_WAITING, {"context": context_id})]


def read_schedules(connection: Connection, context_id: int) -> list[Reminder]:
    """Return the schedules of a context, also those that are paused."""
    return [_read(row) for row in connection.execute(_SCHEDULES, {"context": context_id})]


def delete_schedule(connection: Connection, schedule: Reminder, now: datetime) -> None:
    """End a schedule for good."""
    _change_schedule(connection, schedule, status=ReminderStatus.CANCELLED.value, finished_at=now)


def pause_schedule(connection: Connection, schedule: Reminder, now: datetime) -> None:  # noqa: ARG001 - as the others
    """Have a schedule do nothing until it is resumed."""
    _change_schedule(connection, schedule, status=ReminderStatus.PAUSED.value)


def resume_schedule(connection: Connection, schedule: Reminder, now: datetime) -> None:
    """Have a schedule that is paused go on with its next time."""
    due_at = _following(schedule, now)
    if schedule.is_paused and due_at is not None:
        _change_schedule(connection, schedule, status=ReminderStatus.WAITING.value, due_at=due_at)


def _change_schedule(connection: Connection, schedule: Reminder, **values: Any) -> None:
    row = {"context": schedule.context_id, "row": schedule.id}
    connection.execute(_CHANGE_SCHEDULE.values(**values), row)


def count_waiting(connection: Connection, context_id: int) -> int:
    """Return how many reminders wait in a context."""
    return int(connection.execute(_COUNT, {"context": context_id}).scalar_one())


def is_scheduled_turn(connection: Connection, turn_id: int | None) -> bool:
    """Return whether a turn is that of a reminder: nobody's event asked for it, and no program."""
    return turn_id is not None and connection.execute(_IS_SCHEDULED, {"turn": turn_id}).first() is not None


def cancel_reminder(connection: Connection, context_id: int, reminder_id: int, now: datetime) -> bool:
    """Cancel a reminder of a context; return whether it was waiting there."""
    values = {"row": reminder_id, "context": context_id, "now": now}
    return connection.execute(_CANCEL, values).rowcount > 0


def find_time_zone(connection: Connection, context_id: int, author: Author | None) -> str | None:
    """Return the time zone of the newest reminder that a person has asked for in a context by the time of a place."""
    query = (
        select(reminders.c.time_zone)
        .where(reminders.c.context_id == context_id, reminders.c.time_zone != "UTC", _is_by(author or Author()))
        .order_by(reminders.c.id.desc())
        .limit(1)
    )
    found: str | None = connection.execute(query).scalar_one_or_none()
    return found


def find_due(connection: Connection, context_id: int, now: datetime, transports: Collection[str]) -> Reminder | None:
    """Return the reminder of a context that has been due for longest."""
    sought = {"context": context_id, "now": now, "transports": list(transports)}
    row = connection.execute(_NEXT_DUE, sought).first()
    return None if row is None else _read(row)


def take_reminder(connection: Connection, reminder: Reminder, now: datetime) -> bool:
    """Mark a due reminder as done, or move it to its next time; return whether it was still as it was read.

    Times that passed while nobody was there are left out.
    """
    values: dict[str, Any] = {"row": reminder.id, "was_due_at": reminder.due_at, "now": now}
    following = _following(reminder, max(now, reminder.due_at))
    if following is None:
        return connection.execute(_FINISH, {**values, "became": ReminderStatus.DONE.value}).rowcount > 0
    return connection.execute(_MOVE, {**values, "next_due_at": following}).rowcount > 0


def give_up_reminder(connection: Connection, reminder: Reminder, now: datetime) -> None:
    """End a reminder that cannot be sent, also one that would come again."""
    values = {"row": reminder.id, "was_due_at": reminder.due_at, "now": now, "became": ReminderStatus.FAILED.value}
    connection.execute(_FINISH, values)


def mend_schedules(connection: Connection, now: datetime) -> int:
    """Reschedule reminders that a wrong clock fired in the future; return how many."""
    rows = connection.execute(_FIRED_IN_THE_FUTURE, {"now": now + CLOCKS_DIFFER}).all()
    for row in rows:
        following = _following(_read(row), now)
        if following is not None:
            values = {"row": row.id, "was_due_at": row.due_at, "next_due_at": following, "now": now}
            connection.execute(_MOVE, values)
    return len(rows)


def _following(reminder: Reminder, after: datetime) -> datetime | None:
    """Return the first time of a reminder that is later than a moment, or None if it does not come again."""
    if reminder.rule is not None:
        return next_by_rule(reminder.rule, reminder.time_zone, after)
    if reminder.repeats is None:
        return None
    return next_time(reminder.starts_at, reminder.repeats, stored_zone(reminder.time_zone), after)


def _is_by(author: Author) -> ColumnElement[bool]:
    return and_(
        reminders.c.author_platform.is_not_distinct_from(author.platform),
        reminders.c.author_id.is_not_distinct_from(author.id),
    )


def _read(row: Any) -> Reminder:
    author = Author(row.author_platform, row.author_id, row.author_name)
    values = {name: getattr(row, name) for name in _VALUES}
    values |= {
        "repeats": None if row.repeats is None else Repeats(row.repeats),
        "transport": row.transport.removeprefix(HOOKS),
    }
    return Reminder(**values, author=None if author == Author() else author)
