"""A prompt piece by piece: what each takes and costs, what was left out, and what is new since the one before."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import listed
from botservice.conversation.replay import visible
from botservice.conversation.step_parts import content_of, prompt_messages, section_names
from botservice.core.messages import TokenUsage
from botservice.llm.tokens import counter_for
from botservice.people.budgets import Budgets
from transports.web.inspector_steps import SECTION_LABELS, show_text

_AROUND_A_MESSAGE: Final = 4  # tokens
_AN_IMAGE: Final = 800  # tokens, about
_WIDTH: Final = 1_000
_SHOWN_CHANGES: Final = 40
_OTHER_LOOK: Final = 7
_LOOKS: Final = {
    name: look for look, name in enumerate(("system", "window", "question", "found", "notes", "steps", "person"))
}
_REASONS: Final = {
    "window": "older {} of the window: the prompt would have been too long",
    "found": "{} that searching found: no room was left",
    "person": "what is known of the person: no room was left",
    "notes": "the notes of the chat: no room was left",
    "steps": "earlier {} of this turn: the prompt would have been too long",
    "question": "the middle of the question: it is too long by itself",
}
_NOUNS: Final = {"window": "message", "found": "message", "steps": "step"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A section of a prompt.

    Attributes:
        tokens: As they are counted here; servers count a little otherwise.
        cost: In billionths of the currency, its share of what the prompt cost.
    """

    label: str
    tokens: int
    cost: float
    x: int
    width: int
    look: int
    messages: int


@dataclass(frozen=True, slots=True)
class MessageDifference:
    """A message that is in one of two prompts."""

    is_new: bool
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class PromptDifferences:
    """What is different from the prompt before.

    Attributes:
        same: How many messages at the beginning are the same: a server may have kept what it made of them.
        more: How many changes there are next to those that are shown.
    """

    same: int
    same_tokens: int
    changes: Sequence[MessageDifference]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A prompt as it is shown.

    Attributes:
        tokens: As the server counted them, where it did.
        left_out: What did not fit, with the reason.
        hits: The ids of the messages that searching found, with their scores.
        documents: The places of the passages of documents, with their scores.
        coverage: How much of what was asked for the best of them has, from 0 to 1, where that is known.
        by_meaning: Whether they were found by meaning, besides words, where that is known.
    """

    pieces: Sequence[Piece]
    tokens: int
    is_counted_here: bool
    max_tokens: int | None
    left_out: Sequence[str]
    tools: Sequence[str]
    hits: Sequence[tuple[int, float]]
    documents: Sequence[tuple[str, float]] = ()
    coverage: float | None = None
    by_meaning: bool | None = None
    changes: PromptDifferences | None = None


@dataclass(slots=True)
class PromptPainter:
    """Makes the pictures of a turn's prompts; what was counted once is not counted again."""

    budgets: Budgets
    _counted: dict[tuple[str, str], int] = field(default_factory=dict)
    _facts: Mapping[str, Any] = field(default_factory=dict)

    def paint(self, step: MemoryItem, before: MemoryItem | None) -> Picture | None:
        """Return the picture of a step's prompt, or None if it has none. Steps have to come in their order."""
        facts = step.get_value("prompt_facts")
        self._facts = facts if isinstance(facts, Mapping) else self._facts
        messages = prompt_messages(step)
        if not messages:
            return None
        model, usage, max_tokens = step.get_value("model"), step.get_value("token_usage"), self._facts.get("max_tokens")
        name = model if isinstance(model, str) else ""
        sizes = [self._size(message, name) for message in messages]
        usage, coverage = usage if isinstance(usage, TokenUsage) else None, self._facts.get("coverage")
        by_meaning = self._facts.get("by_meaning")
        measured = 0 if usage is None else usage.input_tokens
        return Picture(
            pieces=self._pieces(section_names(step, messages), sizes, usage, name),
            tokens=measured or sum(sizes),
            is_counted_here=not measured,
            max_tokens=max_tokens if isinstance(max_tokens, int) else None,
            left_out=[*_left_out(self._facts.get("left_out")), *_withheld(self._facts.get("withheld"))],
            tools=[visible(str(each)) for each in listed(self._facts.get("tools"))],
            hits=_hits(self._facts.get("found")),
            documents=[(visible(str(place)), float(score)) for _, place, score in listed(self._facts.get("documents"))],
            coverage=coverage if isinstance(coverage, float) else None,
            by_meaning=by_meaning if isinstance(by_meaning, bool) else None,
            changes=None if before is None else _compare(prompt_messages(before), messages, sizes),
        )

    def _pieces(self, names: Sequence[str], sizes: Sequence[int], usage: TokenUsage | None, model: str) -> list[Piece]:
        sums: dict[str, list[int]] = {}
        for name, size in zip(names, sizes, strict=True):
            sums.setdefault(name, []).append(size)
        totals = {name: (sum(each), len(each)) for name, each in sums.items()}
        rest = 0 if usage is None else usage.input_tokens - sum(sizes)
        if rest > 0:
            totals["around"] = (rest, 0)
        whole = sum(tokens for tokens, _ in totals.values()) or 1
        cost = self._cost(model, usage or TokenUsage(whole, 0))
        pieces, x = list[Piece](), 0.0
        for name, (tokens, count) in totals.items():
            width, look = tokens / whole * _WIDTH, _LOOKS.get(name, _OTHER_LOOK)
            label = SECTION_LABELS.get(name, visible(name))
            pieces.append(Piece(label, tokens, cost * tokens / whole, round(x), max(1, round(width)), look, count))
            x += width
        return pieces

    def _cost(self, model: str, usage: TokenUsage) -> int:
        asked = TokenUsage(usage.input_tokens, 0, usage.cached_tokens, cache_write_tokens=usage.cache_write_tokens)
        return self.budgets.price(model, asked).cost

    def _size(self, message: Mapping[str, Any], model: str) -> int:
        images = sum(1 for each in listed(message.get("content")) if _is_image(each))
        key = (model, content_of(message))
        if key not in self._counted:
            self._counted[key] = counter_for(model or None).count(key[1])
        return self._counted[key] + _AROUND_A_MESSAGE + images * _AN_IMAGE


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "image_url"


