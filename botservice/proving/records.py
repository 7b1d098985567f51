"""What the town, the platform, the till and the killer take note of."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

ORDER: Final = re.compile(r"\b[gp]\d+-\d+\b")
"""The name of an order: of a group or a private chat, and which one of it."""


class OrderAnswer(StrEnum):
    """What the bot says about an order."""

    NOTED = "is noted"
    PAID = "is paid"
    IN_DOUBT = "may be paid, or not"
    OTHER = "something else"

    @classmethod
    def of(cls, text: str) -> "OrderAnswer":
        """Return which one a text is."""
        return next((each for each in cls if each.value in text), cls.OTHER)


@dataclass(frozen=True, slots=True)
class PersonMessage:
    """A message of a person. All times are seconds of one clock."""

    order: str
    chat: str
    at: float
    asks_to_pay: bool


@dataclass(frozen=True, slots=True)
class BotMessage:
    """A message of the bot, with the process that sent it."""

    order: str
    chat: str
    at: float
    process: str
    answer: OrderAnswer


@dataclass(frozen=True, slots=True)
class Paid:
    """A payment that has reached the till."""

    order: str
    at: float
    process: str


@dataclass(frozen=True, slots=True)
class Killed:
    """A process that was killed."""

    process: str
    at: float


@dataclass
class SimulationRecord:
    """Everything that was noted, each kind in the order of time."""

    said: list[PersonMessage] = field(default_factory=list)
    shown: list[BotMessage] = field(default_factory=list)
    paid: list[Paid] = field(default_factory=list)
    killed: list[Killed] = field(default_factory=list)
    ended_alone: list[str] = field(default_factory=list)
    _open: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set), init=False)

    def say(self, said: PersonMessage) -> None:
        """Note a message."""
        self.said.append(said)
        self._open[said.chat].add(said.order)

    def show(self, shown: BotMessage) -> None:
        """Note an answer."""
        self.shown.append(shown)
        self._open[shown.chat].discard(shown.order)

    def waiting(self, chat: str | None = None) -> int:
        """Return how many messages have no answer yet, in one chat or in all of them."""
        return sum(map(len, self._open.values())) if chat is None else len(self._open[chat])
