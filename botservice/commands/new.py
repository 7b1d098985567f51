"""/new: a fresh conversation, in a topic of its own where a chat has them; otherwise in the same chat."""

from functools import partial
from typing import Final

from botservice.commands.command import Command
from botservice.history.queries import begin_afresh
from botservice.turns.command_parsing import CommandAnswer, CommandRequest


async def _begin(request: CommandRequest) -> CommandAnswer:
    open_topic = request.open_topic if request.message.is_private else None
    if open_topic is not None and await open_topic(request.label("new.topic_name")):
        return CommandAnswer(request.say("new.topic"))
    apply = partial(begin_afresh, context_id=request.context.id)
    return CommandAnswer(request.say("new.done"), apply=apply)


NEW: Final = Command("new", _begin)
