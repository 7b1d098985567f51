"""Names of people and chats as the owner writes them: platform:id."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from botservice.core.errors import SettingsError
from botservice.core.messages import Author, storable

DIRECT_TOPIC: Final = "direct_messages_topic_id"
"""The context key of one person's topic in the direct messages of a channel."""

HOOKS: Final = "hooks:"
"""What the transport of a turn or a schedule begins with that no person began; the name of its platform follows."""

_THREADS: Final = frozenset({"thread_id", "thread_ts"})
_OF_A_THREAD: Final = frozenset({"transport", DIRECT_TOPIC}) | _THREADS
_OF_A_BROWSER: Final = re.compile(r"p[0-9]+(-.*)?", re.ASCII)  # other sessions of browsers begin with a hex digit
GUEST: Final = "guest"
"""The context key of one question in a chat that the bot is no member of: the platform's id of that question."""

_FIRST: Final = "team_id"  # a Slack channel has a name only within its team


def person_name(author: Author | None) -> str:
    """Return a person's name, such as "telegram:42", or "" for one without an account."""
    if author is None or not author.platform or not author.id:
        return ""
    return storable(f"{author.platform}:{author.id}")


def browser_account(identity_id: int) -> str:
    """Return the name of a person in browsers that a link of theirs has opened."""
    return f"p{identity_id}"


def is_browser_account(platform: str | None, name: str | None) -> bool:
    """Return whether an account, or a session, is of a person who came by a link, and not of the owner."""
    return platform == "web" and name is not None and _OF_A_BROWSER.fullmatch(name) is not None


def is_chat_name(name: str) -> bool:
    """Return whether a name is a group's or a channel's on Telegram, which gives people none below zero."""
    return name.startswith("telegram:-")


def is_guest(context_keys: Mapping[str, str]) -> bool:
    """Return whether a context is a question from a chat that the bot is not in, where everyone reads along."""
    return GUEST in context_keys


def transport_of(context_keys: Mapping[str, Any], default: str = "api") -> str:
    """Read the transport that context keys name; those of a program may name none."""
    name = context_keys.get("transport")
    return name if isinstance(name, str) else default


def key_text(value: Any) -> str:
    """Write the value of a context key as people read and type it: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def is_direct_topic(context_keys: Mapping[str, Any]) -> bool:
    """Return whether a context is what one person writes to a channel, which its administrators read."""
    return DIRECT_TOPIC in context_keys


def chat_name(context_keys: Mapping[str, Any]) -> str:
    """Return a chat's name, such as "telegram:-100" or "slack:T1:C2": the same in all of its threads."""
    names = sorted(context_keys.keys() - _OF_A_THREAD, key=lambda name: (name != _FIRST, name))
    return storable(":".join([transport_of(context_keys), *(key_text(context_keys[name]) for name in names)]))


def chat_keys(context_keys: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the keys of the chat that has a context as one of its threads or topics; None for no thread."""
    if _THREADS.isdisjoint(context_keys):
        return None
    return {name: value for name, value in context_keys.items() if name not in _THREADS}


def begins_thread(context_keys: Mapping[str, Any], message_id: str | None) -> bool:
    """Return whether a message stands in the chat itself, and the thread of a context consists of answers to it."""
    return message_id is not None and context_keys.get("thread_ts") == message_id


BUILT_IN: Final = ("telegram", "slack", "web", "terminal")

_LIKENESS: Final = 0.8


def platform_of(name: str) -> str:
    """Return the platform of a person or a chat, such as "telegram" of "telegram:42"."""
    return name.partition(":")[0]


def nearest_platform(platform: str) -> str | None:
    """Return the built-in platform whose name is nearly this one."""
    return next(iter(get_close_matches(platform, BUILT_IN, n=1, cutoff=_LIKENESS)), None)


def check_platforms(names: Iterable[str], platforms: Collection[str]) -> None:
    """Check the settings of a bot without transports of its own.

    Args:
        platforms: Those that there are.

    Raises:
        SettingsError: a person or a chat is named on another one.
    """
    wrong = sorted(name for name in names if platform_of(name) not in platforms)
    if wrong:
        raise SettingsError(
            f"OWNERS and ALLOWED: {', '.join(wrong)} would be nobody: there are the platforms {', '.join(platforms)}, "
            "and those of a bot's own transports (--app)"
        )