def _left_out(value: Any) -> list[str]:
    found = []
    for name, count in value.items() if isinstance(value, Mapping) else ():
        if name in _REASONS and isinstance(count, int):
            noun = _NOUNS.get(name, "")
            found.append(_REASONS[name].format(f"{count} {noun if count == 1 else f'{noun}s'}"))
    return found


def _withheld(value: Any) -> list[str]:
    tools = value.items() if isinstance(value, Mapping) else ()
    return [
        visible(f"the tool {name}: nobody without the role {' or '.join(listed(roles))} has it")
        for name, roles in tools
    ]


def _hits(value: Any) -> list[tuple[int, float]]:
    pairs = (tuple(listed(each)) for each in listed(value))
    return [(int(pair[0]), float(pair[1])) for pair in pairs if len(pair) == 2 and isinstance(pair[0], int)]


def _compare(before: Sequence[Any], now: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> PromptDifferences:
    keys = [[json.dumps(dict(each), default=str, sort_keys=True) for each in prompt] for prompt in (before, now)]
    shortest = min(map(len, keys))
    same = next((place for place in range(shortest) if keys[0][place] != keys[1][place]), shortest)
    rest = shortest - same
    end = next((place for place in range(rest) if keys[0][-1 - place] != keys[1][-1 - place]), rest)
    gone, new = before[same : len(before) - end], now[same : len(now) - end]
    changes = [*(_change(each, is_new=False) for each in gone), *(_change(each, is_new=True) for each in new)]
    shown = changes[-_SHOWN_CHANGES:]
    return PromptDifferences(same, sum(sizes[:same]), shown, len(changes) - len(shown))


def _change(message: Mapping[str, Any], *, is_new: bool) -> MessageDifference:
    return MessageDifference(is_new, visible(str(message.get("role") or "")), show_text(content_of(message)))
