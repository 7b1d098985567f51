"""Who gives a command, and whether others listen."""

from dataclasses import dataclass

from sqlalchemy import Connection

from botservice.people.facts import is_private
from botservice.people.identities import Identity, ensure_identity, note_audience
from botservice.turns.commands import CommandRequest


@dataclass(frozen=True, slots=True)
class Asker:
    """Whoever gives a command.

    Attributes:
        is_alone: Whether nobody else was ever seen in this chat.
    """

    identity: Identity
    is_alone: bool

    @property
    def person_id(self) -> int:
        """The person."""
        return self.identity.person_id


async def find_asker(request: CommandRequest) -> Asker | None:
    """Return who gives a command, known from now on; None for somebody without an identity."""
    author, context = request.message.author, request.context

    def note(connection: Connection) -> Asker | None:
        identity = ensure_identity(connection, author, request.now)
        note_audience(connection, context.id, [(author, identity)], is_private=request.message.is_private)
        return None if identity is None else Asker(identity, is_private(connection, context.id, author))

    return await context.storage.write(note, fence=request.claim, sort_key=(context.id,))
