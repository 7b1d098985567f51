"""Every statement of people's rights: which they used, that they were forgotten, and the archives that they are given.

An archive is kept until it has arrived or something in it is forgotten.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Select,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from botservice.core.errors import TurnGrew
from botservice.core.messages import Author, Message, Role
from botservice.history.queries import select_messages
from botservice.history.rows import read_messages
from botservice.people.identities import Identity
from botservice.people.names import person_name
from botservice.people.queries import find_identity, ids_of, lock_person
from botservice.privacy.account_queries import personas_of, titles_of
from botservice.privacy.record_queries import erase_shown, is_owed
from botservice.privacy.rights import FORGOTTEN, RIGHTS, Right
from botservice.privacy.turn_queries import answers_of, ask_again, turns_brought_by
from botservice.storage.blobs import loosen_files
from botservice.storage.database import Connection
from botservice.storage.statements import is_by, upserting
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conditions import TURN_IS_OPEN, TURN_IS_QUEUED, TURN_IS_SET_ASIDE
from botservice.storage.tables.conversations import contexts, events, messages, turns
from botservice.storage.tables.people import access_refusals, exports, identities, model_usage, person_roles
from botservice.storage.tables.services import feedback
from botservice.storage.tables.waiting import pending_calls

# Notes of people, kept for a while: rights that they used, and that they were forgotten

# Rights

_EVERY: Final = timedelta(days=1)
_IS_RIGHT: Final = access_refusals.c.kind.in_(sorted(RIGHTS.values()))

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


# Events that are read after a person was forgotten

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


# Exports: what is read of a person, and the archives, of which there are a few a day

# Archives

# Upkeep looks every hour: no archive is there for longer than a day.
EXPORT_LASTS: Final = timedelta(hours=20)
_NOT_MADE: Final = ""


def release_export(connection: Connection, turn_id: int) -> bool:
    """Give up the archive of a turn once it has arrived; return whether its bytes are to be swept away."""
    query = select(exports.c.context_id, exports.c.sha256).where(exports.c.turn_id == turn_id)
    row = connection.execute(query).one_or_none()
    if row is None or row.sha256 == _NOT_MADE or is_owed(connection, turn_id):
        return False
    erase_shown(connection, [turn_id])
    connection.execute(update(exports).where(exports.c.turn_id == turn_id).values(sha256=_NOT_MADE))
    loosen_files(connection, row.context_id, [row.sha256])
    return True


def begin_export(
    connection: Connection, turn_id: int, context_id: int, identity: Identity, now: datetime, most: int
) -> datetime | None:
    """Note that a person is about to be given an archive: what is forgotten while it is made takes that back.

    Args:
        turn_id: The turn that asks; it may ask again after a cut.
        most: How many a person may have within `EXPORT_LASTS`.

    Returns:
        When the next one is possible; None where this one is.
    """
    lock_person(connection, identity.person_id)  # who asks in two chats at once gets one
    theirs = exports.c.identity_id.in_(ids_of(identity.person_id))
    query = select(exports.c.made_at).where(theirs, exports.c.turn_id != turn_id).order_by(exports.c.made_at.desc())
    made = connection.execute(query.limit(most)).scalars().all()
    possible_at: datetime = made[-1] + EXPORT_LASTS if len(made) == most else now
    if possible_at > now:
        return possible_at
    connection.execute(delete(exports).where(exports.c.turn_id == turn_id))
    values = {"turn_id": turn_id, "context_id": context_id, "identity_id": identity.id, "sha256": _NOT_MADE}
    connection.execute(insert(exports).values(**values, made_at=now))
    return None


def note_export(connection: Connection, turn_id: int, sha256: str) -> None:
    """Note the archive that is given in a turn.

    Raises:
        TurnGrew: something in it was forgotten while it was made; it is to be made again.
    """
    made = update(exports).where(exports.c.turn_id == turn_id).values(sha256=sha256)
    if not connection.execute(made).rowcount:
        raise TurnGrew(f"something in the archive of turn {turn_id} is forgotten")


def drop_exports(connection: Connection, context_id: int, now: datetime) -> None:
    """Delete the archives that may hold something of a conversation of which something is forgotten."""
    theirs = identities.alias()
    is_there = (messages.c.author_platform == theirs.c.platform) & (messages.c.author_id == theirs.c.platform_id)
    # Of everybody who was given something there, or who wrote there with any account of theirs.
    has_written = (
        select(messages.c.id)
        .select_from(identities)
        .join(theirs, theirs.c.person_id == identities.c.person_id)
        .join(messages, is_there & (messages.c.context_id == context_id))
        .where(identities.c.id == exports.c.identity_id)
    )
    _drop(connection, or_(exports.c.context_id == context_id, has_written.exists()), now)


def drop_exports_of(connection: Connection, person_id: int, now: datetime) -> None:
    """Delete the archives of a person of whom something is forgotten."""
    _drop(connection, exports.c.identity_id.in_(ids_of(person_id)), now)


def drop_old_exports(connection: Connection, now: datetime) -> int:
    """Delete the archives that were there for long enough, and return how many."""
    return _drop(connection, exports.c.made_at < now - EXPORT_LASTS, now)


def _drop(connection: Connection, condition: ColumnElement[bool], now: datetime) -> int:
    """Delete archives, and return how many; one that is still owed to a person is made again, of what is left."""
    rows = connection.execute(select(exports).where(condition).order_by(exports.c.turn_id)).all()
    for row in rows:
        connection.execute(delete(exports).where(exports.c.turn_id == row.turn_id))
        if is_owed(connection, row.turn_id):
            ask_again(connection, row.turn_id, now)
        else:
            erase_shown(connection, [row.turn_id])
        loosen_files(connection, row.context_id, {row.sha256} - {_NOT_MADE})
    return len(rows)


# What is read of a person

_NOT_TEXT: Final = frozenset({"context_id", "author_platform", "author_id", "author_name", "key"})


def read_others(connection: Connection, accounts: Sequence[Author]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table that names its author, such as reminders, and what was used."""

    def rows(query: Select[*tuple[Any, ...]], *which: ColumnElement[bool]) -> list[dict[str, Any]]:
        """Return what a query gives for each of some conditions, as JSON values."""
        found = [row for each in which for row in connection.execute(query.where(each)).mappings()]
        return [{str(name): _json_value(name, value) for name, value in row.items()} for row in found]

    found: dict[str, list[dict[str, Any]]] = {}
    for table in metadata.sorted_tables:
        if table is not messages and {"author_platform", "author_id"} <= set(table.c.keys()):
            told = select(*(column for column in table.c if column.name not in _NOT_TEXT))
            found[table.name] = rows(told, *(is_by(table, each) for each in accounts))
    is_given = [(feedback.c.platform == each.platform) & (feedback.c.person_id == each.id) for each in accounts]
    found["feedback"] = rows(select(feedback.c.verdict, feedback.c.created_at), *is_given)
    names = [person_name(each) for each in accounts]
    found["personas"] = [{"text": text} for name in names for text in personas_of(connection, name)]
    known = [identity for each in accounts if (identity := find_identity(connection, each)) is not None]
    found["titles"] = [{"text": title} for each in known for title in titles_of(connection, each.id)]
    given = select(*person_roles.c["role", "granted_at"])
    found["roles"] = rows(given, *(person_roles.c.identity_id == each.id for each in known))
    used = select(*model_usage.c["day", "model", "calls", "input_tokens", "output_tokens"])
    found["usage"] = rows(used.order_by(model_usage.c.day), model_usage.c.person.in_(names))
    return {name: values for name, values in found.items() if values}


def _json_value(name: str, value: Any) -> Any:
    if name == pending_calls.c.question.name and value is not None:  # without the state, which only its server reads
        return {key: each for key, each in json.loads(value).items() if key != "state"}
    return value.isoformat() if isinstance(value, datetime) else value


def read_said(
    connection: Connection, context_id: int, accounts: Collection[tuple[str | None, str | None]]
) -> tuple[Mapping[str, str], list[Message], bool]:
    """Return the keys of a chat, a person's part of its messages, oldest first, and whether that is all of them."""
    keys = connection.execute(select(contexts.c.context_keys).where(contexts.c.id == context_id)).scalar_one()
    rows = connection.execute(select_messages(context_id).order_by(messages.c.position)).all()
    of_people = [row for row in rows if row.role == Role.USER]
    theirs = {row.id for row in of_people if (row.author_platform, row.author_id) in accounts}
    is_alone = len(theirs) == len(of_people)
    if not is_alone:
        theirs.update(answers_of(connection, context_id, turns_brought_by(connection, theirs)))
        rows = [row for row in rows if row.id in theirs]
    return keys, read_messages(connection, context_id, rows), is_alone
