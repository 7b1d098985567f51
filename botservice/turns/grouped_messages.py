"""The parts of one question that come as several messages: found for the next turn of a claimed context, and joined."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from botservice.conversation.context import AgentContext
from botservice.conversation.steps import PlanningStep
from botservice.core.errors import ClaimLost, StorageUnavailable, TurnGrew
from botservice.core.states import TurnStatus
from botservice.privacy.late_messages import erase_returning, read_notes
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.turns.delivery_queries import is_shown
from botservice.turns.event_queries import MAX_JOINED
from botservice.turns.finding_queries import find_queued_turns
from botservice.turns.queries import join_turns
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Transport
from botservice.turns.turn import Turn
from botservice.turns.turn_admission import TurnAdmission
from botservice.turns.turn_messages import OpeningMessages, clear_forgotten, prepare_messages, store_messages, task_of
from botservice.turns.turn_saver import save_turn
from botservice.turns.unanswered_turns import FailedTurns

logger = logging.getLogger(__name__)

_SETTLING_SECONDS: Final = 0.3  # how long a turn that begins again waits for the rest of its question


@dataclass(frozen=True, slots=True)
class NewParts:
    """Turns whose messages belong to the question of another one.

    Attributes:
        context: The conversation, if that turn has begun.
    """

    turn: Turn
    parts: Sequence[Turn]
    context: AgentContext | None = None


class QuestionParts:
    """Joins turns of contexts that the caller has claimed."""

    def __init__(
        self, storage: Storage, options: RunOptions, transports: Mapping[str, Transport], failed_turns: FailedTurns
    ) -> None:
        self._storage = storage
        self._options = options
        self._transports = transports
        self._failed_turns = failed_turns

    def find(self, connection: Connection, turn: Turn, context: AgentContext) -> NewParts | None:
        """Return the parts of the question of the next turn; None if there are none, or too late for that turn."""
        parts = _find_parts(connection, turn, self._transports[turn.transport])
        if parts and turn.status is TurnStatus.QUEUED:
            return NewParts(turn, parts)
        return NewParts(turn, parts, context) if parts and _may_begin_again(context) else None

    async def have_come(self, turn: Turn) -> bool:
        """Return whether more of the question of a turn that runs has come."""
        transport = self._transports[turn.transport]
        return bool(await self._storage.read(lambda connection: _find_parts(connection, turn, transport)))

    async def join(self, work: NewParts, claim: Claim) -> None:
        """Make one turn of several that one question has come as."""
        turn, transport = work.turn, self._transports[work.turn.transport]
        try:
            if work.context is None:
                join = partial(join_turns, turn=turn, parts=work.parts)
                await self._storage.write(join, fence=claim)
                return
            await asyncio.sleep(_SETTLING_SECONDS)
            parts = await self._storage.read(lambda connection: _find_parts(connection, turn, transport))
            await self._join_running(work.context, turn, parts or work.parts, claim, transport)
        except TurnGrew:
            logger.info("turn.grew")
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception as error:
            logger.exception("turn.parts_unreadable")
            await self._failed_turns.try_later(turn, claim, transport, type(error).__name__, None)

    async def _join_running(
        self, context: AgentContext, turn: Turn, parts: Sequence[Turn], claim: Claim, transport: Transport
    ) -> None:
        """Store more messages of the question of a turn that has begun; the turn goes on with them.

        Raises:
            TurnGrew: one of the turns is not what was read any more, or a message was forgotten meanwhile.
        """
        parts = sorted(parts, key=lambda each: each.order_key)
        is_limited = self._options.budgets.has_rates
        admission = TurnAdmission(self._options, turn, context, transport, is_limited=is_limited)
        said, tell = await admission.read_parts([event for each in parts for event in each.events])
        before = {event.id for each in parts if each.order_key < turn.order_key for event in each.events}
        now = self._options.clock()
        opening = await prepare_messages(said, now)
        _add_to_task(context, opening, sum(event.id in before for event, _ in said))

        def write(connection: Connection, _: Sequence[int]) -> bool:
            join_turns(connection, turn, parts)
            if tell is not None:
                tell(connection)
            [stored] = store_messages(connection, [(context.id, opening, now)])
            notes = read_notes(connection, [(context.id, received) for received in opening.received])
            return bool(notes) and erase_returning(connection, context.id, opening.received, stored, notes, now)

        gone: list[bool] = []
        await save_turn(context, claim, write, gone.append)
        if any(gone):
            await clear_forgotten(context, turn.id)


def _find_parts(connection: Connection, turn: Turn, transport: Transport) -> list[Turn]:
    """Return the queued turns whose messages belong to the question of a turn, in the platform's order.

    A turn of which people have seen something has no more parts.
    """
    parts, known, count = list[Turn](), list(turn.events), turn.joined_events + 1
    for queued in find_queued_turns(connection, turn.context_id, transport.name, but=turn.id):
        is_part = bool(queued.events) and all(transport.belong_together(known, event) for event in queued.events)
        if is_part and count + queued.joined_events + 1 > MAX_JOINED:
            break
        if is_part:
            count += queued.joined_events + 1
            parts.append(queued)
            known.extend(queued.events)
    return [] if parts and is_shown(connection, turn.id) else parts


def _may_begin_again(context: AgentContext) -> bool:
    """Return whether the turn that has begun in a context has done nothing yet."""
    is_untouched = not context.steps_taken and context.open_step is None and context.task is not None
    return is_untouched and not any(isinstance(each, PlanningStep) for each in context.memory.steps)


def _add_to_task(context: AgentContext, opening: OpeningMessages, before: int) -> None:
    """Add messages to the task of a turn, the first of them in front of it."""
    task = context.task
    assert task is not None, "a turn that has begun has a task"  # noqa: S101 - an invariant
    parts = [task_of(opening.asked[:before]), task, task_of(opening.asked[before:])]
    task.task = "\n".join(each.task for each in parts if each.task)
    task.task_images = [image for each in parts for image in each.task_images or ()] or task.task_images
