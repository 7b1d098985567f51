"""Showing the passages of a long message that have to do with a question, instead of its beginning."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Final, Self

from botservice.core.messages import Message

LEFT_OUT: Final = "[…]"
LONGEST_RECORD: Final = 4_000  # characters of one remembered message
_LONGEST_PASSAGE: Final = 240  # characters
_SHORTEST_PASSAGE: Final = 40
_SMALLEST: Final = 20  # characters that say something
_MARGIN: Final = 8  # tokens that the marks take
_LONGEST_MARK: Final = 100  # characters of the mark at the end


@dataclass(frozen=True, slots=True)
class Excerpt(Message):
    """Some passages of a message. Its text says with `[…]` what is left out, and at the end of which message.

    Attributes:
        whole: The message.
    """

    whole: Message | None = None

    @classmethod
    def of(cls, message: Message, text: str, token_count: int) -> Self:
        """Return a part of a message's text as an excerpt of it."""
        kept = {each.name: getattr(message, each.name) for each in fields(Message)}
        kept |= {"text": text, "references": (), "token_count": token_count}
        return cls(**kept, whole=whole_of(message))


def whole_of(message: Message) -> Message:
    """Return the message that an excerpt is of; any other as it is."""
    return message.whole if isinstance(message, Excerpt) and message.whole is not None else message


def make_excerpt(
    message: Message, most: int, asked: str, *, size: Callable[[Message], int], count: Callable[[str], int]
) -> Message:
    """Return the passages of a message that have most to do with a question; the message if all of it fits.

    Args:
        most: Tokens that it may take as it is shown.
        asked: The question; the beginning of the message is shown if it is empty.
        size: Measures a message as it is shown, in tokens.
        count: Counts the tokens of a text.
    """
    from botservice.search.passages import rank_passages

    text = message.full_text
    if len(text) <= LONGEST_RECORD and size(message) <= most:
        return message
    around = size(replace(message, text="", references=(), token_count=0)) + _MARGIN
    tokens = message.token_count or count(text[:LONGEST_RECORD])  # counting takes as long as choosing does
    measured = len(text) if message.token_count else min(len(text), LONGEST_RECORD)
    room = int((most - around) * measured / max(1, tokens))
    room = max(_SMALLEST, min(room, LONGEST_RECORD - _LONGEST_MARK))
    longest = min(_LONGEST_PASSAGE, max(_SHORTEST_PASSAGE, room // 2))
    chosen: list[tuple[int, int]] = []
    for start, end in rank_passages(text, asked, longest):
        if chosen and room < end - start:
            break
        chosen.append((start, end))
        room -= end - start + len(LEFT_OUT)
    chosen = chosen or [(0, min(len(text), _SMALLEST))]
    excerpt = _excerpt(message, text, chosen, count)
    while size(excerpt) > most:
        if len(chosen) > 1:
            chosen.pop()
        elif chosen[0][1] - chosen[0][0] > _SMALLEST:
            start, end = chosen[0]
            chosen[0] = start, start + max(_SMALLEST, (end - start) * most // size(excerpt) - 1)
        else:
            break
        excerpt = _excerpt(message, text, chosen, count)
    return excerpt


def read_on(
    message: Message, start: int, most: int, *, size: Callable[[Message], int], count: Callable[[str], int]
) -> Message:
    """Return a message from one of its characters on, as much as fits.

    Args:
        start: The character, from 0.
        most: Tokens that it may take as it is shown.
    """
    text = message.full_text
    end = min(len(text), start + LONGEST_RECORD - _LONGEST_MARK)
    while True:
        on = "" if end == len(text) else f" [… #{message.id}, goes on at start={end}]"
        shown = ("" if not start else f"{LEFT_OUT} ") + text[start:end] + on
        part = Excerpt.of(message, shown, count(shown))
        taken = size(part)
        if taken <= most or end - start <= _SMALLEST:
            return part
        end = _before_word(text, start, start + max(_SMALLEST, (end - start) * most // taken - 1))


def _before_word(text: str, start: int, end: int) -> int:
    space = text.rfind(" ", start + (end - start) * 3 // 4, end)
    return end if space < 0 else space + 1


def _excerpt(message: Message, text: str, chosen: Iterable[tuple[int, int]], count: Callable[[str], int]) -> Excerpt:
    """Return passages in the order of the text, with what is left out between them marked."""
    parts: list[str] = []
    last = 0
    for start, end in sorted(chosen):
        if text[last:start].strip():
            parts += [LEFT_OUT, text[start:end]]
        elif parts:
            parts[-1] += text[last:end]
        else:
            parts.append(text[start:end])
        last = end
    shown = " ".join([*parts, f"[… #{message.id}]"])
    return Excerpt.of(message, shown, count(shown))
