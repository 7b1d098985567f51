"""What a fact rests on: the message in which its person said it."""

import re
from typing import Final

from sqlalchemy import Connection, bindparam, literal_column, select

from botservice.messages import Author, Role
from botservice.storage.statements import execute
from botservice.storage.tables import messages

_NEWEST = 30  # messages of people in a chat that are looked at
_OWN = 6  # of them, those of the person
_NEEDED = 1 / 3  # of a fact's words have to be the person's
_PREFIX = 4  # characters that two forms of a word have in common

# What agents put around a fact, and says nothing about whose it is.
_EMPTY: Final = frozenset(
    ("a", "an", "and", "are", "as", "called", "has", "have", "her", "his", "i", "in", "is", "it", "me", "my", "name")
) | {"of", "on", "or", "person", "that", "the", "their", "they", "to", "user"}
_WORD: Final = re.compile(r"\w+")
# What transports put around the words of others that a message repeats.
_FORWARDED: Final = "[forwarded from "
_REPLY, _REPLY_END = "[in reply to ", '"]'
_SAID = (
    select(messages.c.id, messages.c.text, messages.c.author_platform, messages.c.author_id)
    .where(
        messages.c.context_id == bindparam("context"),
        # Literally, because that is what the partial index is chosen by.
        messages.c.role == literal_column(f"'{Role.USER.value}'"),
    )
    .order_by(messages.c.position.desc())
    .limit(_NEWEST)
)


def find_source(connection: Connection, context_id: int, author: Author, text: str) -> int | None:
    """Return the newest message of an author in a context that holds enough of a fact's words; None where none does."""
    wanted = _words(text) - _EMPTY or _words(text)
    said = [
        row
        for row in execute(connection, _SAID, {"context": context_id}).all()
        if row.author_platform == author.platform and row.author_id == author.id
    ]
    for row in said[:_OWN]:
        heard = {word[:_PREFIX] for word in _words(_own(row.text))}
        if wanted and sum(word[:_PREFIX] in heard for word in wanted) >= _NEEDED * len(wanted):
            found: int = row.id
            return found
    return None


def _own(text: str) -> str:
    """Return a message without what it repeats of others."""
    return "" if text.startswith(_FORWARDED) else _without_reply(text)


def _words(text: str) -> set[str]:
    """Return the words of a text; where words are not parted by blanks, its pairs of letters."""
    words = set(_WORD.findall(text.casefold()))
    unparted = {word for word in words if any(ord(letter) >= 0x2E80 for letter in word)}  # CJK and beyond
    pairs = {word[at : at + 2] for word in unparted for at in range(max(1, len(word) - 1))}
    return (words - unparted) | pairs


def _without_reply(text: str) -> str:
    begin, end = text.find(_REPLY), text.rfind(_REPLY_END)
    return text[:begin] + text[end + len(_REPLY_END) :] if 0 <= begin < end else text
