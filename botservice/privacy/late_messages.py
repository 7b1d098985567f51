"""Forgetting messages that were sent before their author was forgotten, and are read only afterwards.

Nobody but a transport can tell what an event that waits holds, or whose it is. As long as one waits that may hold it,
it is noted what was forgotten, and every turn that begins is held against that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from botservice.core.message_references import Reference
from botservice.core.messages import Author, Message
from botservice.people.names import person_name
from botservice.privacy.queries import Erasure, erase_messages
from botservice.privacy.right_queries import (
    asked_at,
    is_naming_one_waiting,
    is_one_waiting,
    read_noted,
    set_aside_naming,
    take_note,
)
from botservice.privacy.rights import FORGOTTEN
from botservice.privacy.turn_queries import delete_turns, leave_events_of
from botservice.storage.database import Connection

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
        delete_turns(connection, set_aside_naming(connection, number), now)
        if is_naming_one_waiting(connection, number, but_turn):
            _note_author(connection, person_name(account), but_turn, now)


def note_words(
    connection: Connection, context_id: int, words: Author | Collection[str], but_turn: int | None, now: datetime
) -> None:
    """Record what is forgotten in one chat, if events still wait there.

    Args:
        words: Whose words, all of them, or what the platform calls the messages.
    """
    if not is_one_waiting(connection, context_id, but_turn):
        return
    if isinstance(words, Author):
        _note_author(connection, f"{context_id} {person_name(words)}", but_turn, now)
        return
    for each in words:
        take_note(connection, FORGOTTEN, _name_of_message(context_id, each), now)


def read_notes(connection: Connection, received: Sequence[tuple[int, LateMessage | None]]) -> dict[str, datetime]:
    """Return when the names in messages were forgotten, each with its context."""
    names = {name for context_id, each in received if each is not None for name in each.names(context_id)}
    return read_noted(connection, names)


def erase_returning(
    connection: Connection,
    context_id: int,
    received: Sequence[LateMessage | None],
    stored: Sequence[Message],
    notes: Mapping[str, datetime],
    now: datetime,
) -> bool:
    """Remove forgotten words from a message that was just stored; return whether there were any.

    What is left of a turn is answered in a new one.
    """
    read = [(each, kept) for each, kept in zip(received, stored, strict=True) if each is not None]

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
    erase_messages(connection, Erasure(context_id, ids, held=held), now)
    leave_events_of(connection, [each.event_id for each, _ in own], now)
    return True


def _note_author(connection: Connection, name: str, but_turn: int | None, now: datetime) -> None:
    take_note(connection, FORGOTTEN, name, now)
    take_note(connection, FORGOTTEN, _BY + name, asked_at(connection, but_turn) or now)


def _names_in(context_id: int, reference: Reference) -> set[str]:
    found = set() if reference.external_id is None else {_name_of_message(context_id, reference.external_id)}
    return found | _names_of(context_id, reference.author)


def _names_of(context_id: int, author: Author | None) -> set[str]:
    name = person_name(author)
    return {name, f"{context_id} {name}"} if name else set()


def _name_of_message(context_id: int, external_id: str) -> str:
    return f"{context_id} #{external_id}"
