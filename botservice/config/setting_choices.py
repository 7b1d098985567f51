"""The choices of settings that take one of a few words."""

from enum import StrEnum
from typing import Final


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


class ApiChoice(StrEnum):
    """How a model's server is spoken to."""

    AUTO = "auto"
    RESPONSES = "responses"
    CHAT = "chat"


class ReasoningEffort(StrEnum):
    """How hard a model thinks before it answers."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class ReasoningSummary(StrEnum):
    """Whether, and how, people see what a model thinks."""

    OFF = "off"
    AUTO = "auto"
    CONCISE = "concise"
    DETAILED = "detailed"


class FetchAsks(StrEnum):
    """Which pages need a person's approval before they are fetched."""

    MADE_UP = "made-up"  # an address that the asker did not write themselves
    NEVER = "never"
    ALWAYS = "always"


class SlackListen(StrEnum):
    """Which messages in Slack's channels are stored besides those addressed to the bot."""

    THREADS = "threads"
    CHANNELS = "channels"


class GroupAnswers(StrEnum):
    """When the bot answers in groups."""

    MENTIONED = "mentioned"
    LISTENING = "listening"


class SlackPings(StrEnum):
    """Whom an answer may ping in Slack."""

    NONE = "none"
    USERS = "users"
    ALL = "all"


DEFAULT_BOT_NAME: Final = "botservice"
MAX_BOT_NAME: Final = 64


def check_bot_name(name: str) -> str:
    """Return a name without whitespace around it.

    Raises:
        ValueError: it is empty, longer than 64 characters, or not one line of what can be seen.
    """
    name = name.strip()
    if not name or len(name) > MAX_BOT_NAME or not name.isprintable():
        raise ValueError(f"a bot's name must be one line of 1 to {MAX_BOT_NAME} characters, not {name[:80]!r}")
    return name
