"""Every statement about what is kept of people for a while: rights that they used, and that they were forgotten."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, LargeBinary, bindparam, delete, exists, func, literal, select

from botservice.privacy.rights import RIGHTS, Right
from botservice.storage.database import Connection
from botservice.storage.statements import upserting
from botservice.storage.tables.conditions import TURN_IS_OPEN, TURN_IS_QUEUED, TURN_IS_SET_ASIDE
from botservice.storage.tables.conversations import events, turns
from botservice.storage.tables.people import access_refusals

# Rights

FORGOTTEN: Final = "forgotten"
"""The kind of the row of a forgotten person of whom something is still to be read: see `late_messages`."""
_EVERY: Final = timedelta(days=1)
_IS_RIGHT: Final = access_refusals.c.kind.in_(sorted(RIGHTS.values()))
IS_NEEDED: Final = _IS_RIGHT | (access_refusals.c.kind == FORGOTTEN)
"""The rows that are kept of a forgotten person for a while, or they could ask without end, or come back."""

_note = upserting(access_refusals, "kind", "subject")


def may_use(connection: Connection, right: Right, now: datetime) -> bool:
    """Return whether a right was not used within a day."""
    used = select(access_refusals.c.told_at).where(
        access_refusals.c.kind == right.kind,
        access_refusals.c.subject == right.person,
        access_refusals.c.told_at > now - _EVERY,
    )
    return connection.execute(used).first() is None


def use_right(connection: Connection, right: Right, now: datetime) -> None:
    """Note that a person has used a right; that is known for a day."""
    take_note(connection, right.kind, right.person, now)


def take_note(connection: Connection, kind: str, subject: str, now: datetime) -> None:
    """Record when something happened last."""
    connection.execute(_note(connection), {"kind": kind, "subject": subject, "told_at": now})


def forget_rights(connection: Connection, now: datetime) -> int:
    """Delete the records of rights used more than a day ago, and return how many."""
    is_over = access_refusals.c.told_at <= now - _EVERY
    return connection.execute(delete(access_refusals).where(_IS_RIGHT, is_over)).rowcount


# Events that are read after somebody was forgotten

_WAITING = (
    select(events.c.received_at)
    .join(turns, turns.c.id == events.c.turn_id)
    .where(TURN_IS_OPEN, TURN_IS_QUEUED, events.c.raw.is_not(None))
)
_SET_ASIDE = select(events.c.turn_id).join(turns, turns.c.id == events.c.turn_id).where(TURN_IS_SET_ASIDE)
_NOTES = select(access_refusals.c.subject, access_refusals.c.told_at).where(
    access_refusals.c.kind == FORGOTTEN, access_refusals.c.subject.in_(bindparam("names", expanding=True))
)


def read_noted(connection: Connection, names: Collection[str]) -> dict[str, datetime]:
    """Return when names were forgotten."""
    rows = connection.execute(_NOTES, {"names": sorted(names)}).all() if names else []
    return {row.subject: row.told_at for row in rows}


def drop_notes(connection: Connection, now: datetime) -> int:  # noqa: ARG001 - whatever the time
    """Delete these records once no older event waits, and return how many there were."""
    older = exists(_WAITING.where(events.c.received_at <= access_refusals.c.told_at).correlate(access_refusals))
    return connection.execute(delete(access_refusals).where(access_refusals.c.kind == FORGOTTEN, ~older)).rowcount


def set_aside_naming(connection: Connection, number: str) -> list[int]:
    """Return the turns that were given up and whose events name an account."""
    return list(connection.execute(_SET_ASIDE.where(_names(connection, number))).scalars())


def is_naming_one_waiting(connection: Connection, number: str, but_turn: int | None) -> bool:
    """Return whether an event waits that names an account."""
    return _is_any_waiting(connection, _names(connection, number), but_turn)


def is_one_waiting(connection: Connection, context_id: int, but_turn: int | None) -> bool:
    """Return whether an event waits in a chat."""
    return _is_any_waiting(connection, events.c.context_id == context_id, but_turn)


def asked_at(connection: Connection, turn_id: int | None) -> datetime | None:
    """Return when the first event of a turn came."""
    asked = select(func.min(events.c.received_at)).where(events.c.turn_id == (turn_id or 0))
    found: datetime | None = connection.execute(asked).scalar_one()
    return found


def _is_any_waiting(connection: Connection, condition: ColumnElement[bool], but_turn: int | None) -> bool:
    waiting = _WAITING.where(condition, turns.c.id != (but_turn or 0)).limit(1)
    return connection.execute(waiting).first() is not None


def _names(connection: Connection, number: str) -> ColumnElement[bool]:
    sought = literal(number.encode(), LargeBinary)
    is_sqlite = connection.dialect.name == "sqlite"
    return (func.instr(events.c.raw, sought) if is_sqlite else func.position(sought.op("IN")(events.c.raw))) > 0
