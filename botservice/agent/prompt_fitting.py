"""Leaving out of a prompt what does not fit, the least needed first, in whole pieces."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Final

from botservice.agent.prompt import IMAGE_TOKENS_TEXT, TOKENS_AROUND_A_MESSAGE, size_of
from botservice.conversation.agent_memory import RenderedStep
from botservice.core.messages import Message
from botservice.history.message_rendering import count_again, found_sizes, is_image, mark_of, mention
from botservice.history.search_values import SearchHit
from botservice.llm.tokens import TokenCounter

_CUT_MARK = "\n[… cut: too long to be read as a whole …]\n"
_FEWEST_CHARACTERS = 200
_LEAST_NEEDED: Final = ("documents", "person", "notes")


@dataclass(slots=True)
class Pieces:
    """What a prompt is made of.

    Attributes:
        texts: The sections that are one text, by their names (see `Prompt.add_section`).
        found: Best first.
        is_group: Whether more than one person speaks in the chat: then the model is told who said what.
        shared: The names that several people in it have; shared_found those with the authors of what was found.
        earlier: The steps before the current prompt's work, oldest first. A step goes or stays as a whole, so that
            there is never a call without its results.
    """

    texts: dict[str, str] = field(default_factory=dict)
    found: list[SearchHit] = field(default_factory=list)
    window: list[Message] = field(default_factory=list)
    is_group: bool = False
    shared: frozenset[str] = frozenset()
    shared_found: frozenset[str] = frozenset()
    earlier: list[RenderedStep] = field(default_factory=list)
    question: Message | None = None
    steps: list[RenderedStep] = field(default_factory=list)


def fit(
    pieces: Pieces,
    max_tokens: int,
    counter: TokenCounter,
    *,
    steps: Iterator[RenderedStep],
    earlier: Iterator[RenderedStep],
) -> tuple[dict[str, int], bool]:
    """Put into pieces as many steps as there is room for, and leave out older messages where the last one needs it.

    Returns how many pieces of each kind did not fit, without steps, and whether all steps of the current prompt's work
    did.

    What goes first: the earlier prompts' steps, older steps, older messages, remembered ones, documents, what is known
    of the person, the notes of the chat. The question always stays; where it is too long by itself, its middle goes. No
    more steps are looked at than go in.

    Args:
        counter: Measures all of it.
        steps: The steps of the current prompt's work, newest first.
        earlier: The steps before it, newest first.
    """
    size_of_message = partial(_message_size, counter=counter, shared=pieces.shared | pieces.shared_found)
    size_of_step = partial(_step_size, counter=counter)
    texts = {name: _text_size(name, text, counter) for name, text in pieces.texts.items()}
    window = [size_of_message(message) for message in pieces.window]
    found = found_sizes(pieces.found, counter, pieces.shared_found) if pieces.found else []
    question = size_of_message(pieces.question) if pieces.question else 0
    room = max_tokens - question - sum(texts.values()) - sum(window) - sum(found)
    pieces.steps, room, is_complete = _newest(steps, room, size_of_step, at_least=1)
    if is_complete:
        pieces.earlier, room, _ = _newest(earlier, room, size_of_step, at_least=0)
    left_out: dict[str, int] = {}
    left_out["window"], room = _cut_first(window, room)
    pieces.window = pieces.window[left_out["window"] :]
    left_out["found"], room = _cut_first(found[::-1], room)
    pieces.found = pieces.found[: len(pieces.found) - left_out["found"]]
    for name in _LEAST_NEEDED:
        if room < 0 and name in texts:
            room, left_out[name] = room + texts[name], 1
            del pieces.texts[name]
    if room < 0:
        room += sum(map(size_of_step, pieces.steps))
        is_complete = is_complete and not pieces.steps
        pieces.steps = []
    if room < 0 and pieces.question is not None:
        asked, pieces.question = pieces.question, _shortened(pieces.question, question + room, question)
        left_out["question"] = int(pieces.question is not asked)
    return {name: count for name, count in left_out.items() if count}, is_complete


def _newest(
    steps: Iterator[RenderedStep], room: int, size_of_step: Callable[[RenderedStep], int], *, at_least: int
) -> tuple[list[RenderedStep], int, bool]:
    """Return the newest steps that fit, oldest first, the room that is left, and whether these are all."""
    taken: list[RenderedStep] = []
    is_complete = True
    for step in steps:
        size = size_of_step(step)
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


def _text_size(section: str, text: str, counter: TokenCounter) -> int:
    if section == "system":
        return _system_size(text, counter)  # type: ignore[arg-type]  # as in count_again
    return counter.count(text) + TOKENS_AROUND_A_MESSAGE


@lru_cache(maxsize=64)
def _system_size(text: str, counter: TokenCounter) -> int:
    return counter.count(text) + TOKENS_AROUND_A_MESSAGE


def _step_size(step: RenderedStep, counter: TokenCounter) -> int:
    return step.size(counter.name, partial(size_of, counter=counter))


def _message_size(message: Message, counter: TokenCounter, shared: frozenset[str]) -> int:
    said = message.full_text
    size = counter.count(said) if message.token_count is None else message.token_count
    size += TOKENS_AROUND_A_MESSAGE + said.count("\n")  # of a group's messages, further lines are moved to the right
    if message.author and message.author.name:
        size += count_again(f"{message.author.name}{mark_of(message.author, shared)}: ", counter)
    for each in message.attachments:
        size += counter.count(IMAGE_TOKENS_TEXT if is_image(each) else mention(each))
    return size
