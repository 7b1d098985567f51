"""/persona: how the bot is to be in this chat."""

from typing import Final

from sqlalchemy import Connection

from botservice.commands import persona_texts as texts
from botservice.commands.command import Command, Texts, in_language
from botservice.contexts import set_metadata, with_key
from botservice.messages import storable
from botservice.people.access_values import AccessRole
from botservice.people.names import person_name
from botservice.personas import PERSONA, Persona
from botservice.turns.commands import CommandAnswer, CommandRequest

LONGEST_PERSONA: Final = 2_000
"""Characters; it stands in every prompt of the chat."""
_OFF: Final = frozenset({"off", "none", "reset", "clear"})


async def _persona(request: CommandRequest) -> CommandAnswer:
    wanted = storable(request.call.arguments).strip()
    if not request.message.is_private and request.role is not AccessRole.OWNER:
        return _say(request, texts.FOR_OWNERS)
    if not wanted:
        return _show(request)
    if wanted.lower() in _OFF:
        return _set(request, None, texts.CLEARED)
    if len(wanted) > LONGEST_PERSONA:
        return _say(request, texts.TOO_LONG, limit=LONGEST_PERSONA)
    return _set(request, Persona(wanted, person_name(request.message.author)), texts.DONE)


def _show(request: CommandRequest) -> CommandAnswer:
    persona = Persona.of(request.context.metadata)
    if persona is None:
        return _say(request, texts.NONE)
    return _say(request, texts.NOW, persona=persona.text.replace("```", "'''"))


def _set(request: CommandRequest, persona: Persona | None, said: Texts) -> CommandAnswer:
    context, value = request.context, None if persona is None else persona.as_value()
    # What is asked beside the command, in the same turn, is answered by it already.
    context.metadata = with_key(context.metadata, PERSONA, value)

    def apply(connection: Connection) -> None:
        set_metadata(connection, context_id=context.id, key=PERSONA, value=value)

    return CommandAnswer(in_language(said, request.language), apply=apply)


def _say(request: CommandRequest, said: Texts, **values: object) -> CommandAnswer:
    return CommandAnswer(in_language(said, request.language).format(**values))


PERSONA_COMMAND: Final = Command("persona", texts.MENU, _persona)
