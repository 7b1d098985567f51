"""The checker: it compares what people saw, and what was paid, against what they said; and what is noted for it."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
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


KNOWN_SECONDS: Final = 3.0
"""So long after it has sent a message a process may not have stored yet that it did."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The counts of the checker.

    Attributes:
        once: Messages with exactly one answer.
        again: Answers shown again after the process that had sent them was killed meanwhile.
        twice: Answers shown again for no such reason.
        out_of_order: Answers that came after those of later messages of the same chat.
        strange: Messages of the bot that answer nothing that was said there.
        to_pay: Messages that ask for a payment.
        paid: Orders that were paid, once or more often.
        in_doubt: Payments that a kill cut off, where the bot says that it cannot know.
        told_wrongly: Answers that do not say what has happened at the till.
        longest_wait: Seconds from a message to its first answer.
    """

    messages: int
    once: int
    lost: int
    again: int
    twice: int
    out_of_order: int
    strange: int
    to_pay: int
    paid: int
    paid_twice: int
    in_doubt: int
    told_wrongly: int
    kills: int
    ended_alone: int
    longest_wait: float

    @property
    def faults(self) -> int:
        """How much is not as it is promised. A run without messages shows nothing."""
        wrong = self.lost + self.twice + self.out_of_order + self.strange + self.paid_twice + self.told_wrongly
        return wrong + self.ended_alone + (self.messages == 0)


def examine(record: SimulationRecord) -> Findings:
    """Return what is to be found in a record."""
    said = {each.order: each for each in record.said}
    answers: dict[str, list[BotMessage]] = {order: [] for order in said}
    strange = 0
    for shown in record.shown:
        if shown.order in said and said[shown.order].chat == shown.chat:
            answers[shown.order].append(shown)
        else:
            strange += 1
    payments = Counter(each.order for each in record.paid)
    repeats = [pair for each in answers.values() for pair in pairwise(each)]
    twice = sum(not _was_killed_meanwhile(record.killed, *pair) for pair in repeats)
    first = {order: found[0] for order, found in answers.items() if found}
    return Findings(
        messages=len(said),
        once=sum(len(found) == 1 for found in answers.values()),
        lost=len(said) - len(first),
        again=len(repeats) - twice,
        twice=twice,
        out_of_order=_out_of_order(record.said, first),
        strange=strange,
        to_pay=sum(each.asks_to_pay for each in record.said),
        paid=len(payments),
        paid_twice=sum(count - 1 for count in payments.values()),
        in_doubt=sum(each.answer is OrderAnswer.IN_DOUBT for each in first.values()),
        told_wrongly=_told_wrongly(said, answers, payments, record.killed),
        kills=len(record.killed),
        ended_alone=len(record.ended_alone),
        longest_wait=max((each.at - said[order].at for order, each in first.items()), default=0.0),
    )


def _was_killed_meanwhile(killed: Sequence[Killed], before: BotMessage, after: BotMessage) -> bool:
    """Return whether the process of the first showing was killed before it can have stored that it was taken."""
    return before.process != after.process and any(
        each.process == before.process and each.at < after.at and each.at - before.at < KNOWN_SECONDS for each in killed
    )


def _out_of_order(said: Sequence[PersonMessage], first: dict[str, BotMessage]) -> int:
    """Return how many first answers came after the answer of a later message of their chat."""
    newest: dict[str, float] = {}
    count = 0
    for question in reversed(said):
        answer = first.get(question.order)
        if answer is None:
            continue
        count += answer.at > newest.get(question.chat, answer.at)
        newest[question.chat] = min(answer.at, newest.get(question.chat, answer.at))
    return count


def _told_wrongly(
    said: dict[str, PersonMessage],
    answers: dict[str, list[BotMessage]],
    payments: Counter[str],
    killed: Sequence[Killed],
) -> int:
    """Return how many answers say what is not so, and how many payments were not asked for."""
    wrong = sum(not (order in said and said[order].asks_to_pay) for order in payments)
    for order, found in answers.items():
        wrong += sum(not _is_true(said[order], each, order in payments, killed) for each in found)
    return wrong


def _is_true(question: PersonMessage, shown: BotMessage, is_paid: bool, killed: Sequence[Killed]) -> bool:  # noqa: FBT001
    match shown.answer:
        case OrderAnswer.NOTED:
            return not question.asks_to_pay
        case OrderAnswer.PAID:
            return question.asks_to_pay and is_paid
        case OrderAnswer.IN_DOUBT:  # only a kill excuses it
            return question.asks_to_pay and any(question.at < each.at < shown.at for each in killed)
        case OrderAnswer.OTHER:
            return False
