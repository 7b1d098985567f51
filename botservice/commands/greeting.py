"""/start, /help and /stop."""

from collections.abc import Callable, Sequence
from typing import Final

from botservice.commands.command import Command
from botservice.turns.start.commands import CommandAnswer, CommandRequest


async def _start(request: CommandRequest) -> CommandAnswer:
    return CommandAnswer(request.say("start.hello"))


START: Final = Command("start", _start)
# A transport takes it in: it does not queue behind what it is to stop.
STOP: Final = Command("stop")


def help_command(menu: Callable[[str | None], Sequence[tuple[str, str]]]) -> Command:
    """Return the command that lists the others; menu gives their names and descriptions in a language."""

    async def answer(request: CommandRequest) -> CommandAnswer:
        lines = [f"/{name} – {description}" for name, description in menu(request.message.language)]  # noqa: RUF001 - a dash
        return CommandAnswer("\n\n".join([request.say("help.how"), "\n".join(lines)]))

    return Command("help", answer)
