"""/persona: setting how the bot behaves in this chat."""

from typing import Final

from botservice.commands.command import Command
from botservice.conversation.metadata_changes import with_key
from botservice.conversation.queries import set_metadata
from botservice.core.messages import storable
from botservice.core.personas import PERSONA, Persona
from botservice.people.access_values import AccessRole
from botservice.people.names import person_name
from botservice.turns.commands import CommandAnswer, CommandRequest

LONGEST_PERSONA: Final = 2_000
"""Characters; it stands in every prompt of the chat."""
_OFF: Final = frozenset({"off", "none", "reset", "clear"})


async def _persona(request: CommandRequest) -> CommandAnswer:
    wanted = storable(request.call.arguments).strip()
    if not request.message.is_private and request.role is not AccessRole.OWNER:
        return CommandAnswer(request.say("persona.for_owners"))
    if not wanted:
        persona = Persona.of(request.context.metadata)
        if persona is None:
            return CommandAnswer(request.say("persona.none"))
        return CommandAnswer(request.say("persona.now", persona=persona.text))
    if wanted.lower() in _OFF:
        return _set(request, None, "persona.cleared")
    if len(wanted) > LONGEST_PERSONA:
        return CommandAnswer(request.say("persona.too_long", limit=LONGEST_PERSONA))
    return _set(request, Persona(wanted, person_name(request.message.author)), "persona.done")


def _set(request: CommandRequest, persona: Persona | None, said: str) -> CommandAnswer:
    context, value = request.context, None if persona is None else persona.as_value()
    # What is asked next to the command, in the same turn, is answered by it already.
    context.metadata = with_key(context.metadata, PERSONA, value)
    return CommandAnswer(
        request.say(said),
        apply=lambda connection: set_metadata(connection, context_id=context.id, key=PERSONA, value=value),
    )


PERSONA_COMMAND: Final = Command("persona", _persona)
