"""The commands of a service."""

import difflib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from botservice.commands.command import Command
from botservice.messages import InboundMessage
from botservice.turns.start.commands import CommandAnswer, CommandRequest


class Catalogue:
    """Finds commands by their names; the order is that of the menu."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = {command.name: command for command in commands}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def add(self, command: Command) -> None:
        """Have one more command, at the end of the menu."""
        self._commands.setdefault(command.name, command)

    def takes(self, message: InboundMessage) -> bool:
        """Return whether a message is a command, also one that nobody knows: no model is paid to guess /hlep.

        What a platform alone takes for a command, such as "!" in Slack, is one only where there is such a command.
        """
        call = message.command
        return call is not None and (call.name in self._commands or message.text.lstrip().startswith("/"))

    def counts(self, name: str) -> bool:
        """Return whether a command counts as a message."""
        command = self._commands.get(name)
        return command is not None and command.is_counted

    async def answer(self, request: CommandRequest) -> CommandAnswer:
        """Do what a command asks; for one that nobody knows, say so, with the name that looks most like it."""
        command = self._commands.get(request.call.name)
        if command is not None:
            given = await command.handler(request)
            answer = CommandAnswer(given) if isinstance(given, str) else given
            return replace(answer, is_personal=True) if command.is_personal else answer
        name, listed = request.call.name, [each.name for each in self.offered(request.tools)]
        similar = difflib.get_close_matches(name, listed, n=1)
        if similar:
            return CommandAnswer(request.say("help.meant", name=name, like=similar[0]), is_personal=True)
        return CommandAnswer(request.say("help.unknown", name=name), is_personal=True)

    def offered(self, tools: Collection[str] | None) -> list[Command]:
        """Return what menus show of an agent that has these tools; None for one that could have any."""
        return [
            each for each in self if each.is_listed and (tools is None or each.needs is None or each.needs in tools)
        ]
