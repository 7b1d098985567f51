"""What a claimed context has to do next: a stop, a message to send, a change, a reminder, a turn, in this order.

`find_due_contexts` finds the contexts that have something to do, and uses the same order.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from botservice.conversation.context import AgentContext
from botservice.conversation.queries import read_context_keys
from botservice.conversation.reminder import Reminder
from botservice.core.states import TurnStatus
from botservice.storage.database import Connection, Storage
from botservice.storage.failures import is_of_database
from botservice.turns.call_queries import find_due_turn
from botservice.turns.delivery_queries import find_fairest_delivery, find_next_delivery
from botservice.turns.edits_and_deletions import (
    Controls,
    DueChanges,
    PendingControl,
    find_controls,
    find_due,
    find_stale,
)
from botservice.turns.event_queries import GATHERING
from botservice.turns.finding_queries import find_kinds_of_work, find_next_turn, find_turn
from botservice.turns.grouped_messages import NewParts, QuestionParts
from botservice.turns.listening import QUIET
from botservice.turns.reminder_scheduler import ReminderScheduler
from botservice.turns.retry_policies import SUSPICIOUS_BEGINNINGS, beginnings_not_yet
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import NoTransport, Transport
from botservice.turns.turn import Delivery, Turn, is_due

logger = logging.getLogger(__name__)

_A_WHILE: Final = timedelta(seconds=1)
_LONGEST_WAIT: Final = max(GATHERING, QUIET)
_NO_CONTROLS: Final = Controls()


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A message to send."""

    delivery: Delivery
    context_keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Stops, oldest first, in a context in which no turn runs."""

    stops: Sequence[PendingControl]


@dataclass(frozen=True, slots=True)
class Moved:
    """A conversation that goes on at the end of another one."""

    change: PendingControl


@dataclass(frozen=True, slots=True)
class QueuedCleaning:
    """Something that is forgotten and has to go from the records of a conversation."""


@dataclass(frozen=True, slots=True)
class StartedTurn:
    """A turn to begin, to begin again, or to attend to because it waits.

    Attributes:
        controls: What has not taken effect: the wish that it stop, and changes of messages that it may begin with.
        is_all: Whether its context has nothing else to do.
        is_access_open: Whether everybody has access, so that those who begin it need not be judged.
    """

    turn: Turn
    context: AgentContext
    controls: Controls
    is_all: bool = False
    is_access_open: bool = True

    def teller(self, transport: Transport) -> Transport:
        """Return what tells people why there is no answer: nobody, where nobody asked."""
        return NoTransport() if self.context.is_unasked else transport


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A turn whose conversation cannot be loaded.

    Attributes:
        reason: The name of the error.
    """

    turn: Turn
    reason: str


@dataclass(frozen=True, slots=True)
class NotDueYet:
    """Nothing may be done before a moment: the first task is not due, and the others come after it."""

    until: datetime


Controlled = Stopped | Moved | QueuedCleaning | DueChanges
Work = Controlled | PendingDelivery | Reminder | NewParts | StartedTurn | Unreadable | NotDueYet


