"""Finding the messages of one person, in all chats or in one."""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, Select, and_, not_, select

from botservice.core.messages import Author, Message, Role
from botservice.history.queries import select_messages
from botservice.history.rows import read_messages
from botservice.storage.ranges import is_by
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import deliveries, events, messages


def contexts_of(connection: Connection, authors: Iterable[Author]) -> list[int]:
    """Return the contexts in which a person wrote under one of these accounts, in the order of their ids."""
    found: set[int] = set()
    for author in authors:
        query = select(messages.c.context_id).where(is_by(messages, author)).distinct()
        found.update(connection.execute(query).scalars())
    return sorted(found)


def own_message_ids(connection: Connection, context_id: int, author: Author) -> list[int]:
    """Return the ids of all that an author wrote in a context."""
    query = select(messages.c.id).where(messages.c.context_id == context_id, is_by(messages, author))
    return list(connection.execute(query).scalars())


def is_alone(connection: Connection, context_id: int, accounts: Collection[Author]) -> bool:
    """Return whether these accounts alone wrote in a context; messages without an account are others'."""
    by_others = select(messages.c.id).where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON)
    for each in accounts:
        is_theirs = and_(
            messages.c.author_platform.is_not_distinct_from(each.platform),
            messages.c.author_id.is_not_distinct_from(each.id),
        )
        by_others = by_others.where(not_(is_theirs))
    return connection.execute(by_others.limit(1)).first() is None


def find_own_message(
    connection: Connection,
    context_id: int,
    author: Author,
    *,
    message_id: int | None = None,
    external_id: str | None = None,
) -> Message | None:
    """Return a message of an author in a context, or None if there is none, or it is another person's.

    Args:
        message_id: Which one; by default the newest.
        external_id: The platform's id of it, or of an answer to it.
    """
    query = select_messages(context_id).where(messages.c.role == Role.USER.value, is_by(messages, author))
    if message_id is not None:
        query = query.where(messages.c.id == message_id)
    elif external_id is not None:
        query = query.where(
            (messages.c.external_id == external_id) | messages.c.event_id.in_(_asked_by(context_id, external_id))
        )
    row = connection.execute(query.order_by(messages.c.position.desc()).limit(1)).one_or_none()
    return None if row is None else read_messages(connection, context_id, [row])[0]


def _asked_by(context_id: int, external_id: str) -> Select[tuple[int]]:
    """Return the query of the events that an answer on a platform answers."""
    return (
        select(events.c.id)
        .join(deliveries, deliveries.c.turn_id == events.c.turn_id)
        .where(deliveries.c.context_id == context_id, deliveries.c.external_id == external_id)
    )
