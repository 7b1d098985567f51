"""/new: a fresh conversation in the same chat."""

from functools import partial
from typing import Final

from botservice.commands.command import Command
from botservice.history.rows import begin_afresh
from botservice.turns.start.commands import CommandAnswer, CommandRequest


async def _begin(request: CommandRequest) -> CommandAnswer:
    apply = partial(begin_afresh, context_id=request.context.id)
    return CommandAnswer(request.say("new.done"), apply=apply)


NEW: Final = Command("new", _begin)
