"""Searching the conversations of a browser session: which messages say certain words, and the sentence around them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Role
from botservice.core.quoting import in_one_line
from botservice.storage.database import Connection
from transports.web.files import without_contents
from transports.web.queries import list_messages, list_told
from transports.web.timeline import plain_text_of

Parts = Sequence[tuple[str, bool]]
"""A text in parts, and of each whether it is what was sought."""

MOST_WORDS: Final = 10
_AROUND: Final = 300  # characters of a message that are looked at, at either side of the first hit
_BEFORE: Final = 40  # characters that are shown before the first hit
_SHOWN: Final = 160  # characters that are shown
_ENDS: Final = (". ", "! ", "? ", "\u3002", "\uff01", "\uff1f")  # also the signs of Chinese and Japanese


@dataclass(frozen=True, slots=True)
class Hit:
    """The newest message or notice of a conversation that says what was sought, and the words around it.

    Attributes:
        place: What it is called on its page.
    """

    place: str
    at: datetime
    parts: Parts


def words_of(search: str) -> list[str]:
    """Return the words that are sought: each has to be found."""
    return search.split()[:MOST_WORDS]


def is_in(words: Collection[str], text: str) -> bool:
    """Return whether a text has every word, in any spelling."""
    folded = text.casefold()
    return all(each.casefold() in folded for each in words)


def read_hits(connection: Connection, message_ids: Collection[int], words: Collection[str]) -> dict[int, Hit]:
    """Return what is shown of messages that say the words, by their contexts."""
    rows = list_messages(connection, message_ids)
    return {row.context_id: Hit(f"message-{row.id}", row.created_at, _excerpt(row, words)) for row in rows}


def find_told(connection: Connection, identity_id: int, words: Collection[str]) -> dict[int, Hit]:
    """Return what is shown of the newest notice with all the words in each context of a person, by the context.

    Notices are what the service itself says, such as answers to commands.
    """
    found: dict[int, Hit] = {}
    for row in list_told(connection, identity_id, words):
        text = "" if row.context_id in found else in_one_line(plain_text_of(row.payload))
        if text and is_in(words, text):
            found[row.context_id] = Hit(f"notice-{row.place}", row.created_at, mark(_cut(text, words), words))
    return found


def mark(text: str, words: Collection[str]) -> Parts:
    """Return a text in parts, with every place of the words marked."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for begin, stop in _places(text, words):
        if begin >= end:
            parts += [(text[end:begin], False)] if begin > end else []
            parts.append((text[begin:stop], True))
            end = stop
    return [*parts, (text[end:], False)] if end < len(text) else parts


def _excerpt(row: Any, words: Collection[str]) -> Parts:
    """Return the sentence around the first hit, as it reads on the page: without marks of Markdown."""
    text = without_contents(row.text, row.attachments or ()) if row.role == Role.USER else row.text
    window = _window(text if is_in(words, text) else row.text, words)
    plain = in_one_line(_plain(window)) if row.role == Role.ASSISTANT else in_one_line(window)
    shown = plain if _places(plain, words) else in_one_line(window)
    return mark(_cut(shown, words), words)


def _window(text: str, words: Collection[str]) -> str:
    at = _first(text, words)
    return text[max(0, at - _AROUND) : at + _AROUND]


def _cut(text: str, words: Collection[str]) -> str:
    """Return the part of a text around the first hit, from the beginning of its sentence where that is near."""
    at = _first(text, words)
    begin = max((text.rfind(end, 0, at) + len(end) for end in _ENDS if end in text[:at]), default=0)
    if at - begin > _BEFORE:
        space = text.find(" ", at - _BEFORE, at)
        begin = at - _BEFORE if space < 0 else space + 1
    stop = begin + _SHOWN
    if stop < len(text):
        space = text.rfind(" ", at, stop)
        stop = stop if space < 0 else space
    return f"{'…' if begin else ''}{text[begin:stop].strip()}{'…' if stop < len(text) else ''}"


def _plain(markdown: str) -> str:
    from transports.markdown.reading import read_markdown

    return FormattedText(tuple(read_markdown(markdown))).plain


def _first(text: str, words: Collection[str]) -> int:
    return min((begin for begin, _ in _places(text, words)), default=0)


def _places(text: str, words: Collection[str]) -> list[tuple[int, int]]:
    """Return where words stand in a text, from left to right; of those that begin together, the longest first."""
    low = text.lower()
    low = low if len(low) == len(text) else text  # letters that are longer in small
    return sorted(
        {place for word in words for place in _places_of(low, word.lower())}, key=lambda place: (place[0], -place[1])
    )


def _places_of(text: str, word: str) -> Iterator[tuple[int, int]]:
    at = text.find(word)
    while at >= 0:
        yield at, at + len(word)
        at = text.find(word, at + len(word))


def to_json(hit: Hit) -> Mapping[str, Any]:
    """Return a hit for the page."""
    return {"place": hit.place, "parts": [{"text": text, "is_hit": is_hit} for text, is_hit in hit.parts]}
