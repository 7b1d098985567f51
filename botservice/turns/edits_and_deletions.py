"""Edits and deletions of what people wrote.

A message that is not in the history yet enters it as it was changed. One that is there is changed in its place, by
the holder of the context: a run that is under way goes on with what it was asked.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from botservice.core.messages import InboundMessage
from botservice.core.states import EventKind
from botservice.history.chat_history import count_text
from botservice.history.edit_queries import change_message, find_stored
from botservice.history.rows import NewWords
from botservice.storage.database import Connection, Row
from botservice.turns.event_queries import find_newest_change, list_controls
from botservice.turns.transport import ReadEvent, ReceivedMessage
from botservice.turns.turn import StoredEvent

# So long a change waits for a message that it has overtaken on the way.
PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class PendingControl:
    """A control that has not taken effect.

    Attributes:
        external_id: The platform's id of the message that an edit or a deletion is about.
    """

    event: StoredEvent
    kind: EventKind
    transport: str
    order_key: int
    external_id: str


@dataclass(frozen=True, slots=True)
class Controls:
    """What was said about the turns and messages of a context, and has not taken effect.

    Attributes:
        stops: Wishes that what has begun be stopped, oldest first.
        changes: Edits and deletions, oldest first.
        moves: What says that the conversation goes on elsewhere.
        is_to_clean: Whether something is to be removed from the records.
    """

    stops: tuple[PendingControl, ...] = ()
    changes: tuple[PendingControl, ...] = ()
    moves: tuple[PendingControl, ...] = ()
    is_to_clean: bool = False

    def stops_after(self, order_key: int) -> list[PendingControl]:
        """Return the stops that came after a question, oldest first: those before it are not about it."""
        return [each for each in self.stops if each.order_key > order_key]

    def of_message(self, external_id: str | None) -> list[PendingControl]:
        """Return the changes of one message, oldest first."""
        return [each for each in self.changes if external_id is not None and each.external_id == external_id]


@dataclass(frozen=True, slots=True)
class DueChanges:
    """Changes of one context that can take effect now.

    Attributes:
        changes: Oldest first, of messages that are in the history.
        stale: The ids of those whose message never came.
    """

    changes: tuple[PendingControl, ...]
    stale: tuple[int, ...] = ()


def find_controls(connection: Connection, context_id: int, transports: Collection[str]) -> Controls:
    """Return the unhandled controls of a context; changes only of these transports."""
    rows = list_controls(connection, context_id)
    stops = [_read(row) for row in rows if row.kind == EventKind.STOP.value]
    changes = [_read(row) for row in rows if row.external_id is not None and row.transport in transports]
    moves = [_read(row) for row in rows if row.kind == EventKind.MOVE.value]
    is_to_clean = any(row.kind == EventKind.FORGET.value for row in rows)
    return Controls(tuple(stops), tuple(changes), tuple(moves), is_to_clean)


def find_due(connection: Connection, context_id: int, controls: Controls) -> DueChanges | None:
    """Return what of a context's changes is to be done now, before its next turn; None for nothing."""
    if not controls.changes:
        return None
    stored = find_stored(connection, context_id, {each.external_id for each in controls.changes})
    changes = tuple(each for each in controls.changes if each.external_id in stored)
    return DueChanges(changes) if changes else None


def find_stale(controls: Controls, now: datetime) -> DueChanges | None:
    """Return the changes whose message has not come in all the time that it had; None for none."""
    stale = tuple(each.event.id for each in controls.changes if each.event.received_at < now - PATIENCE)
    return DueChanges((), stale) if stale else None


async def rewriting(
    context_id: int, external_id: str, order_key: int, message: InboundMessage, now: datetime
) -> Callable[[Connection], None]:
    """Return the write that has the history show a message as it is read now, unless it was edited meanwhile."""
    words = await read_words(message)

    def write(connection: Connection) -> None:
        known = find_newest_change(connection, context_id, external_id)
        if known is None or known <= order_key:
            change_message(connection, context_id, external_id, words, now)

    return write


async def as_changed(
    read: ReadEvent, inbound: Sequence[ReceivedMessage], controls: Controls
) -> tuple[list[ReceivedMessage], list[int]]:
    """Return messages that are about to enter the history as they were changed, and the ids of those changes."""
    result: list[ReceivedMessage] = []
    handled: list[int] = []
    for event, message in inbound:
        changes = controls.of_message(message.external_id)
        handled += [each.event.id for each in changes]
        if not changes:
            result.append((event, message))
        elif changes[-1].kind is EventKind.EDIT:
            changed = replace(changes[-1].event, is_meant=event.is_meant)
            result.append((event, await read(changed) or message))
    return result, handled


async def read_words(message: InboundMessage) -> NewWords:
    """Return the words by which a changed message is kept."""
    counter, count = await count_text(message.full_text)
    return NewWords(
        message.text,
        message.attachments,
        count,
        counter.name,
        message.own_text,
        message.references,
        message.is_all_own is True,
    )


def _read(row: Row[*tuple[object, ...]]) -> PendingControl:
    event = StoredEvent(row.id, row.key, row.raw or b"", row.received_at, row.group_key)
    return PendingControl(event, EventKind(row.kind), row.transport, row.order_key, row.external_id or "")
