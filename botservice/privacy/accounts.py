"""Forgetting a person's accounts, once none of their messages is left anywhere."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Text, cast, delete, not_, select, update

from botservice.core.messages import Author
from botservice.core.personas import PERSONA, TITLE, Persona
from botservice.people.fact_queries import facts_of
from botservice.people.identities import Identity
from botservice.people.names import person_name
from botservice.people.queries import find_identity, identities_of
from botservice.people.usage_queries import forget_usage
from botservice.privacy.deletion_counts import Forgotten
from botservice.privacy.names_left import forget_notices
from botservice.privacy.own_messages import contexts_of
from botservice.privacy.records import erase_from_records
from botservice.privacy.rights import IS_NEEDED
from botservice.storage.blobs import find_holding
from botservice.storage.chunks import chunks
from botservice.storage.orphaned_files import loosen_all_files
from botservice.storage.ranges import is_by
from botservice.storage.references import find_contexts_repeating
from botservice.storage.tables.access import access_codes, access_refusals
from botservice.storage.tables.conditions import CONTEXT_HAS_METADATA
from botservice.storage.tables.conversations import blobs, contexts, messages, turns
from botservice.storage.tables.metadata import metadata
from botservice.storage.tables.people import persons
from botservice.storage.tables.slack import feedback


def accounts_of(connection: Connection, person: Author) -> list[Author]:
    """Return all accounts of a person, or the one that is named if none is stored."""
    identity = find_identity(connection, person)
    if identity is None:
        return [person]
    return [each.author for each in identities_of(connection, identity.person_id)]


def contexts_with(connection: Connection, accounts: Sequence[Author], *, but: int | None = None) -> list[int]:
    """Return the conversations in which some accounts were seen, or are repeated; but one is not looked at."""
    found = find_contexts_repeating(connection, accounts).union(contexts_of(connection, accounts))
    for account in accounts:
        identity = find_identity(connection, account)
        if identity is not None:  # who gave commands alone has said nothing, and yet has a chat
            seen = select(contexts.c.id).where(contexts.c.only_identity_id == identity.id)
            found.update(connection.execute(seen).scalars())
    return sorted(found - {but})


def forget_whom(
    connection: Connection, accounts: Sequence[Author], known: Identity | None, but: int | None, now: datetime
) -> tuple[list[int], Forgotten]:
    """Forget a person's accounts, unless they were seen since: then return where."""
    left = contexts_with(connection, accounts, but=but)
    if left:
        return left, Forgotten()
    person_id = None if known is None else known.person_id
    facts = [] if person_id is None else facts_of(connection, person_id)
    _forget_accounts(connection, accounts, person_id, now)
    return [], Forgotten(facts=len(facts))


def _forget_accounts(connection: Connection, accounts: Sequence[Author], person_id: int | None, now: datetime) -> None:
    """Forget accounts and what is kept under their names, but not their roles, which are the owner's."""
    for account in accounts:
        name = person_name(account)
        forget_usage(connection, [name], now)
        connection.execute(delete(access_codes).where(access_codes.c.person == name))
        connection.execute(delete(access_refusals).where(access_refusals.c.subject == name, not_(IS_NEEDED)))
        forget_notices(connection, "person", name)
        forget_personas(connection, name)
        is_own = (feedback.c.platform == account.platform) & (feedback.c.person_id == account.id)
        connection.execute(delete(feedback).where(is_own))
        for table in metadata.sorted_tables:
            if table is not messages and {"author_platform", "author_id", "context_id"} <= set(table.c.keys()):
                gone = delete(table).where(is_by(table, account)).returning(table.c.context_id)
                for context_id in set(connection.execute(gone).scalars()):
                    loosen_all_files(connection, context_id)
    if person_id is not None:
        theirs = [each.id for each in identities_of(connection, person_id)]
        seen = update(contexts).where(contexts.c.only_identity_id.in_(theirs))
        connection.execute(seen.values(only_identity_id=None))
        connection.execute(delete(persons).where(persons.c.id == person_id))


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
        gone = find_holding(connection, context_id, chunk, [words])
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
