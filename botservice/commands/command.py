"""One command: its name, what menus say about it, and what it does."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from botservice.turns.commands import DEFAULT_LANGUAGE, CommandAnswer, CommandRequest

LANGUAGES: Final = ("en", "de", "es", "fr", "it", "pt", "ru", "ko", "ja", "zh")
Texts = Mapping[str, str]
"""A text by the two letters of its language; English always."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the menu.

    Attributes:
        descriptions: What menus say, at most 100 characters.
        handler: What it does; None where a transport takes care of it, as of /stop.
        is_counted: Whether it counts as a message where messages are limited: it is work.
        is_listed: Whether menus show it; what few may do is known to those who may.
    """

    name: str
    descriptions: Texts
    handler: Callable[[CommandRequest], Awaitable[CommandAnswer]] | None = None
    is_listed: bool = True
    is_counted: bool = False


def in_language(texts: Texts, language: str) -> str:
    """Return a text in a language, or in English where there is none."""
    return texts.get(language, texts[DEFAULT_LANGUAGE])
