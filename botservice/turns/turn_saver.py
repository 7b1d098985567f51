"""Saving a turn: every step, and the answer with the end of its turn, in one transaction with all it owes."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from botservice.conversation.context import AgentContext
from botservice.conversation.items import MemoryItem
from botservice.conversation.metadata_changes import MetadataChanges
from botservice.conversation.queries import write_metadata
from botservice.conversation.step_records import StepChanges, apply_all
from botservice.core.errors import ClaimLost
from botservice.core.messages import Message
from botservice.core.states import Outcome
from botservice.history.queries import insert_messages
from botservice.history.rows import NewMessage
from botservice.storage.claims import Claim
from botservice.storage.database import Connection
from botservice.turns.delivery_queries import begin_deliveries
from botservice.turns.queries import finish_turns, lock_turns
from botservice.turns.transport import Payload
from botservice.turns.turn import Delivery, Turn
from botservice.turns.usage_recorder import PaidCall, write_usage

T = TypeVar("T")
Also = Callable[[Connection, Sequence[int]], T]
"""Writes something in the same transaction; takes the ids of the rows that steps were added as."""


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """The answer of a turn, to be stored with the turn's end.

    Attributes:
        used: What the model took for it.
        prepare: Writes what few answers have, and returns the payloads.
    """

    turn: Turn
    new: NewMessage
    now: datetime
    used: Sequence[PaidCall]
    prepare: Callable[[Connection], Sequence[Payload]]


@dataclass(frozen=True, slots=True)
class _Save:
    """What has changed in a context, and what is written in the same transaction."""

    context: AgentContext
    changes: StepChanges
    metadata: MetadataChanges | None
    also: Also[Any] | TurnAnswer | None


async def save_turn(
    context: AgentContext,
    claim: Claim,
    also: Also[T] | TurnAnswer | None = None,
    then: Callable[[T], object] | None = None,
    *,
    opened: MemoryItem | None = None,
) -> None:
    """Store the changed steps and metadata of a context, in one transaction with what `also` writes.

    An answer ends the turn. Nothing happens where nothing changed and nothing else is written.

    Args:
        then: Called with what `also` returned as soon as it is committed, also where the caller was cancelled. For an
            answer that is the stored message, and the delivery that is to be sent now, if one is.
        opened: A step that is in no list yet, because its calls have not all ended.

    Raises:
        ClaimLost: another process works on the context.
        InvalidField: something that is no item was put among the steps, or no JSON into the metadata.
    """
    changes = context.records.changes(context.memory.steps, opened)
    metadata = context.changed_metadata()
    if not changes and metadata is None and also is None:
        return

    def confirm(written: tuple[list[int], Any]) -> None:
        row_ids, result = written
        context.records.confirm(changes, row_ids)
        if metadata is not None:
            context.confirm_metadata(metadata)
        if then is not None:
            then(result)

    save = _Save(context, changes, metadata, also)
    writing = context.storage.issue_for(save, _save_all, fence=claim, sort_key=(context.id,), is_waited_for=True)
    try:
        written = await writing
    except asyncio.CancelledError:
        confirm(writing.result())  # a write that was issued happens: know of it before going away
        raise
    confirm(written)


def _save_all(connection: Connection, saves: Sequence[_Save]) -> list[tuple[list[int], Any]]:
    """Write what has changed in contexts; return for each the ids of added steps, and what else was written."""
    answers = [each.also for each in saves if isinstance(each.also, TurnAnswer)]
    finish_turns(connection, [(each.turn.id, each.now) for each in answers], Outcome.ANSWERED)  # before what is written
    going_on = [each.context.turn_id for each in saves if not isinstance(each.also, TurnAnswer)]
    _check_turns(connection, {turn_id for turn_id in going_on if turn_id is not None})
    of_records = [(each.context.records, each.changes) for each in saves]
    row_ids = apply_all(connection, [(records, changes, records.turn_id) for records, changes in of_records])
    for each in saves:
        if each.metadata is not None:
            write_metadata(connection, each.context.id, each.metadata)
    answered = iter(_write_answers(connection, answers))
    return [
        (ids, next(answered) if isinstance(each.also, TurnAnswer) else each.also and each.also(connection, ids))
        for each, ids in zip(saves, row_ids, strict=True)
    ]


def _check_turns(connection: Connection, turn_ids: Collection[int]) -> None:
    """Return if the turns that are worked on still exist: what was forgotten meanwhile must not be written back.

    Raises:
        ClaimLost: one does not.
    """
    found = lock_turns(connection, turn_ids)
    if gone := set(turn_ids).difference(found):
        raise ClaimLost(f"turn {', '.join(map(str, gone))} was forgotten while it was worked on")


def _write_answers(connection: Connection, answers: Sequence[TurnAnswer]) -> list[tuple[Message, Delivery | None]]:
    """Store answers; return each with the message that is to be sent now, if one is."""
    write_usage(connection, [used for each in answers for used in each.used])
    sent = [(each.turn, each.prepare(connection), each.now) for each in answers]
    messages = insert_messages(connection, [(each.turn.context_id, each.new) for each in answers])
    return list(zip(messages, begin_deliveries(connection, sent), strict=True))
