"""Two answers to one question: what was different when it was asked again, and what each of them took."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from botservice.conversation.masked_secrets import mask
from botservice.core.errors import BotServiceError
from botservice.core.messages import TokenUsage
from botservice.core.policies import NANO
from botservice.llm.chat import ChatMessage

SECTIONS: Final = ("notes", "window", "earlier", "person", "waiting", "documents", "found")
"""The parts of a prompt that can be left out: what is remembered, and what was said before."""
_ROLES: Final = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different from the prompt in the record; nothing, by default.

    Attributes:
        prompt: In the place of the agent's own words at the top; skills and the persona stay behind them.
        without: Parts that are left out: notes, window, earlier, person, waiting, found.
        messages: In the place of the whole prompt, as chat-completions messages.
    """

    prompt: str | None = None
    without: Collection[str] = ()
    messages: Sequence[ChatMessage] | None = None

    def __post_init__(self) -> None:
        """Check that the changes fit together."""
        unknown = [each for each in self.without if each not in SECTIONS]
        if unknown:
            raise BotServiceError(f"a prompt has no part {unknown[0]!r} to leave out; there are: {', '.join(SECTIONS)}")
        if self.messages is not None and (self.prompt is not None or self.without):
            raise BotServiceError("messages are the whole prompt: change them, and give no prompt and no without")

    def apply(
        self, messages: Sequence[ChatMessage], sections: Mapping[str, Sequence[int]], own: Collection[str]
    ) -> list[ChatMessage]:
        """Return a prompt with the changes.

        Args:
            sections: The place of each part's first message, and the one after its last.
            own: Words that may stand at the top as the agent's own.
        """
        if self.messages is not None:
            return list(self.messages)
        gone = {place for name in self.without for place in range(*sections.get(name, (0, 0)))}
        kept = [dict(message) for place, message in enumerate(messages) if place not in gone]
        if self.prompt is None:
            return [*kept]
        if not kept or kept[0].get("role") != "system":
            return [{"role": "system", "content": self.prompt}, *kept]
        text = str(kept[0].get("content") or "")
        kept[0]["content"] = self.prompt + text[len(own_words(text, own)) :]
        return [*kept]

    def describe(self) -> list[str]:
        """Return the changes in words."""
        said = ["another prompt"] if self.prompt is not None else []
        said += ["other messages"] if self.messages is not None else []
        return said + [f"without {each}" for each in SECTIONS if each in self.without]


def read_messages(text: str) -> list[ChatMessage]:
    """Return the messages of a JSON text: a list, or what `--json` printed.

    Raises:
        BotServiceError: it is something else; it says where, and what to do.
    """
    try:
        given: Any = json.loads(text)
    except ValueError as error:
        raise BotServiceError(f"the messages are no JSON: {error}. --show-prompt prints some to begin with") from None
    if isinstance(given, dict):
        given = given.get("prompt")
    if not isinstance(given, list) or not given:
        raise BotServiceError("the messages must be a JSON list, as --show-prompt prints it")
    for number, message in enumerate(given, 1):
        if fault := find_fault(message):
            raise BotServiceError(f"message {number}: {fault}")
    return given


def find_fault(message: object) -> str | None:
    """Return what a value of a file lacks to be a chat message; None if it is one."""
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return f"a message has a role: {', '.join(_ROLES)}"
    if not isinstance(message.get("content"), str | list) and not message.get("tool_calls"):
        return "a message has a content: give it a text"
    return None


def own_words(text: str, own: Collection[str]) -> str:
    """Return the agent's own prompt from a system message, or all of it if that part is not known."""
    return next((each for each in own if each and text.startswith(each)), text)


class ResultOrigin(StrEnum):
    """Where the result of a call comes from."""

    MADE = "made"  # the call was made, when the turn was
    RECORD = "record"  # the same call was made then
    MISSING = "not in the record"  # none like it was, so there is no result


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A call of a tool in a record or a replay, with what the model was told."""

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
    tool_calls: tuple[ReplayedCall, ...] = ()
    seconds: float | None = None
    error: str | None = None

    @property
    def missing(self) -> list[ReplayedCall]:
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


UNKNOWN: Final = "-"
"""What stands in the place of a figure that is not known."""


def say_answer(answer: ReplayedAnswer) -> str:
    """Return the text of an answer, or why there is none."""
    return answer.text if answer.error is None else f"No answer: {answer.error}"


def say_calls(answer: ReplayedAnswer) -> str:
    """Return which tools were called, and where their results come from."""
    return "\n".join(map(say_call, answer.tool_calls)) or UNKNOWN


def say_call(call: ReplayedCall) -> str:
    """Return a call in a line; secrets among its arguments are not shown."""
    note = f"  [{call.origin.value}]" if call.origin is ResultOrigin.MISSING else "  [failed]" if call.is_error else ""
    return f"{call.name} {json.dumps(mask(call.arguments), ensure_ascii=False)}{note}"


def say_tokens(answer: ReplayedAnswer) -> str:
    """Return how many tokens an answer took."""
    usage = answer.usage
    if usage is None:
        return UNKNOWN
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out"


def say_cost(cost: int | None, currency: str) -> str:
    """Return a cost as text."""
    return UNKNOWN if cost is None else f"{cost / NANO:,.6f} {currency}"


def say_difference(comparison: Comparison) -> list[str]:
    """Return in lines how the answers differ, and which calls had no result."""
    lines = ["Both answers are the same."] if comparison.is_same and comparison.again.error is None else []
    facts = []
    if comparison.more_tokens is not None:
        facts.append(f"{comparison.more_tokens:+,} tokens")
    if comparison.more_cost is not None:
        facts.append(f"{comparison.more_cost / NANO:+,.6f} {comparison.currency}")
    if facts:
        lines.append(f"Difference: {', '.join(facts)}.")
    missing = comparison.again.missing
    if missing:
        names = ", ".join(dict.fromkeys(each.name for each in missing))
        times = "1 call is" if len(missing) == 1 else f"{len(missing)} calls are"
        lines.append(f"{times} not in the record, so the model was told that there is no result: {names}.")
    return lines
