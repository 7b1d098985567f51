"""/pause, /resume and /listen: owners take over a conversation or give it back, and let the bot speak unasked."""

from typing import Final

from botservice.commands.command import Command
from botservice.conversation.metadata_changes import with_key
from botservice.conversation.pausing import Pause, read_duration, set_pause
from botservice.core.formatted_text import FormattedText
from botservice.core.personas import PAUSE
from botservice.people.access_queries import set_listening
from botservice.people.access_values import AccessRole
from botservice.people.names import chat_name, is_direct_topic
from botservice.texts.formatted import below
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


_SWITCHES: Final = {"on": True, "off": False}


async def _listen(request: CommandRequest) -> CommandAnswer:
    if request.role is not AccessRole.OWNER:
        return CommandAnswer(request.say("access.for_owners"))
    context, gate = request.context, request.gate
    if request.message.is_private or is_direct_topic(context.context_keys):
        return CommandAnswer(request.say("listen.in_groups"))
    if gate is None:
        return CommandAnswer(request.say("listen.no_model"))
    chat, word = chat_name(context.context_keys), request.call.arguments.strip().lower()
    if not word:
        is_on = await gate.is_listening(context.storage, chat)
        return CommandAnswer(below(_state(request, gate.per_hour, is_on=is_on), request.say("listen.how")))
    if word not in _SWITCHES:
        return CommandAnswer(request.say("listen.how"))
    is_on = _SWITCHES[word]
    return CommandAnswer(
        _state(request, gate.per_hour, is_on=is_on),
        apply=lambda connection: set_listening(connection, chat, request.now, is_on=is_on),
    )


def _state(request: CommandRequest, per_hour: int, *, is_on: bool) -> FormattedText:
    """Say whether the bot listens, and what it does not hear."""
    if not is_on:
        return request.say("listen.off")
    said = request.say("listen.on", most=request.say_number(per_hour))
    return below(said, request.say(request.unheard)) if request.unheard else said


LISTEN: Final = Command("listen", _listen, is_listed=False)
