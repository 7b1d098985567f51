"""Leaving out of a prompt what does not fit, the least needed first, in whole pieces."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from botservice.conversation.agent_memory import RenderedStep
from botservice.core.messages import Message
from botservice.history.search_values import SearchHit

_CUT_MARK = "\n[… cut: too long to be read as a whole …]\n"
_FEWEST_CHARACTERS = 200


@dataclass(slots=True)
class Pieces:
    """What a prompt is made of.

    Attributes:
        notes: Of the chat.
        person: What is known of the person who asks.
        waiting: Which calls wait for a person's word.
        looking_at: What the person who asks has open.
        documents: Passages that were found for the question.
        found: Best first.
        is_group: Whether more than one person speaks in the chat: then the model is told who said what.
        shared: The names that several people in it have; shared_found those with the authors of what was found.
        earlier: The steps before the current prompt's work, oldest first. A step goes or stays as a whole, so that
            there is never a call without its results.
    """

    system: str = ""
    notes: str = ""
    person: str = ""
    waiting: str = ""
    looking_at: str = ""
    documents: str = ""
    found: list[SearchHit] = field(default_factory=list)
    window: list[Message] = field(default_factory=list)
    is_group: bool = False
    shared: frozenset[str] = frozenset()
    shared_found: frozenset[str] = frozenset()
    earlier: list[RenderedStep] = field(default_factory=list)
    question: Message | None = None
    steps: list[RenderedStep] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scales:
    """How pieces are measured, in tokens."""

    system: Callable[[str], int]
    text: Callable[[str], int]
    message: Callable[[Message], int]
    found: Callable[[Sequence[SearchHit]], list[int]]
    step: Callable[[RenderedStep], int]


def fit(
    pieces: Pieces, max_tokens: int, scales: Scales, *, steps: Iterator[RenderedStep], earlier: Iterator[RenderedStep]
) -> bool:
    """Put into pieces as many steps as there is room for, and leave out older messages where the last one needs it.

    Returns whether all steps of the current prompt's work are in it.

    What goes first: the earlier prompts' steps, older steps, older messages, remembered ones, documents, what is known
    of the person, the notes of the chat. The question always stays; where it is too long by itself, its middle goes. No
    more steps are looked at than go in.

    Args:
        steps: The steps of the current prompt's work, newest first.
        earlier: The steps before it, newest first.
    """
    window = [scales.message(message) for message in pieces.window]
    found = scales.found(pieces.found) if pieces.found else []
    question = scales.message(pieces.question) if pieces.question else 0
    person = scales.text(pieces.person) if pieces.person else 0
    waiting = scales.text(pieces.waiting) if pieces.waiting else 0
    notes = scales.text(pieces.notes) if pieces.notes else 0
    looking_at = scales.text(pieces.looking_at) if pieces.looking_at else 0
    documents = scales.text(pieces.documents) if pieces.documents else 0
    fixed = question + scales.system(pieces.system) + notes + person + waiting + looking_at + documents
    room = max_tokens - fixed - sum(window) - sum(found)
    pieces.steps, room, is_complete = _newest(steps, room, scales, at_least=1)
    if is_complete:
        pieces.earlier, room, _ = _newest(earlier, room, scales, at_least=0)
    cut, room = _cut_first(window, room)
    pieces.window = pieces.window[cut:]
    cut, room = _cut_first(found[::-1], room)
    pieces.found = pieces.found[: len(pieces.found) - cut]
    if room < 0:
        pieces.documents, room = "", room + documents
    if room < 0:
        pieces.person, room = "", room + person
    if room < 0:
        pieces.notes, room = "", room + notes
    if room < 0:
        room += sum(map(scales.step, pieces.steps))
        is_complete = is_complete and not pieces.steps
        pieces.steps = []
    if room < 0 and pieces.question is not None:
        pieces.question = _shortened(pieces.question, question + room, question)
    return is_complete


def count_left_out(
    pieces: Pieces, *, window: int, found: int, is_known: tuple[bool, bool], steps: int
) -> dict[str, int]:
    """Return how many pieces of each kind did not fit; kinds of which all did are not in it.

    Args:
        window: How many messages there were.
        found: How many hits.
        is_known: Whether anything was known of the person, and noted of the chat.
        steps: How many of the current prompt's work, where not all of them are in it; otherwise 0.
    """
    is_cut = pieces.question is not None and _CUT_MARK in pieces.question.text
    missing = {
        "window": window - len(pieces.window),
        "found": found - len(pieces.found),
        "person": int(is_known[0] and not pieces.person),
        "notes": int(is_known[1] and not pieces.notes),
        "steps": max(1, steps - len(pieces.steps)) if steps else 0,
        "question": int(is_cut),
    }
    return {name: count for name, count in missing.items() if count > 0}


def _newest(
    steps: Iterator[RenderedStep], room: int, scales: Scales, *, at_least: int
) -> tuple[list[RenderedStep], int, bool]:
    """Return the newest steps that fit, oldest first, the room that is left, and whether these are all."""
    taken: list[RenderedStep] = []
    is_complete = True
    for step in steps:
        size = scales.step(step)
        if size > room and len(taken) >= at_least:
            is_complete = False
            break
        taken.append(step)
        room -= size
    return taken[::-1], room, is_complete


def _cut_first(sizes: Sequence[int], room: int) -> tuple[int, int]:
    """Return how many of the first pieces have to go, and the room that is left then."""
    cut = 0
    while room < 0 and cut < len(sizes):
        room += sizes[cut]
        cut += 1
    return cut, room


def _shortened(message: Message, max_tokens: int, size: int) -> Message:
    """Return message without its middle, and without an id: these are not the words that are stored."""
    said = message.full_text
    keep = max(_FEWEST_CHARACTERS, len(said) * max(0, max_tokens) // max(1, size)) // 2
    if 2 * keep >= len(said):
        return message
    return replace(message, id=None, text=said[:keep] + _CUT_MARK + said[-keep:], references=(), token_count=None)
