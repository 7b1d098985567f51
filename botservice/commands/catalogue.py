"""The commands of a service."""

from collections.abc import Iterator, Sequence

from botservice.commands.command import Command
from botservice.errors import BotServiceError
from botservice.turns.start.commands import CommandAnswer, CommandRequest


class Catalogue:
    """Finds commands by their names; the order is that of the menu."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = {command.name: command for command in commands}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def knows(self, name: str) -> bool:
        """Return whether there is a command of this name that the service answers."""
        command = self._commands.get(name)
        return command is not None and command.handler is not None

    def counts(self, name: str) -> bool:
        """Return whether a command counts as a message."""
        command = self._commands.get(name)
        return command is not None and command.is_counted

    async def answer(self, request: CommandRequest) -> CommandAnswer:
        """Do what a command asks.

        Raises:
            BotServiceError: there is no such command.
        """
        command = self._commands.get(request.call.name)
        if command is None or command.handler is None:
            raise BotServiceError(f"there is no command /{request.call.name}")
        answer = await command.handler(request)
        return CommandAnswer(answer) if isinstance(answer, str) else answer

    def menu(self, language: str | None) -> list[tuple[str, str]]:
        """Return the name and the description of every command, in a language."""
        return [(command.name, command.description(language)) for command in self if command.is_listed]
