"""The lanes in which contexts wait to be worked on: so many at once, and large or suspicious work apart."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final

from botservice.turns.backlog_queries import DueContext, What
from botservice.turns.next_work import PendingDelivery, StartedTurn, Work
from botservice.turns.retry_policies import MAX_CUT_OFF_BEGINNINGS, SUSPECTS_AT_ONCE, SUSPICIOUS_BEGINNINGS

RESENDS_AT_ONCE: Final = 16
SMALL_BYTES: Final = 128 * 1024
# A turn that is worked on holds what asks it three times over: of each size there are at most 32 MiB at once.
_LARGE: Final = ((512 * 1024, 64), (2 * 1024 * 1024, 16), (float("inf"), 4))
_WAITING_PER_PLACE: Final = 8  # contexts that the sweep lines up for each one that may be worked on


class Lane:
    """Lets so many in at once, the others in the order in which they came.

    Attributes:
        waiting: How many wait for admission.
    """

    def __init__(self, width: int) -> None:
        self.waiting = 0
        self._width = width
        self._room = asyncio.Semaphore(width)

    @property
    def is_full(self) -> bool:
        """Whether so many wait that the sweep need not line up more: it finds them later."""
        return self.waiting >= _WAITING_PER_PLACE * self._width

    async def __aenter__(self) -> None:
        self.waiting += 1
        try:
            await self._room.acquire()
        finally:
            self.waiting -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._room.release()


class Lanes:
    """The lanes of a worker.

    Attributes:
        usual: What nothing is known against. A message that its platform did not take waits elsewhere: for each
            platform apart, because one that hangs is slow to say no. So do new ones, where those that are under way to
            the same platform hold half of the places.
        suspects: Turns that may end their process. Large ones wait apart as well, the fewer at once the larger they
            are: however much comes, memory is bounded, and small ones do not wait for them.
    """

    def __init__(self, max_turns: int, may_send: Callable[[str], bool]) -> None:
        self.usual = Lane(max_turns)
        self.suspects = Lane(SUSPECTS_AT_ONCE)
        self._large = [(most, Lane(min(width, max_turns))) for most, width in _LARGE]
        self._resends: dict[str, Lane] = {}
        self._may_send = may_send

    def of_due(self, due: DueContext) -> Lane:
        """Return the lane in which a context waits to be worked on."""
        match due.what:
            case What.DELIVERY:
                return self.of_delivery(due.transport, due.tries)
            case What.TURN:
                return self.of_turn(due.tries)
            case What.CONTROL | What.REMINDER | What.WAITING | What.PROGRAM:
                return self.usual

    def of_work(self, work: Work) -> Lane:
        """Return the lane in which a context does what it has to do next."""
        match work:
            case PendingDelivery(delivery):
                return self.of_delivery(delivery.transport, delivery.attempts)
            case StartedTurn(turn):
                return self.of_turn(turn.attempts, sum(len(event.raw) for event in turn.events))
            case _:
                return self.usual

    def of_turn(self, beginnings: int, size: int = 0) -> Lane:
        """Return the lane of a turn by how often it was begun: one that will only be given up can end no process.

        Args:
            size: Bytes of what asks it, where that is known.
        """
        if SUSPICIOUS_BEGINNINGS <= beginnings < MAX_CUT_OFF_BEGINNINGS:
            return self.suspects
        return self.usual if size <= SMALL_BYTES else next(lane for most, lane in self._large if size <= most)

    def of_delivery(self, transport: str, tries: int) -> Lane:
        """Return the lane of a message that was tried so often."""
        is_usual = not tries and self._may_send(transport)
        return self.usual if is_usual else self._resends.setdefault(transport, Lane(RESENDS_AT_ONCE))
