"""Every statement that stores messages, or reads them by id, place, event and time."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Select, bindparam, func, select, update

from botservice.core.errors import StorageError
from botservice.core.messages import Author, Message, storable
from botservice.history.rows import Bounds, NewMessage, read_message, read_messages, storable_author, store_attachment
from botservice.llm.tokens import TokenCounter
from botservice.storage.database import Connection, Row
from botservice.storage.message_references import NOTHING, decode_references, encode_references, insert_references
from botservice.storage.statements import LARGEST_ID, chunks, of_each_database
from botservice.storage.tables.conditions import MESSAGE_HAS_AUTHOR, MESSAGE_IS_OF_A_PERSON, MESSAGE_IS_SAID
from botservice.storage.tables.conversations import contexts, messages

COLUMNS = messages.c[
    *("id", "position", "role", "text", "attachments", "author_platform", "author_id", "author_name", "created_at"),
    *("token_count", "token_encoding", "external_id", "is_all_own", "said_by_others"),
]
# Statements are made once: making one again for every call takes SQLAlchemy longer than running it.
_OF_EVENT = select(*COLUMNS, messages.c.context_id).where(messages.c.event_id == bindparam("event"))
_OF_TURN = select(*COLUMNS, messages.c.context_id).where(messages.c.answers_turn_id == bindparam("turn"))
OF_CONTEXT = select(*COLUMNS).where(messages.c.context_id == bindparam("context"))
# A sum, so that no index is chosen by it: for ten ids SQLite would rather look through the whole context.
_OF_EVENTS = OF_CONTEXT.where(messages.c.event_id.in_(bindparam("events", expanding=True))).order_by(
    messages.c.position
)
_BY_ID = select(*COLUMNS).where(
    messages.c.context_id + 0 == bindparam("context"), messages.c.id.in_(bindparam("ids", expanding=True))
)
_NEWEST_FIRST = (
    OF_CONTEXT.where(messages.c.position < bindparam("before"))
    .order_by(messages.c.position.desc())
    .limit(bindparam("most"))
)
_BETWEEN = (
    OF_CONTEXT.where(messages.c.position > bindparam("after"), messages.c.position <= bindparam("last"))
    .order_by(messages.c.position)
    .limit(bindparam("most"))
)
_AT = OF_CONTEXT.where(messages.c.position.in_(bindparam("positions", expanding=True)))
_COUNT = (
    select(func.count())
    .select_from(messages)
    .where(
        messages.c.context_id == bindparam("context"),
        messages.c.position > bindparam("after"),
        messages.c.position < bindparam("before"),
    )
)
_STATE = select(contexts.c.deletion_version, contexts.c.last_position).where(contexts.c.id == bindparam("context"))
LAST_OF_A_PERSON = OF_CONTEXT.where(MESSAGE_IS_OF_A_PERSON).order_by(messages.c.position.desc()).limit(1)
# Without what the service itself notes.
_LAST_SPEAKERS = 200  # messages of people: far more than a window shows
_SPEAKERS = (
    select(messages.c.author_platform, messages.c.author_id, messages.c.author_name)
    .where(messages.c.context_id == bindparam("context"), MESSAGE_IS_OF_A_PERSON)
    .order_by(messages.c.position.desc())
    .limit(_LAST_SPEAKERS)
    .subquery()
)
# A message without an author may be anybody's: it makes no second person.
_IS_SOMEBODY = _SPEAKERS.c.author_id.is_not(None) | _SPEAKERS.c.author_name.is_not(None)
_PEOPLE = select(_SPEAKERS).where(_IS_SOMEBODY).distinct()
_POSITION = select(messages.c.position).where(
    messages.c.context_id == bindparam("context"), messages.c.id == bindparam("message")
)
_TAKE_POSITIONS = (
    update(contexts)
    .where(contexts.c.id.in_(bindparam("contexts", expanding=True)))
    .values(last_position=contexts.c.last_position + bindparam("count"))
    .returning(contexts.c.id, contexts.c.last_position)
)
# Nowhere where it is stored already.
_insert = of_each_database(
    lambda insert: (
        insert(messages).on_conflict_do_nothing().returning(messages.c.id, messages.c.context_id, messages.c.position)
    )
)
_WINDOW = select(
    contexts.c.fresh_from,
    select(messages.c.position)
    .where(messages.c.context_id == bindparam("context"), messages.c.id == bindparam("message"))
    .scalar_subquery()
    .label("position"),
    contexts.c.message_count,
    contexts.c.deletion_version,
    contexts.c.last_position,
).where(contexts.c.id == bindparam("context"))
_BEGIN_AFRESH = (
    update(contexts).where(contexts.c.id == bindparam("context")).values(fresh_from=contexts.c.last_position)
)


def insert_message(connection: Connection, context_id: int, new: NewMessage) -> Message:
    """Store a message at the end of its context and return it; one that is stored already is returned as it is."""
    return insert_messages(connection, [(context_id, new)])[0]


def insert_messages(connection: Connection, given: Sequence[tuple[int, NewMessage]]) -> list[Message]:
    """Store messages, each at the end of its context, and return them; those that are stored already as they are.

    Args:
        given: The messages with the ids of their contexts, those of one context in their order.
    """
    if not given:
        return []
    free = _take_positions(connection, Counter(context_id for context_id, _ in given))
    new: list[tuple[int, NewMessage, int | None]] = []
    rows: list[dict[str, Any]] = []
    for context_id, said in given:
        each, place = _storable(said), next(free[context_id]) if context_id in free else None
        new.append((context_id, each, place))
        if place is not None:
            rows.append(_values(connection, context_id, each, place))
    found = connection.execute(_insert(connection), rows).all() if rows else ()
    ids = {(row.context_id, row.position): row.id for row in found}
    return [
        _find_stored(connection, context_id, each)
        if place is None or (message_id := ids.get((context_id, place))) is None
        else _return_stored(connection, context_id, message_id, each)
        for context_id, each, place in new
    ]


def _take_positions(connection: Connection, wanted: Mapping[int, int]) -> dict[int, Iterator[int]]:
    """Return so many new positions at the end of each context; nothing of a context that is gone."""
    free: dict[int, Iterator[int]] = {}
    for count in set(wanted.values()):
        same = [context_id for context_id, number in wanted.items() if number == count]
        for row in connection.execute(_TAKE_POSITIONS, {"contexts": same, "count": count}):
            free[row.id] = iter(range(row.last_position - count + 1, row.last_position + 1))
    return free


def _storable(new: NewMessage) -> NewMessage:
    """Return a message with its words and its moment as the database takes them."""
    return replace(
        new,
        text=storable(new.text),
        author=storable_author(new.author),
        created_at=new.created_at.astimezone(UTC),
        own_text=None if new.own_text is None else storable(new.own_text),
    )


def _values(connection: Connection, context_id: int, new: NewMessage, position: int) -> dict[str, Any]:
    """Return the columns of a message, and store its files."""
    author = new.author
    return {
        "context_id": context_id,
        "position": position,
        "role": new.role.value,
        "text": new.text,
        "attachments": [store_attachment(connection, context_id, each) for each in new.attachments] or None,
        "author_platform": author and author.platform,
        "author_id": author and author.id,
        "author_name": author and author.name,
        "created_at": new.created_at,
        "token_count": new.token_count,
        "token_encoding": new.token_encoding,
        "external_id": new.external_id,
        "event_id": new.event_id,
        "answers_turn_id": new.answers_turn_id,
        "own_text": new.own_text,
        "said_by_others": encode_references(new.references) if new.references else NOTHING,
        "is_all_own": new.is_all_own,
    }


def _return_stored(connection: Connection, context_id: int, message_id: int, new: NewMessage) -> Message:
    """Return a message whose row is stored, and store what it holds of others."""
    if new.references:
        insert_references(connection, context_id, message_id, new.references)
    return Message(
        message_id,
        new.role,
        new.text,
        new.attachments,
        new.author,
        new.created_at,
        new.token_count,
        new.external_id,
        references=decode_references(encode_references(new.references)) if new.references else (),
        is_all_own=new.is_all_own,
    )


def _find_stored(connection: Connection, context_id: int, new: NewMessage) -> Message:
    row = None
    if new.event_id is not None:
        row = connection.execute(_OF_EVENT, {"event": new.event_id}).one_or_none()
    elif new.answers_turn_id is not None:
        row = connection.execute(_OF_TURN, {"turn": new.answers_turn_id}).one_or_none()
    if row is None:
        raise StorageError(f"context {context_id} was deleted: get it again with AgentContext.get_or_create")
    return read_messages(connection, row.context_id, [row])[0]


def find_answer(connection: Connection, turn_id: int) -> Message | None:
    """Return the message of a turn, with its attachments; None if it was deleted."""
    row = connection.execute(_OF_TURN, {"turn": turn_id}).one_or_none()
    return None if row is None else read_messages(connection, row.context_id, [row])[0]


def find_message(connection: Connection, context_id: int, message_id: int) -> Message | None:
    """Return a message of a context, with its attachments; None if it was deleted."""
    found = read_by_id(connection, context_id, [message_id]).get(message_id)
    return None if found is None else found[1]


def select_messages(context_id: int) -> Select[Any]:
    """Return the query of a context's messages, without an order."""
    return select(*COLUMNS).where(messages.c.context_id == context_id)


