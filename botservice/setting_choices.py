"""The choices of settings that take one of a few words."""

from enum import StrEnum


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

    MADE_UP = "made-up"  # whose address nobody named, and no page or result has
    NEVER = "never"
    ALWAYS = "always"


class SlackListen(StrEnum):
    """Which messages in Slack's channels are stored besides those addressed to the bot."""

    THREADS = "threads"
    CHANNELS = "channels"


class SlackPings(StrEnum):
    """Whom an answer may ping in Slack."""

    NONE = "none"
    USERS = "users"
    ALL = "all"
