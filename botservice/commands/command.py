"""One command: its name, what menus say about it, what it does; who gives it, and whether others listen."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from re import fullmatch

from botservice.core.argument_checks import check, check_can, check_listed, is_async
from botservice.core.errors import BotServiceError, InvalidArgument
from botservice.core.formatted_text import FormattedText
from botservice.people.access_values import AccessRole
from botservice.people.fact_queries import is_private
from botservice.people.identities import Identity
from botservice.people.queries import ensure_identity, find_identity, note_audience
from botservice.storage.database import Connection
from botservice.texts import in_language
from botservice.turns.commands import CommandAnswer, CommandRequest


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the chat.

    Attributes:
        name: The name after the slash: up to 32 lower-case letters, digits and _.
        handler: An async function, or an object with an async `__call__`, that returns the answer.
        is_counted: Whether it counts toward message limits.
        is_listed: Whether menus show it.
        menu: Its description in menus, at most 100 characters; by default `menu` in the table of its name in the texts.
        is_personal: Whether its answer concerns only the person who sent it.
        needs: The tool that it depends on; menus of agents without that tool leave it out.
        needs_files: Whether it answers with a file; menus of platforms without files leave it out.

    Raises:
        BotServiceError: the name is invalid.
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
        """Look up its description for menus in a language."""
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


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who gives a command."""

    identity: Identity
    is_alone: bool

    @property
    def person_id(self) -> int:
        """The person."""
        return self.identity.person_id


class CommandRefused(Exception):
    """A command is refused.

    Attributes:
        text: What the person is told.
    """

    def __init__(self, text: FormattedText) -> None:
        super().__init__(text.plain)
        self.text = text


def require_owner(request: CommandRequest) -> None:
    """Refuse a command that only owners may give.

    Raises:
        CommandRefused: the person is not an owner.
    """
    if request.role is not AccessRole.OWNER:
        raise CommandRefused(request.say("access.for_owners"))


async def find_asker(request: CommandRequest, *, in_private: str | None = None) -> Asker:
    """Return who gives a command, stored if new; nothing is stored about a person without access.

    Args:
        in_private: The key of the refusal where others listen; None if that does not matter.

    Raises:
        CommandRefused: the person has no identity, nothing is known of them, or others listen.
    """
    author, context = request.message.author, request.context

    def note(connection: Connection) -> Asker | None:
        if request.is_let_in:
            identity = ensure_identity(connection, author, request.now)
        elif (identity := find_identity(connection, author)) is None:
            return None
        note_audience(connection, context.id, [(author, identity)], is_private=request.message.is_private)
        return None if identity is None else Asker(identity, is_private(connection, context.id, author))

    asker = await context.storage.write(note, fence=request.claim, sort_key=(context.id,))
    if asker is None:
        raise CommandRefused(request.say("memory.nobody" if request.is_let_in else "forget.nothing_kept"))
    if in_private is not None and not asker.is_alone:
        raise CommandRefused(request.say(in_private))
    return asker
