"""/start and /help: the greeting, and the list of commands."""

from collections.abc import Callable
from typing import Final

from botservice.commands.catalogue import Catalogue
from botservice.commands.command import Command
from botservice.texts.formatted import below, command, line
from botservice.turns.commands import CommandAnswer, CommandRequest


async def _start(request: CommandRequest) -> CommandAnswer:
    return CommandAnswer(request.say("start.hello"))


START: Final = Command("start", _start)


def help_command(catalogue: Callable[[], Catalogue]) -> Command:
    """Return the command that lists those of a catalogue that fit an agent and a platform."""

    async def answer(request: CommandRequest) -> CommandAnswer:
        language, commands = request.message.language, catalogue().offered(request.tools, request.capabilities)
        lines = [line(command(f"/{each.name}"), f" – {each.description(language)}") for each in commands]  # noqa: RUF001 - a dash
        return CommandAnswer(below(request.say("help.how"), below(*lines, is_close=True)))

    return Command("help", answer)
