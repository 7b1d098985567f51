"""The personas and titles that people gave to chats."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Text, cast, delete, select, update

from botservice.personas import PERSONA, TITLE, Persona
from botservice.privacy.records import erase_from_records
from botservice.storage.blobs import read_blobs
from botservice.storage.chunks import chunks
from botservice.storage.tables.conditions import CONTEXT_HAS_METADATA
from botservice.storage.tables.conversations import blobs, contexts, turns


def personas_of(connection: Connection, name: str) -> list[str]:
    """Return the personas that a person, named such as "telegram:42", has set in all chats."""
    found = (Persona.of(row.metadata) for row in _given(connection, name))
    return [persona.text for persona in found if persona is not None]


def titles_of(connection: Connection, identity_id: int) -> list[str]:
    """Return the titles of the chats that are a person's alone."""
    query = select(contexts.c.metadata).where(CONTEXT_HAS_METADATA, contexts.c.only_identity_id == identity_id)
    given = (metadata.get(TITLE) for metadata in connection.execute(query.order_by(contexts.c.id)).scalars())
    return [title for title in given if isinstance(title, str)]


def forget_personas(connection: Connection, name: str) -> None:
    """Delete the personas that a person, named such as "telegram:42", has set, in every chat and its records."""
    for row in list(_given(connection, name)):
        left = {key: value for key, value in row.metadata.items() if key != PERSONA}
        connection.execute(update(contexts).where(contexts.c.id == row.id).values(metadata=left))
        words = row.metadata[PERSONA]["text"]
        erase_from_records(connection, row.id, words)
        _erase_from_system_prompts(connection, row.id, words)


def _erase_from_system_prompts(connection: Connection, context_id: int, words: str) -> None:
    in_context = turns.c.context_id == context_id
    kept = select(turns.c.system_prompt).where(in_context, turns.c.system_prompt.is_not(None)).distinct()
    for chunk in chunks(list(connection.execute(kept).scalars())):
        found = read_blobs(connection, context_id, chunk)
        gone = [digest for digest, data in found.items() if words.encode("utf-8", "surrogatepass") in data]
        cleared = update(turns).where(in_context, turns.c.system_prompt.in_(gone)).values(system_prompt=None)
        connection.execute(cleared)
        connection.execute(delete(blobs).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(gone)))


def _given(connection: Connection, name: str) -> Iterator[Any]:
    if not name:
        return
    kept = cast(contexts.c.metadata, Text)
    query = select(contexts.c.id, contexts.c.metadata).where(
        CONTEXT_HAS_METADATA, kept.contains(f'"{PERSONA}"', autoescape=True), kept.contains(name, autoescape=True)
    )
    for row in connection.execute(query).all():
        persona = Persona.of(row.metadata)
        if persona is not None and persona.by == name:
            yield row
