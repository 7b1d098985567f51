"""The line of conversations in which programs, and no people, have something done: one begins after the other.

A burst of events or messages would otherwise be worked off all at once, and people's turns behind it.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from botservice.core.states import DeliveryKind
from botservice.people.names import HOOKS
from botservice.turns.next_work import PendingDelivery, StartedTurn, Work

EVERY_SECONDS: Final = 0.05
"""Between two beginnings: 20 a second; Telegram takes about 30 messages in all."""


class ProgramLine:
    """Lets conversations begin in the order in which they came, no sooner than some time after the one before."""

    def __init__(self, begin: Callable[[int], object], *, every_seconds: float) -> None:
        """Make a line.

        Args:
            begin: Called with the id of each conversation when it is its turn.
        """
        self._begin = begin
        self._every_seconds = every_seconds
        self._waiting: dict[int, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next_at = 0.0

    def put(self, context_id: int) -> None:
        """Have a conversation wait at the end of the line, unless it waits there already."""
        self._waiting.setdefault(context_id)
        self._set_timer()

    def clear(self) -> None:
        """Let nothing begin any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        if self._timer is None and self._waiting:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._next_at, loop.time()), self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        first = next(iter(self._waiting), None)
        if first is not None:
            del self._waiting[first]
            self._next_at = asyncio.get_running_loop().time() + self._every_seconds
            self._begin(first)
            self._set_timer()


def is_of_program(work: Work) -> bool:
    """Return whether a program is behind some work, and no person waits for it."""
    match work:
        case PendingDelivery(delivery):
            return delivery.kind is DeliveryKind.UNPLANNED
        case StartedTurn(turn):
            return turn.transport.startswith(HOOKS)
        case _:
            return False
