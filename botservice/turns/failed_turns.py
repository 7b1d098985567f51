"""Turns that fail: tried again later, and in the end set aside, so that their chat goes on."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from botservice.core.states import Outcome, TurnStatus
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.texts.formatted import say
from botservice.turns.call_queries import close_pending, lock_turn, put_off_waiting
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.queries import finish_turn, postpone_turn
from botservice.turns.refusing import plan_notice
from botservice.turns.retry_policies import TURN_RETRIES, turn_delay
from botservice.turns.transport import Transport
from botservice.turns.turn import Turn, tell_end

logger = logging.getLogger(__name__)


class FailedTurns:
    """Retries turns that failed, and gives them up in the end."""

    def __init__(self, storage: Storage, clock: Callable[[], datetime]) -> None:
        self._storage = storage
        self._clock = clock

    async def try_later(
        self, turn: Turn, claim: Claim, transport: Transport, reason: str, language: str | None
    ) -> None:
        """Put a failed turn off until its next try; give it up after too many."""
        delay = turn_delay(TURN_RETRIES, turn.failures + 1)
        if delay is None:
            await self.give_up(turn, claim, transport, reason, language)
            return
        now = self._clock()
        pause = timedelta(seconds=delay)

        def postpone(connection: Connection) -> None:
            if lock_turn(connection, turn.id):  # none of its calls is to run because something else went wrong
                put_off_waiting(connection, turn.id, now + pause, now)
                postpone_turn(connection, turn.id, now, delay=pause, error=reason, status=TurnStatus.WAITING)
            else:
                postpone_turn(connection, turn.id, now, delay=pause, error=reason)

        await self._storage.write(postpone, fence=claim)

    async def give_up(
        self,
        turn: Turn,
        claim: Claim,
        transport: Transport,
        reason: str,
        language: str | None,
        *,
        is_command: bool = False,
        is_refused: bool = False,
    ) -> None:
        """Set a turn aside and tell the person so; the apology is no part of the conversation.

        Args:
            is_command: Whether it is of a command: /retry asks the question before that again.
            is_refused: Whether the model refuses what is asked: asking the same again would not help.
        """
        now = self._clock()
        logger.error("turn.set_aside", extra={"reason": reason, "error_id": turn.error_id})
        key = "answer.apology_with_retry" if transport.offers_retry or is_command else "answer.apology"
        key = "answer.apology_refused" if is_refused else key
        apology = say(key, language, error_id=turn.error_id or "")
        payloads = plan_notice(transport, turn, apology, now)

        def set_aside(connection: Connection) -> None:
            write_deliveries(connection, turn, payloads, now)
            close_pending(connection, turn.id)
            finish_turn(connection, turn.id, now, Outcome.FAILED, status=TurnStatus.SET_ASIDE, error=reason)

        await self._storage.write(set_aside, fence=claim)
        tell_end(turn, Outcome.FAILED, now)
