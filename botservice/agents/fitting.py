"""Leaving out of a prompt what does not fit, the least needed first, in whole pieces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from botservice.history import SearchHit
from botservice.memory.step_view import RenderedStep
from botservice.messages import Message

_CUT_MARK = "\n[… cut: too long to be read as a whole …]\n"
_FEWEST_CHARACTERS = 200
# What goes first, and how many of it stay until everything after it has gone.
_ORDER = (("earlier", 0), ("steps", 1), ("window", 0), ("found", 0), ("steps", 0))


@dataclass(slots=True)
class Pieces:
    """What a prompt is made of.

    Attributes:
        found: Best first.
        earlier: The steps before the current prompt's work, oldest first. A step goes or stays as a whole, so that
            there is never a call without its results.
    """

    system: str = ""
    found: list[SearchHit] = field(default_factory=list)
    window: list[Message] = field(default_factory=list)
    earlier: list[RenderedStep] = field(default_factory=list)
    question: Message | None = None
    steps: list[RenderedStep] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scales:
    """How pieces are measured, in tokens."""

    text: Callable[[str], int]
    message: Callable[[Message], int]
    found: Callable[[Sequence[SearchHit]], list[int]]
    steps: Callable[[Sequence[RenderedStep]], list[int]]


def fit(pieces: Pieces, max_tokens: int, scales: Scales) -> None:
    """Leave out the earlier prompts' steps, older steps, older messages, found ones, until the rest fits.

    The question always stays; where it is too long by itself, its middle goes.
    """
    sizes: dict[str, list[int]] = {
        "earlier": scales.steps(pieces.earlier),
        "steps": scales.steps(pieces.steps),
        "window": [scales.message(message) for message in pieces.window],
        "found": scales.found(pieces.found),
    }
    question_size = scales.message(pieces.question) if pieces.question else 0
    excess = question_size + scales.text(pieces.system) + sum(map(sum, sizes.values())) - max_tokens
    for name, keep in _ORDER:
        if excess <= 0:
            return
        excess -= _cut(pieces, name, sizes[name], keep, excess)
    if excess > 0 and pieces.question is not None:
        pieces.question = _shortened(pieces.question, question_size - excess, question_size)


def _cut(pieces: Pieces, name: str, sizes: list[int], keep: int, excess: int) -> int:
    """Take pieces of one kind out until excess is gone or only keep are left; return how many tokens that saved."""
    group: Sequence[object] = getattr(pieces, name)
    is_best_first = name == "found"
    saved = cut = 0
    while saved < excess and len(group) - cut > keep:
        saved += sizes[-1 - cut] if is_best_first else sizes[cut]
        cut += 1
    kept = slice(0, len(group) - cut) if is_best_first else slice(cut, None)
    setattr(pieces, name, group[kept])
    sizes[:] = sizes[kept]
    return saved


def _shortened(message: Message, max_tokens: int, size: int) -> Message:
    """Return message without its middle, and without an id: these are not the words that are stored."""
    keep = max(_FEWEST_CHARACTERS, len(message.text) * max(0, max_tokens) // max(1, size)) // 2
    if 2 * keep >= len(message.text):
        return message
    return replace(message, id=None, text=message.text[:keep] + _CUT_MARK + message.text[-keep:], token_count=None)
