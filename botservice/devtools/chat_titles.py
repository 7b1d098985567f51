"""Titles of conversations: what they were called, the people in them, or what they began with; never their ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, func, select

from botservice.conversation.replay import visible
from botservice.core.messages import Role
from botservice.core.personas import TITLE
from botservice.people.names import key_text
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import contexts, messages
from botservice.storage.tables.people import identities

PLATFORMS: Final = {
    "telegram": "Telegram",
    "slack": "Slack",
    "web": "Browser",
    "terminal": "Terminal",
    "api": "Program",
}
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


def platform_label(transport: str) -> str:
    """Return the name of a transport for people."""
    return PLATFORMS.get(transport, transport.capitalize() or "Program")


def read_titles(connection: Connection, context_ids: Sequence[int]) -> dict[int, ChatTitle]:
    """Return the titles of conversations, by their id."""
    query = (
        select(contexts.c.id, contexts.c.context_keys, contexts.c.metadata, contexts.c.is_shared, identities.c.name)
        .outerjoin(identities, identities.c.id == contexts.c.only_identity_id)
        .where(contexts.c.id.in_(context_ids))
    )
    return {row.id: _title(connection, row) for row in connection.execute(query).all()}


def _title(connection: Connection, row: Any) -> ChatTitle:
    keys = {_shown(name): _shown(key_text(value)) for name, value in row.context_keys.items()}
    platform = keys.pop("transport", "api")
    keys.pop("session_id", None)
    if platform == "web":
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
    of_context = messages.c.context_id == context_id
    written = func.coalesce(func.nullif(messages.c.own_text, ""), messages.c.text)  # without what stands in files
    query = select(func.substr(written, 1, _FIRST_WORDS + 1)).where(of_context, MESSAGE_IS_OF_A_PERSON)
    words = connection.execute(query.order_by(messages.c.position).limit(1)).scalar_one_or_none() or ""
    return f"{words[:_FIRST_WORDS].rstrip()}…" if len(words) > _FIRST_WORDS else words


def _shown(text: str) -> str:
    """Return the beginning of a text in one line, without invisible characters."""
    line = " ".join(visible(text[:_LONGEST]).split())
    return f"{line}…" if len(text) > _LONGEST else line


def _speakers(connection: Connection, context_id: int) -> str:
    """Return the names of those who spoke last."""
    query = (
        select(messages.c.author_name)
        .where(messages.c.context_id == context_id, messages.c.role == Role.USER.value)
        .order_by(messages.c.position.desc())
        .limit(_LAST_MESSAGES)
    )
    names = list(dict.fromkeys(name for name in connection.execute(query).scalars() if name))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
