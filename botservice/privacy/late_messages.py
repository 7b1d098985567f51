"""Forgetting messages that were sent before their author was forgotten, and are read only afterwards.

Nobody but a transport can tell what an event that waits holds, or whose it is. As long as one waits that may hold it,
it is noted what was forgotten, and every turn that begins is held against that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, LargeBinary, bindparam, delete, exists, func, literal, select

from botservice.core.messages import Author, Message
from botservice.core.references import Reference
from botservice.people.names import person_name
from botservice.privacy.erasing import Erasure, delete_turns, erase_messages, leave_events
from botservice.privacy.quotes import Quotes
from botservice.privacy.rights import FORGOTTEN, take_note
from botservice.storage.tables.access import access_refusals
from botservice.storage.tables.conditions import TURN_IS_OPEN, TURN_IS_SET_ASIDE
from botservice.storage.tables.conversations import events, turns

_WAITING = (
    select(events.c.received_at)
    .join(turns, turns.c.id == events.c.turn_id)
    .where(TURN_IS_OPEN, turns.c.status == "queued", events.c.raw.is_not(None))
)
_SET_ASIDE = select(events.c.turn_id).join(turns, turns.c.id == events.c.turn_id).where(TURN_IS_SET_ASIDE)
_NOTES = select(access_refusals.c.subject, access_refusals.c.told_at).where(
    access_refusals.c.kind == FORGOTTEN, access_refusals.c.subject.in_(bindparam("names", expanding=True))
)
_BY: Final = "by "  # before a name: what they said themselves, and not what others repeat of it


@dataclass(frozen=True, slots=True)
class LateMessage:
    """A message that is being stored now."""

    event_id: int
    received_at: datetime
    author: Author | None
    references: Sequence[Reference]

    def names(self, context_id: int) -> set[str]:
        """Return the names under which parts of the message may have been forgotten."""
        said = {_BY + name for name in _names_of(context_id, self.author)}
        return said.union(*(_names_in(context_id, each) for each in self.references))


def note_people(connection: Connection, accounts: Collection[Author], but_turn: int | None, now: datetime) -> None:
    """Record that people are forgotten everywhere, if events that name them still wait.

    What names them and was given up is not taken up any more.

    Args:
        but_turn: The turn in which that is asked for; what they say after it is theirs again.
    """
    for account in accounts:
        number = (account.id or "").rpartition(":")[2]  # Slack names the team before it
        if not number:
            continue
        named = _names_number(connection, number)
        delete_turns(connection, connection.execute(_SET_ASIDE.where(named)).scalars().all(), now)
        if _is_any_waiting(connection, but_turn, named):
            _note_author(connection, person_name(account), but_turn, now)


def note_words(
    connection: Connection, context_id: int, words: Author | Collection[str], but_turn: int | None, now: datetime
) -> None:
    """Record what is forgotten in one chat, if events still wait there.

    Args:
        words: Whose words, all of them, or what the platform calls the messages.
    """
    if not _is_any_waiting(connection, but_turn, events.c.context_id == context_id):
        return
    if isinstance(words, Author):
        _note_author(connection, f"{context_id} {person_name(words)}", but_turn, now)
        return
    for each in words:
        take_note(connection, FORGOTTEN, _name_of_message(context_id, each), now)


def read_notes(connection: Connection, context_id: int, heard: Sequence[LateMessage | None]) -> dict[str, datetime]:
    """Return when the names in a message were forgotten."""
    names = {name for each in heard if each is not None for name in each.names(context_id)}
    rows = connection.execute(_NOTES, {"names": sorted(names)}).all() if names else []
    return {row.subject: row.told_at for row in rows}


def erase_returning(
    connection: Connection,
    context_id: int,
    heard: Sequence[LateMessage | None],
    stored: Sequence[Message],
    notes: Mapping[str, datetime],
    now: datetime,
) -> bool:
    """Remove forgotten words from a message that was just stored; return whether there were any.

    What is left of a turn is answered in a new one.
    """
    read = [(each, kept) for each, kept in zip(heard, stored, strict=True) if each is not None]

    def is_gone(each: LateMessage, names: Collection[str]) -> bool:
        return any(name in notes and each.received_at <= notes[name] for name in names)

    own = [(each, kept) for each, kept in read if is_gone(each, [_BY + n for n in _names_of(context_id, each.author)])]
    held = {
        kept.id: [ref.erased() if is_gone(each, _names_in(context_id, ref)) else ref for ref in kept.references]
        for each, kept in read
        if kept.id is not None and any(is_gone(each, _names_in(context_id, ref)) for ref in kept.references)
    }
    if not own and not held:
        return False
    ids = [kept.id for _, kept in own if kept.id is not None]
    erase_messages(connection, Erasure(context_id, ids, Quotes(held=held)), now)
    leave_events(connection, events.c.id.in_([each.event_id for each, _ in own]), now)
    return True


def drop_notes(connection: Connection, now: datetime) -> int:  # noqa: ARG001 - whatever the time
    """Delete these records once no older event waits, and return how many there were."""
    older = exists(_WAITING.where(events.c.received_at <= access_refusals.c.told_at).correlate(access_refusals))
    return connection.execute(delete(access_refusals).where(access_refusals.c.kind == FORGOTTEN, ~older)).rowcount


def _note_author(connection: Connection, name: str, but_turn: int | None, now: datetime) -> None:
    take_note(connection, FORGOTTEN, name, now)
    asked = select(func.min(events.c.received_at)).where(events.c.turn_id == (but_turn or 0))
    take_note(connection, FORGOTTEN, _BY + name, connection.execute(asked).scalar_one() or now)


def _is_any_waiting(connection: Connection, but_turn: int | None, condition: ColumnElement[bool]) -> bool:
    waiting = _WAITING.where(condition, turns.c.id != (but_turn or 0)).limit(1)
    return connection.execute(waiting).first() is not None


def _names_number(connection: Connection, number: str) -> ColumnElement[bool]:
    sought = literal(number.encode(), LargeBinary)
    is_sqlite = connection.dialect.name == "sqlite"
    return (func.instr(events.c.raw, sought) if is_sqlite else func.position(sought.op("IN")(events.c.raw))) > 0


def _names_in(context_id: int, reference: Reference) -> set[str]:
    found = set() if reference.external_id is None else {_name_of_message(context_id, reference.external_id)}
    return found | _names_of(context_id, reference.author)


def _names_of(context_id: int, author: Author | None) -> set[str]:
    name = person_name(author)
    return {name, f"{context_id} {name}"} if name else set()


def _name_of_message(context_id: int, external_id: str) -> str:
    return f"{context_id} #{external_id}"
