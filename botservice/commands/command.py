"""One command: its name, what menus say about it, and what it does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from botservice.texts import in_language
from botservice.turns.start.commands import CommandAnswer, CommandRequest


@dataclass(frozen=True, slots=True)
class Command:
    """A command; the table of its name in the texts has its `menu`, which menus show: at most 100 characters.

    Attributes:
        handler: What it does.
        is_counted: Whether it counts as a message where messages are limited: it is work.
        is_listed: Whether menus show it; what few may do is known to those who may.
        needs: The tool without which it shows nothing: menus of an agent that has no such tool leave it out.
    """

    name: str
    handler: Callable[[CommandRequest], Awaitable[CommandAnswer]]
    is_listed: bool = True
    is_counted: bool = False
    needs: str | None = None

    def description(self, language: str | None) -> str:
        """Return what menus say about it in a language."""
        return in_language(f"{self.name}.menu", language)
