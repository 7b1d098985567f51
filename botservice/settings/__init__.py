"""The settings: read from the environment and `.env`, once, and checked."""

from botservice.settings.choices import (
    ApiChoice,
    FetchAsks,
    LogLevel,
    ReasoningEffort,
    ReasoningSummary,
    SlackListen,
    SlackPings,
)
from botservice.settings.settings import (
    BUILTIN_TOOLS,
    DEFAULT_EMBEDDING_MODEL,
    NOTES_TOKENS,
    OPENAI_API_URL,
    SHORTEST_ENCRYPTION_KEY,
    WEB_TOOLS,
    ModelSettings,
    Settings,
    is_loopback,
    one_of,
    reveal,
)

__all__ = [
    "BUILTIN_TOOLS",
    "DEFAULT_EMBEDDING_MODEL",
    "NOTES_TOKENS",
    "OPENAI_API_URL",
    "SHORTEST_ENCRYPTION_KEY",
    "WEB_TOOLS",
    "ApiChoice",
    "FetchAsks",
    "LogLevel",
    "ModelSettings",
    "ReasoningEffort",
    "ReasoningSummary",
    "Settings",
    "SlackListen",
    "SlackPings",
    "is_loopback",
    "one_of",
    "reveal",
]
