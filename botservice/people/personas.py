"""Personas of chats, by who gave them."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Text, cast, select, update

from botservice.personas import PERSONA, Persona
from botservice.storage.tables import contexts


def personas_of(connection: Connection, name: str) -> list[str]:
    """Return what a person, called such as "telegram:42", wants the bot to be, in all chats."""
    found = (Persona.of(row.metadata) for row in _given(connection, name))
    return [persona.text for persona in found if persona is not None]


def forget_personas(connection: Connection, name: str) -> None:
    """Take away what a person, called such as "telegram:42", wanted the bot to be, in every chat."""
    for row in list(_given(connection, name)):
        left = {key: value for key, value in row.metadata.items() if key != PERSONA}
        connection.execute(update(contexts).where(contexts.c.id == row.id).values(metadata=left))


def _given(connection: Connection, name: str) -> Iterator[Any]:
    if not name:
        return
    kept = cast(contexts.c.metadata, Text)
    query = select(contexts.c.id, contexts.c.metadata).where(
        kept.contains(f'"{PERSONA}"', autoescape=True), kept.contains(name, autoescape=True)
    )
    for row in connection.execute(query).all():
        persona = Persona.of(row.metadata)
        if persona is not None and persona.by == name:
            yield row
