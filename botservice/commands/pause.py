"""/pause and /resume: owners take over a conversation, and give it back."""

from typing import Final

from botservice.commands.command import Command
from botservice.conversation.metadata_changes import with_key
from botservice.conversation.pausing import Pause, read_duration, set_pause
from botservice.core.formatted_text import FormattedText
from botservice.core.personas import PAUSE
from botservice.people.access_values import AccessRole
from botservice.turns.command_parsing import CommandAnswer, CommandRequest


async def _pause(request: CommandRequest) -> CommandAnswer:
    if request.role is not AccessRole.OWNER:
        return CommandAnswer(request.say("access.for_owners"))
    lasts = read_duration(request.call.arguments)
    if request.call.arguments.strip() and lasts is None:
        return CommandAnswer(request.say("pause.how"))
    if lasts is None:
        return _set(request, Pause(request.now, is_told=True), request.say("pause.done"))
    until = request.now + lasts
    said = request.say("pause.done_until", time=request.say_time(until))
    return _set(request, Pause(request.now, until, is_told=True), said)


async def _resume(request: CommandRequest) -> CommandAnswer:
    if request.role is not AccessRole.OWNER:
        return CommandAnswer(request.say("access.for_owners"))
    pause = Pause.of(request.context.metadata)
    if pause is None or not pause.holds(request.now):
        return CommandAnswer(request.say("resume.nothing"))
    return _set(request, None, request.say("resume.done"))


def _set(request: CommandRequest, pause: Pause | None, said: FormattedText) -> CommandAnswer:
    context = request.context
    # What is asked next to the command, in the same turn, is kept or answered by it already.
    context.metadata = with_key(context.metadata, PAUSE, None if pause is None else pause.as_value())
    return CommandAnswer(said, apply=lambda connection: set_pause(connection, context.id, pause))


PAUSE_COMMAND: Final = Command("pause", _pause, is_listed=False)
RESUME: Final = Command("resume", _resume, is_listed=False)
