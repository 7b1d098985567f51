"""The parts of one question that come as several messages: found for the next turn of a claimed context, and joined."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from botservice.conversation.context import AgentContext
from botservice.core.errors import ClaimLost, StorageUnavailable, TurnGrew
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.turns.failed_turns import FailedTurns
from botservice.turns.joining import find_parts, join_queued, join_running, may_begin_again
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Transport
from botservice.turns.turn import Turn, TurnStatus
from botservice.turns.turn_admission import TurnAdmission

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
        self._admission = TurnAdmission(storage, options)

    def find(self, connection: Connection, turn: Turn, context: AgentContext) -> NewParts | None:
        """Return the parts of the question of the next turn; None if there are none, or too late for that turn."""
        parts = find_parts(connection, turn, self._transports[turn.transport])
        if parts and turn.status is TurnStatus.QUEUED:
            return NewParts(turn, parts)
        return NewParts(turn, parts, context) if parts and may_begin_again(context) else None

    async def have_come(self, turn: Turn) -> bool:
        """Return whether more of the question of a turn that runs has come."""
        transport = self._transports[turn.transport]
        return bool(await self._storage.read(lambda connection: find_parts(connection, turn, transport)))

    async def join(self, work: NewParts, claim: Claim) -> None:
        """Make one turn of several that one question has come as."""
        turn, transport = work.turn, self._transports[work.turn.transport]
        try:
            if work.context is None:
                await join_queued(self._storage, turn, work.parts, claim)
                return
            await asyncio.sleep(_SETTLING_SECONDS)
            parts = await self._storage.read(lambda connection: find_parts(connection, turn, transport))
            await join_running(
                work.context, turn, parts or work.parts, claim, transport, self._options, self._admission
            )
        except TurnGrew:
            logger.info("turn.grew")
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception as error:
            logger.exception("turn.parts_unreadable")
            await self._failed_turns.try_later(turn, claim, transport, type(error).__name__, None)
