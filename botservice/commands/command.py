"""One command: its name, what menus say about it, and what it does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from botservice.texts import in_language
from botservice.turns.start.commands import CommandAnswer, CommandRequest


@dataclass(frozen=True, slots=True)
class Command:
    """A command; the table of its name in the texts has its `menu`, which menus show: at most 100 characters.

    Attributes:
        handler: What it does; None where a transport takes care of it, as of /stop.
        is_counted: Whether it counts as a message where messages are limited: it is work.
        is_listed: Whether menus show it; what few may do is known to those who may.
    """

    name: str
    handler: Callable[[CommandRequest], Awaitable[CommandAnswer]] | None = None
    is_listed: bool = True
    is_counted: bool = False

    def description(self, language: str | None) -> str:
        """Return what menus say about it in a language."""
        return in_language(f"{self.name}.menu", language)
