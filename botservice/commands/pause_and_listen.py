"""/pause, /resume and /listen: people in charge take over a conversation, give it back, let the bot speak unasked."""

import asyncio
import logging
from typing import Final

from botservice.commands.command import Command, CommandRefused, require_owner
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.metadata_changes import with_key
from botservice.conversation.pausing import Pause, read_duration, set_pause
from botservice.conversation.queries import find_or_insert_context
from botservice.core.errors import DeliveryError
from botservice.core.formatted_text import FormattedText
from botservice.core.personas import PAUSE
from botservice.people.access_queries import set_listening
from botservice.people.access_values import AccessRole
from botservice.people.names import begins_thread, chat_keys, chat_name, is_direct_topic
from botservice.storage.database import Connection
from botservice.texts.formatted import below
from botservice.turns.commands import CommandAnswer, CommandRequest

logger = logging.getLogger(__name__)

_ASK_SECONDS: Final = 5.0  # the conversation waits meanwhile


async def _require_authority(request: CommandRequest) -> None:
    """Refuse a command of a person who is neither an owner nor an administrator of this chat.

    The platform is asked each time: an administrator of yesterday may be none today.

    Raises:
        CommandRefused: the person is neither, or the platform does not say.
    """
    if request.role is AccessRole.OWNER:
        return
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            is_administrator = await request.is_administrator()
    except (DeliveryError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        logger.warning("command.administrator_unknown", extra={"context": request.context.id, "reason": reason})
        raise CommandRefused(request.say("access.not_checked")) from error
    if is_administrator is None:  # the platform knows no administrators here
        require_owner(request)
    elif not is_administrator:
        raise CommandRefused(request.say("access.for_administrators"))


async def _pause(request: CommandRequest) -> CommandAnswer:
    await _require_authority(request)
    lasts = read_duration(request.call.arguments)
    if request.call.arguments.strip() and lasts is None:
        return CommandAnswer(request.say("pause.how"))
    until = None if lasts is None else request.now + lasts
    said = request.say("pause.done")
    if until is not None:
        said = request.say("pause.done_until", time=request.say_time(until))
    if _is_in_thread(request):
        said = below(said, request.say("pause.only_here"))
    return _set(request, Pause(request.now, until, is_told=True, is_whole=True), said)


async def _resume(request: CommandRequest) -> CommandAnswer:
    await _require_authority(request)
    context, is_in_thread = request.context, _is_in_thread(request)
    if context.pause is None or not context.pause.holds(request.now):
        return CommandAnswer(request.say("resume.nothing"))
    if is_in_thread and context.chat_pause is not None and context.chat_pause.holds(request.now):
        return _set(request, None, request.say("resume.elsewhere"))
    return _set(request, None, request.say("resume.done"))


def _is_in_thread(request: CommandRequest) -> bool:
    """Return whether a command is about one thread or topic; one that stands in a chat itself is about all of it."""
    keys = request.context.context_keys
    return chat_keys(keys) is not None and not begins_thread(keys, request.message.external_id)


def _set(request: CommandRequest, pause: Pause | None, said: FormattedText) -> CommandAnswer:
    context = request.context
    keys = None if _is_in_thread(request) else chat_keys(context.context_keys)
    # What is asked next to the command, in the same turn, is kept or answered by it already.
    if keys is None:
        context.metadata = with_key(context.metadata, PAUSE, None if pause is None else pause.as_value())
    else:
        context.chat_pause = pause

    def apply(connection: Connection) -> None:
        here = context.id if keys is None else find_or_insert_context(connection, ContextKeys.of(keys), request.now)
        set_pause(connection, here, pause)

    return CommandAnswer(said, apply=apply)


PAUSE_COMMAND: Final = Command("pause", _pause, is_listed=False)
RESUME: Final = Command("resume", _resume, is_listed=False)


_SWITCHES: Final = {"on": True, "off": False}


async def _listen(request: CommandRequest) -> CommandAnswer:
    await _require_authority(request)
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
    return below(said, request.say(request.withheld_in_groups)) if request.withheld_in_groups else said


LISTEN: Final = Command("listen", _listen, is_listed=False)