def list_messages(connection: Connection, context_id: int) -> list[Message]:
    """Return all messages of a context, in their order."""
    rows = connection.execute(select_messages(context_id).order_by(messages.c.position)).all()
    return read_messages(connection, context_id, rows)


def read_messages_of_events(connection: Connection, context_id: int, event_ids: Sequence[int]) -> list[Message]:
    """Return the messages that events brought, in the order of the history."""
    rows = connection.execute(_OF_EVENTS, {"context": context_id, "events": event_ids}).all()
    return read_messages(connection, context_id, rows)


def read_shown(connection: Connection, context_id: int, ids: Collection[int]) -> dict[int, Message]:
    """Return messages by their ids; their files are named alone, without their bytes."""
    found: dict[int, Message] = {}
    for chunk in chunks(ids):
        rows = connection.execute(_BY_ID, {"context": context_id, "ids": chunk}).all()
        found |= {row.id: read_message(row, None, None) for row in rows}
    return found


def list_newest(
    connection: Connection, context_id: int, limit: int = LARGEST_ID, *, before: int = LARGEST_ID
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the rows of the newest messages before a position, newest first."""
    return connection.execute(_NEWEST_FIRST, {"context": context_id, "before": before, "most": limit}).all()


def list_between(
    connection: Connection, context_id: int, after: int, last: int, limit: int
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the rows of the oldest messages after one position, up to another, oldest first."""
    return connection.execute(_BETWEEN, {"context": context_id, "after": after, "last": last, "most": limit}).all()


def list_at(connection: Connection, context_id: int, positions: Iterable[int]) -> list[Row[*tuple[Any, ...]]]:
    """Return the rows of the messages at some positions, in no order."""
    found: list[Row[*tuple[Any, ...]]] = []
    for chunk in chunks(positions):
        found += connection.execute(_AT, {"context": context_id, "positions": chunk})
    return found


def count_messages(connection: Connection, context_id: int, *, after: int = 0, before: int = LARGEST_ID) -> int:
    """Return how many messages a context has between two positions."""
    return int(connection.execute(_COUNT, {"context": context_id, "after": after, "before": before}).scalar_one())


def find_state(connection: Connection, context_id: int) -> Row[*tuple[Any, ...]] | None:
    """Return the deletion version and the last position of a context; None if it is gone."""
    return connection.execute(_STATE, {"context": context_id}).one_or_none()


def find_last_user_message(connection: Connection, context_id: int) -> Message | None:
    """Return the newest message of a person in a context."""
    found = read_messages(connection, context_id, connection.execute(LAST_OF_A_PERSON, {"context": context_id}).all())
    return found[0] if found else None


def read_by_id(
    connection: Connection, context_id: int, ids: Collection[int], counter: TokenCounter | None = None
) -> dict[int, tuple[int, Message]]:
    """Return messages with their positions and files by their ids."""
    rows = connection.execute(_BY_ID, {"context": context_id, "ids": list(ids)}).all()
    read = read_messages(connection, context_id, rows, counter)
    return {row.id: (row.position, message) for row, message in zip(rows, read, strict=True)}


def read_period(
    connection: Connection, context_id: int, seconds: tuple[float, float] | None, limit: int, counter: TokenCounter
) -> list[Message]:
    """Return the newest messages that people and the assistant said in a time, newest first.

    Args:
        seconds: From when (included) until when (not included), since the epoch; None for at any time.
    """
    query = select_messages(context_id).where(MESSAGE_IS_SAID)
    since, until = seconds or (-math.inf, math.inf)
    if math.isfinite(since):
        query = query.where(messages.c.created_at >= datetime.fromtimestamp(since, UTC))
    if math.isfinite(until):
        query = query.where(messages.c.created_at < datetime.fromtimestamp(until, UTC))
    rows = connection.execute(query.order_by(messages.c.position.desc()).limit(limit)).all()
    return read_messages(connection, context_id, rows, counter)


def find_position(connection: Connection, context_id: int, message_id: int | None) -> int | None:
    """Return where a message stands in its context; None if it is not there."""
    sought = {"context": context_id, "message": message_id}
    position: int | None = connection.execute(_POSITION, sought).scalar_one_or_none()
    return position


def find_window(connection: Connection, context_id: int, message_id: int | None) -> Bounds:
    """Return between which positions the conversation before a message lies."""
    sought = {"context": context_id, "message": message_id}
    row = connection.execute(_WINDOW, sought).one_or_none()
    return Bounds(0, None, None, 0, 0) if row is None else Bounds(*row)


def find_people(connection: Connection, context_id: int) -> frozenset[Author]:
    """Return the people who have lately spoken in a context; one who has changed their name, under each.

    It looks back further than any window, so that what a window looks like seldom changes with who speaks.
    """
    return frozenset(Author(*row) for row in connection.execute(_PEOPLE, {"context": context_id}).all())


def begin_afresh(connection: Connection, context_id: int) -> None:
    """Begin a fresh conversation: what was said before is found by searching, and not shown unasked."""
    connection.execute(_BEGIN_AFRESH, {"context": context_id})


def authors_of(
    connection: Connection, context_id: int, message_ids: Sequence[int]
) -> set[tuple[str | None, str | None]]:
    """Return who wrote some messages, as platforms and ids."""
    query: Select[Any] = select(messages.c.author_platform, messages.c.author_id).where(
        messages.c.context_id == context_id, messages.c.id.in_(list(message_ids)), MESSAGE_HAS_AUTHOR
    )
    return {(row.author_platform, row.author_id) for row in connection.execute(query)}