class NextWork:
    """Finds what contexts that the caller has claimed have to do next.

    Attributes:
        is_closing: No turn begins any more; what runs goes on.
    """

    def __init__(
        self,
        storage: Storage,
        options: RunOptions,
        transports: Mapping[str, Transport],
        parts: QuestionParts,
        reminding: ReminderScheduler,
    ) -> None:
        self._storage = storage
        self._clock = options.clock
        self._access = options.access
        self._transports = transports
        self._parts = parts
        self._reminding = reminding
        self._decided: set[int] = set()
        self._born_at = time.monotonic()
        self.is_closing = False

    @property
    def beginnings_not_yet(self) -> int:
        """From how many beginnings on turns are left alone for now, because they may end a process that is so young."""
        return beginnings_not_yet(time.monotonic() - self._born_at)

    def expect(self, context_id: int) -> None:
        """Remember that calls of a waiting turn of a context may have been decided."""
        self._decided.add(context_id)

    def find(self, connection: Connection, *, context_id: int, gives_way: bool) -> Work | None:
        """Return the next work: a stop first, then a message to send, a change, and a turn; None if there is none."""
        there = find_kinds_of_work(connection, context_id)
        delivery = find_next_delivery(connection, context_id, self._transports) if there.owes else None
        controls = find_controls(connection, context_id, self._transports) if there.control else _NO_CONTROLS
        turn = find_next_turn(connection, context_id, self._transports) if there.turn else None
        if controls.stops:
            return self._stop(connection, turn, controls)
        if controls.moves or controls.is_to_clean:
            return Moved(controls.moves[0]) if controls.moves else QueuedCleaning()
        is_ready = turn is not None and self._is_due(turn) and self._may_begin(turn)
        if delivery is not None:
            keys = read_context_keys(connection, context_id)
            is_for_many = not delivery.attempts and self._transports[delivery.transport].is_shared(keys)
            if not (is_for_many and gives_way and is_ready):
                return self._owe(connection, context_id, delivery, keys, is_for_many=is_for_many)
        found = self._find_due(connection, context_id, controls, turn, is_any_waiting=there.waiting is not None)
        if found is not None:
            return found
        is_all = (there.owes, there.control, there.waiting) == (None, None, None)
        if turn is None:
            return find_stale(controls, self._clock()) if controls.changes else None
        return self._find_turn(connection, turn, controls, is_all=is_all) if is_ready else self._wait_for(turn)

    def _may_begin(self, turn: Turn) -> bool:
        may_end_processes = turn.attempts >= SUSPICIOUS_BEGINNINGS and turn.attempts >= self.beginnings_not_yet
        return not self.is_closing and not may_end_processes and turn.transport in self._transports

    def _find_due(
        self, connection: Connection, context_id: int, controls: Controls, turn: Turn | None, *, is_any_waiting: bool
    ) -> Work | None:
        """Return the work that goes before the next turn: a change, a turn that has waited, or a reminder."""
        changes = find_due(connection, context_id, controls) if controls.changes else None
        if changes is not None or (turn is not None and turn.status is not TurnStatus.QUEUED):
            return changes
        if is_any_waiting:
            waited = self._find_waited(connection, context_id, is_last=turn is None)
            if waited is not None:
                return self._claimed_turn(connection, waited, controls)
        elif self._decided:
            self._decided.discard(context_id)
        return self._reminding.find(connection, context_id) if context_id in self._reminding.due else None

    def _find_waited(self, connection: Connection, context_id: int, *, is_last: bool) -> Turn | None:
        """Return the waiting turn to attend to. It is looked for if a decision is expected, or last."""
        if not is_last and context_id not in self._decided:
            return None
        turn_id = find_due_turn(connection, context_id, self._transports, self._clock())
        turn = None if turn_id is None else find_turn(connection, context_id, turn_id)
        if turn is None or not self._may_begin(turn):
            self._decided.discard(context_id)
            return None
        return turn

    def _is_due(self, turn: Turn) -> bool:
        """Return whether a turn is due.

        One that has not begun gathers the parts of a message for a moment, or waits for what else is said. Where it is
        to wait longer, it was put off behind something that is gone.
        """
        now = self._clock()
        if turn.is_deferred and not turn.is_alone:
            return True
        return is_due(turn, now) or (turn.status is TurnStatus.QUEUED and turn.due_at > now + _LONGEST_WAIT)

    def _wait_for(self, turn: Turn) -> NotDueYet | None:
        """Return until when the work behind a running turn waits that may not go on here, or not yet."""
        if turn.status is TurnStatus.QUEUED:
            return None
        return NotDueYet(max(turn.due_at, self._clock() + _A_WHILE))

    def _stop(self, connection: Connection, turn: Turn | None, controls: Controls) -> Work | None:
        """Return the turn that a stop is about if it has begun, to be stopped as it goes on; else the stops."""
        if turn is None or turn.status is TurnStatus.QUEUED or not controls.stops_after(turn.order_key):
            return Stopped(controls.stops)
        return self._claimed_turn(connection, turn, controls) if self._may_begin(turn) else None

    def _owe(
        self, connection: Connection, context_id: int, first: Delivery, keys: Mapping[str, str], *, is_for_many: bool
    ) -> PendingDelivery | NotDueYet:
        """Return the message to send, as soon as it is due."""
        now = self._clock()
        fairest = find_fairest_delivery(connection, context_id, self._transports) if is_for_many else None
        delivery = fairest if fairest is not None and is_due(fairest, now) else first
        return PendingDelivery(delivery, keys) if is_due(delivery, now) else NotDueYet(delivery.due_at)

    def _find_turn(self, connection: Connection, turn: Turn, controls: Controls, *, is_all: bool) -> Work | None:
        """Return the next turn, or first what else its question has come as; None while more of that is to come."""
        begun = self._claimed_turn(connection, turn, controls)
        if not isinstance(begun, StartedTurn):
            return begun
        if turn.is_alone:
            return replace(begun, is_all=is_all)
        parts = self._parts.find(connection, turn, begun.context)
        if parts is None:
            return begun
        return parts if parts.context is not None or self._is_due(parts.parts[-1]) else None

    def _claimed_turn(self, connection: Connection, turn: Turn, controls: Controls) -> StartedTurn | Unreadable:
        try:
            context = AgentContext.read(
                self._storage,
                connection,
                turn.context_id,
                turn.id,
                with_steps=turn.has_begun,
                with_last_message=turn.has_begun,  # one that begins brings a message of its own
            )
        except Exception as error:
            if is_of_database(error):  # it fails, not what is stored of this conversation
                raise
            logger.exception("turn.unreadable_context", extra={"context": turn.context_id, "turn": turn.id})
            return Unreadable(turn, type(error).__name__)
        is_access_open = turn.has_begun or self._access.is_idle(connection)
        return StartedTurn(turn, context, controls, is_access_open=is_access_open)
