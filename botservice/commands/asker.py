"""Who gives a command, and whether others listen."""

from dataclasses import dataclass

from botservice.people.fact_queries import is_private
from botservice.people.identities import Identity
from botservice.people.queries import ensure_identity, find_identity, note_audience
from botservice.storage.database import Connection
from botservice.turns.command_parsing import CommandAnswer, CommandRequest


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who gives a command."""

    identity: Identity
    is_alone: bool

    @property
    def person_id(self) -> int:
        """The person."""
        return self.identity.person_id


def unknown(request: CommandRequest) -> CommandAnswer:
    """Return the answer for an asker without an identity, or of whom nothing is known."""
    return CommandAnswer(request.say("memory.nobody" if request.is_let_in else "forget.nothing_kept"))


async def find_asker(request: CommandRequest) -> Asker | None:
    """Return who gives a command, stored if new, or None for a person without an identity.

    Nor is anybody made known by asking who has no access.
    """
    author, context = request.message.author, request.context

    def note(connection: Connection) -> Asker | None:
        if request.is_let_in:
            identity = ensure_identity(connection, author, request.now)
        elif (identity := find_identity(connection, author)) is None:
            return None
        note_audience(connection, context.id, [(author, identity)], is_private=request.message.is_private)
        return None if identity is None else Asker(identity, is_private(connection, context.id, author))

    return await context.storage.write(note, fence=request.claim, sort_key=(context.id,))
