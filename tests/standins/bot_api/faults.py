"""What a test can order to go wrong, once, so many times, or always."""

from collections.abc import Callable
from dataclasses import dataclass, field

from standins.bot_api.calls import Call
from standins.serving import Gate


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error, before any effect. `html` is how a proxy in front of the API says it."""

    status: int
    description: str
    parameters: dict[str, int] | None = None
    html: bool = False


def flood(retry_after: int) -> Refuse:
    """Return the 429 that says how long to wait."""
    return Refuse(429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after})


def server_error(status: int = 500, *, html: bool = False) -> Refuse:
    return Refuse(status, {500: "Internal Server Error", 502: "Bad Gateway"}.get(status, "Error"), html=html)


@dataclass(frozen=True, slots=True)
class Drop:
    """Cut the connection; nothing happened."""


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Let it happen, then cut the connection instead of answering."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Take so long, before or after the effect, and go on."""

    seconds: float
    after_effect: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """Wait until the order is released or the client leaves, before or after the effect."""

    after_effect: bool = False


Fault = Refuse | Drop | LoseAnswer | Delay | Hang


@dataclass(slots=True)
class Order:
    """A fault that was ordered, and how often it has come to pass."""

    fault: Fault
    method: str | None
    chat_id: int | None
    when: Callable[[Call], bool]
    left: int | None
    used: int = 0
    gate: Gate = field(default_factory=Gate)

    def release(self) -> None:
        """Let what hangs go on, now and from now on."""
        self.gate.open()

    def cancel(self) -> None:
        """Nothing more goes wrong, and what hangs goes on."""
        self.left = 0
        self.gate.open()

    def fits(self, call: Call) -> bool:
        return (
            self.left != 0
            and (self.method is None or self.method.lower() == call.method.lower())
            and (self.chat_id is None or self.chat_id == call.chat_id)
            and self.when(call)
        )

    def take(self) -> "Order":
        self.used += 1
        self.left = None if self.left is None else self.left - 1
        return self


class Faults:
    def __init__(self) -> None:
        self.orders: list[Order] = []

    def order(
        self, fault: Fault, method: str | None, chat_id: int | None, when: Callable[[Call], bool], times: int | None
    ) -> Order:
        self.orders = [order for order in self.orders if order.left != 0]
        self.orders.append(Order(fault, method, chat_id, when, times))
        return self.orders[-1]

    def take(self, call: Call) -> Order | None:
        """Return the first order that fits, counted."""
        return next((order.take() for order in self.orders if order.fits(call)), None)
