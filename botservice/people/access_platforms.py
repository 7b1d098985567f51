"""Platforms, as names of people and chats begin with them: those that are built in, and those that nobody knows."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

from botservice.core.errors import SettingsError
from botservice.people.access_records import is_platform_seen
from botservice.storage.database import Connection

BUILT_IN: Final = ("telegram", "slack", "web", "terminal")
_LIKENESS: Final = 0.8


def platform_of(name: str) -> str:
    """Return the platform of a person or a chat, such as "telegram" of "telegram:42"."""
    return name.partition(":")[0]


def is_heard_of(connection: Connection, platform: str) -> bool:
    """Return whether a platform is built in, or somebody there has written or is named: own transports have others."""
    return platform in BUILT_IN or is_platform_seen(connection, platform)


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
