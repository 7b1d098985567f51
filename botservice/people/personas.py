"""Personas of chats, by who gave them."""

from sqlalchemy import Connection, Text, cast, select, update

from botservice.personas import PERSONA, Persona
from botservice.storage.tables import contexts


def forget_personas(connection: Connection, name: str) -> None:
    """Take away what a person wanted the bot to be, in every chat.

    Args:
        name: What the person is called, such as "telegram:42".
    """
    if not name:
        return
    query = select(contexts.c.id, contexts.c.metadata).where(
        cast(contexts.c.metadata, Text).contains(f'"{PERSONA}"'),
        cast(contexts.c.metadata, Text).contains(name, autoescape=True),
    )
    for row in connection.execute(query).all():
        persona = Persona.of(row.metadata)
        if persona is not None and persona.by == name:
            left = {key: value for key, value in row.metadata.items() if key != PERSONA}
            connection.execute(update(contexts).where(contexts.c.id == row.id).values(metadata=left))
