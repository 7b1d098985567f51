"""One command: its name, what menus say about it, and what it does."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from re import fullmatch

from botservice.core.arguments import check, check_can, check_listed, is_async
from botservice.core.errors import BotServiceError, InvalidArgument
from botservice.texts import in_language
from botservice.turns.command_parsing import CommandAnswer, CommandRequest


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the chat.

    Attributes:
        name: What stands behind the slash: small letters, digits and _, at most 32.
        handler: What it does, returning what is answered: an async function, or an object with an async `__call__`.
        is_counted: Whether it counts as a message where messages are limited: it is work.
        is_listed: Whether menus show it; what few may do is known to those who may.
        menu: What menus say about it, at most 100 characters; by default `menu` in the table of its name in the texts.
        is_personal: Whether its answer concerns the person alone who gave it.
        needs: The tool without which it shows nothing: menus of an agent that has no such tool leave it out.
        needs_files: Whether it answers with a file: menus where none are shown leave it out.

    Raises:
        BotServiceError: no platform could show such a name.
        InvalidArgument: the handler cannot be awaited.
    """

    name: str
    handler: Callable[[CommandRequest], Awaitable[CommandAnswer | str]]
    is_listed: bool = True
    is_counted: bool = False
    menu: str | None = None
    needs: str | None = None
    is_personal: bool = False
    needs_files: bool = False

    def __post_init__(self) -> None:
        if fullmatch(r"[a-z0-9_]{1,32}", self.name) is None:
            raise BotServiceError(
                f"a command's name is 1 to 32 small letters, digits and _, without a slash; not {self.name!r}"
            )
        remedy = "nothing there can be awaited; write it as `async def`"
        check(f"the handler of command {self.name}", self.handler, is_right=is_async(self.handler), remedy=remedy)

    def description(self, language: str | None) -> str:
        """Return what menus say about it in a language."""
        return in_language(f"{self.name}.menu", language) if self.menu is None else self.menu


def checked_commands(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Return commands of a program's own, each with a name of its own."""
    listed, names = check_listed("commands=", commands, remedy="give a list: commands=[…]"), set[str]()
    for each in listed:
        check_can("one of commands=", each, "name", "handler", remedy='give a Command("name", handler, menu="…")')
        if each.name in names:
            raise InvalidArgument(f"two commands are called {each.name}: give one of them another name")
        names.add(each.name)
    return listed
