"""Turns that end without an answer, and what their people are told: failed, given up, refused."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Message, Role
from botservice.core.quoting import shortened
from botservice.core.states import Outcome, TurnStatus
from botservice.people.access_values import Notice, Ruling
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.texts.formatted import line, quoted, say
from botservice.turns.call_queries import close_pending, lock_turn, put_off_waiting
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.queries import finish_turn, postpone_turn
from botservice.turns.retry_policies import TURN_RETRIES, turn_delay
from botservice.turns.transport import Payload, Transport
from botservice.turns.turn import Turn, tell_end

_KEYS: Final = {Notice.REFUSED: "access.refused", Notice.CODE: "access.code", Notice.GROUP: "access.group"}
_MAX_NAMES: Final = 3
_MAX_CHARACTERS: Final = 60


def plan_notice(
    transport: Transport, turn: Turn, text: FormattedText, now: datetime, *, is_personal: bool = True
) -> Sequence[Payload]:
    """Return the payloads of a message of the service itself, which is no part of the conversation."""
    notice = Message(None, Role.SYSTEM, text.plain, created_at=now, is_personal=is_personal, formatted=text)
    return transport.plan(notice, turn.events)


async def end_refused(
    storage: Storage, turn: Turn, claim: Claim, transport: Transport, text: FormattedText, now: datetime
) -> None:
    """End a running turn and tell the person why it is not answered."""
    payloads = plan_notice(transport, turn, text, now)

    def end(connection: Connection) -> None:
        write_deliveries(connection, turn, payloads, now)
        finish_turn(connection, turn.id, now, Outcome.REFUSED)

    await storage.write(end, fence=claim)
    tell_end(turn, Outcome.REFUSED, now)


def refusal_text(ruling: Ruling, language: str | None) -> FormattedText | None:
    """Return what to tell a person who has no access; None for nothing."""
    key = _KEYS.get(ruling.notice)
    if key is None:
        return None
    name = ruling.subject.name if ruling.subject is not None else "?"
    return say(key, language, name=name, code=ruling.code or "")


def unread_text(names: Sequence[str], language: str | None) -> FormattedText:
    """Return what to tell a person whose files were not read."""
    shown = [quoted(shortened(name, _MAX_CHARACTERS), "…") for name in names[:_MAX_NAMES]]
    more = [", …"] if len(names) > _MAX_NAMES else []
    listed = [part for each in shown for part in (", ", each)][1:]
    return say("files.unread", language, names=line(*listed, *more))


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
