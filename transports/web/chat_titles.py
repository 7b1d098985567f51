"""Titles of conversations: what they were called, the people in them, or what they began with; never their ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.conversation.replay import visible
from botservice.core.personas import TITLE
from botservice.devtools.queries import find_first_words, list_named, list_speakers
from botservice.people.names import key_text
from botservice.storage.database import Connection
from botservice.transport_plugins import platform_label
from transports.web.inbound_events import NAME

_LAST_MESSAGES: Final = 20
_MOST_NAMES: Final = 3
_LONGEST: Final = 120  # characters
_FIRST_WORDS: Final = 60  # characters


@dataclass(frozen=True, slots=True)
class ChatTitle:
    """The title of a conversation, with its platform.

    Attributes:
        text: What it was called, or else the names of the people in it, or its first words; where none of that is
            known, its platform and a number.
        people: Their names, where it was called something else.
        keys: What it is found by on its platform; without what is secret or says nothing.
    """

    text: str
    platform: str
    keys: Mapping[str, str]
    people: str = ""

    @property
    def platform_label(self) -> str:
        """The platform as people call it."""
        return platform_label(self.platform)


def read_titles(connection: Connection, context_ids: Sequence[int]) -> dict[int, ChatTitle]:
    """Return the titles of conversations, by their id."""
    return {row.id: _title(connection, row) for row in list_named(connection, context_ids)}


def _title(connection: Connection, row: Any) -> ChatTitle:
    keys = {_shown(name): _shown(key_text(value)) for name, value in row.context_keys.items()}
    platform = keys.pop("transport", "api")
    keys.pop("session_id", None)
    if platform == NAME:
        keys.pop("thread_id", None)  # made up, and says nothing
    people = _shown(row.name if row.name and not row.is_shared else _speakers(connection, row.id))
    given = row.metadata.get(TITLE)
    title = _shown(given) if isinstance(given, str) else ""
    if title:
        return ChatTitle(title, platform, keys, people)
    title = people or _shown(_first_words(connection, row.id)) or f"{platform_label(platform)} chat {row.id}"
    return ChatTitle(title, platform, keys)


def _first_words(connection: Connection, context_id: int) -> str:
    """Return the beginning of what a person said first, as the list of the chat in the browser has it."""
    words = find_first_words(connection, context_id, _FIRST_WORDS + 1)
    return f"{words[:_FIRST_WORDS].rstrip()}…" if len(words) > _FIRST_WORDS else words


def _shown(text: str) -> str:
    """Return the beginning of a text in one line, without invisible characters."""
    line = " ".join(visible(text[:_LONGEST]).split())
    return f"{line}…" if len(text) > _LONGEST else line


def _speakers(connection: Connection, context_id: int) -> str:
    """Return the names of those who spoke last."""
    names = list_speakers(connection, context_id, _LAST_MESSAGES)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
