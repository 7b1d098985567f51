"""What a test can order to go wrong, once, so many times, or always."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from standins.serving import Gate


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error, before any effect."""

    error: str
    status: int = 200
    headers: dict[str, str] | None = None


def limited(seconds: int) -> Refuse:
    """Return the 429 that says how long to wait."""
    return Refuse("ratelimited", 429, {"Retry-After": str(seconds)})


@dataclass(frozen=True, slots=True)
class Drop:
    """Cut the connection; nothing happened."""


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Let it happen, then cut the connection instead of answering."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Wait before the effect until the order is released."""


Fault = Refuse | Drop | LoseAnswer | Hang


@dataclass(slots=True)
class Order:
    """A fault that was ordered, and how often it has come to pass."""

    fault: Fault
    method: str
    left: int | None
    when: Callable[[dict[str, Any]], bool]
    used: int = 0
    gate: Gate = field(default_factory=Gate)

    def release(self) -> None:
        """Let what hangs go on."""
        self.gate.open()

    def cancel(self) -> None:
        """Nothing more goes wrong, and what hangs goes on."""
        self.left = 0
        self.gate.open()


class Faults:
    def __init__(self) -> None:
        self.orders: list[Order] = []

    def take(self, method: str, params: dict[str, Any]) -> Order | None:
        """Return the first order that fits, counted."""
        for order in self.orders:
            if order.left != 0 and order.method == method and order.when(params):
                order.used += 1
                order.left = None if order.left is None else order.left - 1
                return order
        return None
