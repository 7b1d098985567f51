"""The list of the conversations of a browser session: their titles, and searching them.

A conversation is opened by its context keys, and the session in those is always the one of the cookie: a guessed name
of a conversation only names a new one of the same session.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botservice.conversation.queries import set_metadata
from botservice.core.messages import Author
from botservice.core.personas import TITLE
from botservice.core.quoting import in_one_line
from botservice.people.queries import find_identity
from botservice.storage.database import Connection
from transports.web.files import without_contents
from transports.web.inbound_events import FIRST, NAME
from transports.web.queries import find_chat, find_saying, list_conversations
from transports.web.search import Hit, find_told, is_in, read_hits, words_of

PAGE: Final = 50
LONGEST_TITLE: Final = 120  # characters of one that a person gave
LONGEST_SEARCH: Final = 200

_FIRST_WORDS: Final = 60  # characters of a title that is made
_WORD: Final = re.compile(r"\s\S*$")


@dataclass(frozen=True, slots=True)
class Listed:
    """A conversation in the list.

    Attributes:
        name: What its address calls it.
        at: When its last message was written, or where something was sought, the one that says it.
        place: Where it stands: the list goes on below it.
        hit: What it says of what was sought; None where its title alone does.
    """

    name: str
    title: str
    at: datetime | None
    place: int
    hit: Hit | None = None


def find_mine(
    connection: Connection, session: str, *, search: str = "", before: int | None = None, limit: int = PAGE
) -> list[Listed]:
    """Return the conversations of a session, the newest first."""
    identity = find_identity(connection, Author(NAME, session))
    if identity is None:
        return []
    words = words_of(search)
    rows = list_conversations(connection, identity.id, before, None if words else limit)
    mine = [row for row in rows if is_mine(row.context_keys, session)]
    saying = find_saying(connection, identity.id, words) if words else {}
    told = find_told(connection, identity.id, words) if words else {}
    if words:
        mine = [row for row in mine if is_in(words, _title(row)) or row.id in saying or row.id in told]
    shown = mine[:limit]
    said = read_hits(connection, [saying[row.id] for row in shown if row.id in saying], words)
    return [_list(row, _newest(said.get(row.id), told.get(row.id))) for row in shown]


def _newest(*hits: Hit | None) -> Hit | None:
    return max(filter(None, hits), key=lambda hit: hit.at, default=None)


def _list(row: Any, hit: Hit | None) -> Listed:
    name, at = row.context_keys.get("thread_id", FIRST), row.at if hit is None else hit.at
    return Listed(name, _title(row), at, row.last_message_id, hit)


def is_mine(keys: Mapping[str, str], session: str) -> bool:
    """Return whether a context is a conversation of a session."""
    return keys.get("transport") == NAME and keys.get("session_id") == session


def rename(connection: Connection, chat: str, title: str) -> bool:
    """Give a chat a title, or with an empty one its first words again; return whether there is such a chat."""
    context_id = find_chat(connection, chat)
    if context_id is None:
        return False
    set_metadata(connection, context_id=context_id, key=TITLE, value=in_one_line(title)[:LONGEST_TITLE] or None)
    return True


def _title(row: Any) -> str:
    given = row.metadata.get(TITLE)
    return given if isinstance(given, str) and given else _first_words(row.said or "", row.files or ())


def _first_words(said: str, files: Sequence[Mapping[str, Any]]) -> str:
    """Return what a conversation began with, in one short line: words, or else the name of a file."""
    words = in_one_line(without_contents(said, files))
    if not words:
        return next((in_one_line(each.get("name") or "") for each in files if each.get("name")), "")
    if len(words) <= _FIRST_WORDS:
        return words
    cut = _WORD.sub("", words[: _FIRST_WORDS + 1])
    return f"{cut if len(cut) <= _FIRST_WORDS else words[:_FIRST_WORDS]}…"
