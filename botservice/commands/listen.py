"""/listen: owners let the bot speak unasked in a group, or have it answer only what addresses it."""

from typing import Final

from botservice.commands.command import Command
from botservice.core.formatted_text import FormattedText
from botservice.people.access_queries import set_listening
from botservice.people.access_values import AccessRole
from botservice.people.names import chat_name, is_direct_topic
from botservice.texts.formatted import below
from botservice.turns.command_parsing import CommandAnswer, CommandRequest

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
