"""Storing the notes and facts of a reading: in one transaction, and only if nothing has changed meanwhile."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from botservice.history.notes import Note, insert_notes
from botservice.observer.answer import Answer
from botservice.observer.records import mark_read, read_state
from botservice.observer.stretch import Stretch, read_rows
from botservice.people.facts import Fact
from botservice.people.observed_facts import keep_found
from botservice.storage.tables.conversations import contexts


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of reading a stretch.

    Attributes:
        notes: What is noted anew.
        facts: What is known anew of people.
        dropped: How much was dropped, by reason.
        is_stale: Whether something changed meanwhile, so that nothing was written.
    """

    notes: tuple[Note, ...] = ()
    facts: tuple[Fact, ...] = ()
    dropped: Counter[str] | None = None
    is_stale: bool = False


def write_down(connection: Connection, stretch: Stretch, answer: Answer, now: datetime) -> Observation:
    """Store the notes and facts of a stretch, and how far was read, unless its messages have changed.

    Whoever forgets or changes something of it holds the conversation's row, as this does: one of both comes first.
    """
    if not _stands(connection, stretch):
        return Observation(dropped=answer.dropped, is_stale=True)
    made = insert_notes(connection, stretch.context_id, answer.notes, replaced=answer.replaced)
    dropped = Counter(answer.dropped)
    facts: list[Fact] = []
    for found in answer.facts:
        kept = keep_found(connection, stretch.context_id, found, now)
        if isinstance(kept, Fact):
            facts.append(kept)
        else:
            dropped[kept.value] += 1
    mark_read(connection, stretch.context_id, stretch.version, stretch.last)
    return Observation(tuple(made), tuple(facts), dropped)


def _stands(connection: Connection, stretch: Stretch) -> bool:
    """Return whether the conversation, the messages that were read, and its earlier notes are unchanged."""
    alive = select(contexts.c.id).where(contexts.c.id == stretch.context_id, contexts.c.forgotten_at.is_(None))
    if connection.execute(alive.with_for_update(key_share=True)).first() is None:
        return False
    state = read_state(connection, stretch.context_id)
    if state is None or state.version != stretch.version:
        return False
    return read_rows(connection, stretch) == stretch.rows
