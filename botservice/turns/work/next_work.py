"""What a context has to do next, for whoever holds its claim.

`agenda` finds the contexts that have something to do, and goes by the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from botservice.contexts.context import AgentContext, read_context_keys
from botservice.reminders.reminder import Reminder
from botservice.storage import Storage
from botservice.storage.ranges import is_of
from botservice.storage.statements import execute
from botservice.storage.tables.conditions import CALL_IS_OPEN, DELIVERY_IS_OWED, EVENT_IS_UNHANDLED, TURN_IS_OPEN
from botservice.storage.tables.conversations import deliveries, events, turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.changes import Change, Controls, DueChanges, find_controls, find_due, find_stale
from botservice.turns.outbox import find_next_delivery
from botservice.turns.owing import find_fairest_delivery
from botservice.turns.records import GATHERING, find_next_turn, find_turn
from botservice.turns.transport import Transport, is_shared
from botservice.turns.turn import Delivery, Turn, TurnStatus, is_due
from botservice.turns.waiting.records import find_due_turn
from botservice.turns.work.reminders import Reminding

_A_WHILE = timedelta(seconds=1)

# What there is at all, in one look: most contexts have one thing to do, and what that is is read then.
_CONTEXT: Any = bindparam("context")
_OWES = select(deliveries.c.id).where(DELIVERY_IS_OWED, is_of(deliveries, _CONTEXT))
_CONTROL = select(events.c.id).where(EVENT_IS_UNHANDLED, events.c.context_id == _CONTEXT)
_TURN = select(turns.c.id).where(TURN_IS_OPEN, turns.c.context_id == _CONTEXT)
_WAITING = select(pending_calls.c.id).where(CALL_IS_OPEN, is_of(pending_calls, _CONTEXT))
_LOOK: Final = select(
    _OWES.limit(1).scalar_subquery().label("owes"),
    _CONTROL.limit(1).scalar_subquery().label("control"),
    _TURN.limit(1).scalar_subquery().label("turn"),
    _WAITING.limit(1).scalar_subquery().label("waiting"),
)
_NO_CONTROLS: Final = Controls()


@dataclass(frozen=True, slots=True)
class Owed:
    """A message that a context owes to somebody."""

    delivery: Delivery
    context_keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Wishes that something be stopped, oldest first: what is left of answers goes, and nothing runs any more."""

    stops: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Moved:
    """A conversation that goes on at the end of another one."""

    change: Change


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn to begin, or to begin again, or one that has waited and is to be seen to.

    Attributes:
        controls: What has not taken effect: the wish that it stop, and changes of messages that it may begin with.
    """

    turn: Turn
    context: AgentContext
    controls: Controls


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing may be done before a moment: the first thing is not due, and the others come after it."""

    until: datetime


Work = Owed | Stopped | Moved | DueChanges | Reminder | Begun | Waiting


class NextWork:
    """Finds what may be done now in contexts that the caller has claimed."""

    def __init__(
        self,
        storage: Storage,
        transports: Mapping[str, Transport],
        reminding: Reminding,
        clock: Callable[[], datetime],
        may_begin: Callable[[Turn], bool],
    ) -> None:
        """Make one.

        Args:
            may_begin: Says whether a turn may begin now, as far as it is not a matter of time.
        """
        self._storage = storage
        self._transports = transports
        self._reminding = reminding
        self._clock = clock
        self._may_begin = may_begin
        self._decided: set[int] = set()

    def expect(self, context_id: int) -> None:
        """Take note that something may have become of what a turn of a context waits with."""
        self._decided.add(context_id)

    def find(self, connection: Connection, *, context_id: int, gives_way: bool) -> Work | None:
        """Return it: stops first, then what is owed, what is changed, and a turn; None where all of it has to wait.

        Args:
            gives_way: Whether a turn may begin first where other people wait behind a long answer.
        """
        there = execute(connection, _LOOK, {"context": context_id}).all()[0]
        delivery = find_next_delivery(connection, context_id, self._transports) if there.owes else None
        controls = find_controls(connection, context_id, self._transports) if there.control else _NO_CONTROLS
        turn = find_next_turn(connection, context_id, self._transports) if there.turn else None
        if controls.stops:
            return self._stop(connection, turn, controls)
        if controls.moves:
            return Moved(controls.moves[0])
        is_ready = turn is not None and self._is_due(turn) and self._may_begin(turn)
        if delivery is not None:
            keys = read_context_keys(connection, context_id)
            is_for_many = not delivery.attempts and is_shared(self._transports[delivery.transport], keys)
            if not (is_for_many and gives_way and is_ready):
                return self._owe(connection, context_id, delivery, keys, is_for_many=is_for_many)
        is_any_waiting = there.waiting is not None
        found = self._find_due(connection, context_id, controls, turn, is_any_waiting=is_any_waiting)
        if found is not None:
            return found
        if turn is None:
            return find_stale(controls, self._clock()) if controls.changes else None
        return self._begun(connection, turn, controls) if is_ready else self._wait_for(turn)

    def _find_due(
        self, connection: Connection, context_id: int, controls: Controls, turn: Turn | None, *, is_any_waiting: bool
    ) -> Work | None:
        """Return what goes before the next turn: what is changed, a turn that has waited, or a reminder."""
        changes = find_due(connection, context_id, controls) if controls.changes else None
        if changes is not None or (turn is not None and turn.status is not TurnStatus.QUEUED):
            return changes
        if is_any_waiting:
            waited = self._find_waited(connection, context_id, is_last=turn is None)
            if waited is not None:
                return self._begun(connection, waited, controls)
        elif self._decided:
            self._decided.discard(context_id)
        is_expected = context_id in self._reminding.due
        return self._reminding.find(connection, context_id) if is_expected else None

    def _find_waited(self, connection: Connection, context_id: int, *, is_last: bool) -> Turn | None:
        """Return the turn that has waited and is to be seen to. It is looked for where it is expected, or last."""
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

        One that has not begun gathers the parts of a message for a moment. Where it is to wait longer, it was put off
        behind something that is gone.
        """
        now = self._clock()
        return is_due(turn, now) or (turn.status is TurnStatus.QUEUED and turn.due_at > now + GATHERING)

    def _wait_for(self, turn: Turn) -> Waiting | None:
        """Return until when those behind a turn wait that has begun, and may not go on: in this process, or yet."""
        if turn.status is TurnStatus.QUEUED:
            return None
        return Waiting(max(turn.due_at, self._clock() + _A_WHILE))

    def _stop(self, connection: Connection, turn: Turn | None, controls: Controls) -> Work | None:
        """Return what a stop makes of a turn that has begun before it; there is no such turn where it is stopped."""
        if turn is None or turn.status is TurnStatus.QUEUED or not controls.stops_after(turn.order_key):
            return Stopped(controls.stops)
        return self._begun(connection, turn, controls) if self._may_begin(turn) else None

    def _owe(
        self, connection: Connection, context_id: int, first: Delivery, keys: Mapping[str, str], *, is_for_many: bool
    ) -> Owed | Waiting:
        """Return the message to send, as soon as it is due."""
        now = self._clock()
        fairest = find_fairest_delivery(connection, context_id, self._transports) if is_for_many else None
        delivery = fairest if fairest is not None and is_due(fairest, now) else first
        return Owed(delivery, keys) if is_due(delivery, now) else Waiting(delivery.due_at)

    def _begun(self, connection: Connection, turn: Turn, controls: Controls) -> Begun:
        context = AgentContext.read(self._storage, connection, turn.context_id, turn.id, with_steps=turn.is_open)
        return Begun(turn, context, controls)
