"""Two answers to one question, and what each of them took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from botservice.core.messages import TokenUsage
from botservice.core.policies import NANO
from botservice.llm.chat import ChatMessage


class ResultOrigin(StrEnum):
    """Where the result of a call comes from."""

    MADE = "made"  # the call was made, when the turn was
    RECORD = "record"  # the same call was made then
    MISSING = "not in the record"  # none like it was, so there is no result


@dataclass(frozen=True, slots=True)
class CallMade:
    """A call of a tool that a model wanted, with what it was told."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    origin: ResultOrigin
    is_error: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, "arguments": dict(self.arguments)}


@dataclass(frozen=True, slots=True)
class ReplayedAnswer:
    """The answer to a question, and what it took.

    Attributes:
        text: What people read, or would have read; empty where there is none.
        usage: What that took, or None if no server said.
        cost: In billionths of the currency, by the prices of today, or None if no price is known.
        error: Why there is no answer.
    """

    text: str = ""
    models: tuple[str, ...] = ()
    calls: int = 0
    usage: TokenUsage | None = None
    cost: int | None = None
    tool_calls: tuple[CallMade, ...] = ()
    seconds: float | None = None
    error: str | None = None

    @property
    def missing(self) -> list[CallMade]:
        """The calls that are not in the record."""
        return [each for each in self.tool_calls if each.origin is ResultOrigin.MISSING]

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values, with the cost in the currency."""
        usage = self.usage
        return {
            "text": self.text,
            "error": self.error,
            "models": list(self.models),
            "model_calls": self.calls,
            "usage": usage and {each.name: getattr(usage, each.name) for each in fields(usage)},
            "cost": None if self.cost is None else self.cost / NANO,
            "seconds": self.seconds,
            "tool_calls": [each.as_dict() for each in self.tool_calls],
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer of a turn, and the one that came of asking again.

    Attributes:
        call: The call of a model that it began with, counted from 1.
        changed: What was different, in words.
        prompt: What the model was sent.
    """

    context_id: int
    turn_id: int
    call: int
    task: str
    changed: Sequence[str]
    prompt: Sequence[ChatMessage]
    then: ReplayedAnswer
    again: ReplayedAnswer
    currency: str

    @property
    def is_same(self) -> bool:
        """Whether both say the same, word for word."""
        return self.then.text.strip() == self.again.text.strip()

    @property
    def more_tokens(self) -> int | None:
        """How many more tokens it took, in both directions, or None if that is not known of both."""
        if self.then.usage is None or self.again.usage is None:
            return None
        return self.again.usage.total_tokens - self.then.usage.total_tokens

    @property
    def more_cost(self) -> int | None:
        """How much more it cost, in billionths of the currency, or None if that is not known of both."""
        if self.then.cost is None or self.again.cost is None:
            return None
        return self.again.cost - self.then.cost

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "context": self.context_id,
            "turn": self.turn_id,
            "call": self.call,
            "task": self.task,
            "changed": list(self.changed),
            "prompt": list(self.prompt),
            "then": self.then.as_dict(),
            "again": self.again.as_dict(),
            "difference": {
                "same_text": self.is_same,
                "tokens": self.more_tokens,
                "cost": None if self.more_cost is None else self.more_cost / NANO,
            },
            "currency": self.currency,
        }
