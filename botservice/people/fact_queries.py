"""Every statement of facts about persons, and of the messages in which they said them.

Every function names whose facts it is about, and where they are to be shown: what was said in private never leaves the
private chats of its person. Facts that people deleted or corrected are remembered as digests, so that they do not come
back.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, delete, insert, not_, or_, select, update

from botservice.core.messages import Author, storable
from botservice.core.quoting import digest_of_words
from botservice.people.fact_evidence import is_said_in
from botservice.people.facts import BY_PERSON, MAX_TEXT, Fact, Known
from botservice.people.queries import find_identity, ids_of
from botservice.storage.database import Connection
from botservice.storage.statements import chunks, select_among
from botservice.storage.tables.conditions import FACT_IS_ENDED, MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import contexts, messages
from botservice.storage.tables.people import facts, identities, refused_facts

_NEWEST = 30  # messages of people in a chat that are looked at
_OWN = 6  # of them, those of the person
_ROWS = select(*messages.c["id", "text", "own_text", "said_by_others", "attachments", "author_platform", "author_id"])
_ONE = _ROWS.where(messages.c.id == bindparam("message"))
_SAID = (
    _ROWS.where(messages.c.context_id == bindparam("context"), MESSAGE_IS_OF_A_PERSON)
    .order_by(messages.c.position.desc())
    .limit(_NEWEST)
)


def find_source(connection: Connection, context_id: int, author: Author, text: str) -> tuple[int, str] | None:
    """Return the newest message of an author in a context that says all of a fact, and the author's words in it.

    Return None if there is none. What it quotes, forwards or shares of others does not count, nor what stands in files.
    """
    said = _said_by(connection, context_id, author)[:_OWN]
    return next(((message_id, own) for message_id, own in said if is_said_in(text, own)), None)


def own_texts(connection: Connection, context_id: int, author: Author | None) -> Sequence[str]:
    """Return what an author wrote themselves in the newest messages of a context.

    Args:
        author: None for a person without a name.
    """
    return [own for _, own in _said_by(connection, context_id, author)]


def _said_by(connection: Connection, context_id: int, author: Author | None) -> list[tuple[int, str]]:
    """Return the newest messages of an author in a context by their ids, with the author's own words in them."""
    theirs = (None, None) if author is None else (author.platform, author.id)
    rows = connection.execute(_SAID, {"context": context_id}).all()
    return [(row.id, own_words_in(row)) for row in rows if (row.author_platform, row.author_id) == theirs]


def own_words_of(connection: Connection, message_id: int) -> str:
    """Return the author's own words in a message."""
    return own_words_in(connection.execute(_ONE, {"message": message_id}).one())


def own_words_in(row: Any) -> str:
    """Return the author's own words in a message's row.

    Where that is not stored, what stands in files, in brackets behind the rest, is not counted.
    """
    if row.own_text is not None:
        return str(row.own_text)
    return str(row.text).partition("\n[")[0] if row.attachments else str(row.text)


_COLUMNS = [facts.c[each.name] for each in fields(Fact) if each.name in facts.c]
_REFUSED_COLUMNS = facts.c["identity_id", "topic", "text", "source_message_id"]
_MOST_ENDED = 10  # of those that do not hold any more, in a prompt
_IS_CURRENT = facts.c.superseded_at.is_(None)
_OF_PERSON = (
    select(*_COLUMNS)
    .join(identities, identities.c.id == facts.c.identity_id)
    .where(identities.c.person_id == bindparam("person"))
)
# Private is a context in which nobody but this very identity was ever seen.
_IS_ALONE = (
    select(contexts.c.id)
    .where(
        contexts.c.id == bindparam("context"),
        contexts.c.is_shared.is_(False),
        contexts.c.only_identity_id == bindparam("identity"),
    )
    .exists()
)
_IS_VISIBLE = or_(facts.c.context_id == bindparam("context"), facts.c.is_shareable.is_(True), _IS_ALONE)
_VISIBLE = _OF_PERSON.where(_IS_VISIBLE, _IS_CURRENT).order_by(facts.c.updated_at.desc(), facts.c.id.desc())
_ENDED = (
    _OF_PERSON.where(_IS_VISIBLE, FACT_IS_ENDED).order_by(facts.c.valid_to.desc(), facts.c.id.desc()).limit(_MOST_ENDED)
)
_KNOWN = select(facts.c.id, identities.c.person_id, facts.c.text, facts.c.source_message_id).join(
    identities, identities.c.id == facts.c.identity_id
)
_ACCOUNT = identities.alias()
ARE_KNOWN = (
    select(facts.c.id)
    .join(identities, identities.c.id == facts.c.identity_id)
    .join(_ACCOUNT, _ACCOUNT.c.person_id == identities.c.person_id)
    .where(_ACCOUNT.c.platform == bindparam("platform"), _ACCOUNT.c.platform_id == bindparam("platform_id"))
    .exists()
)
"""Whether any fact is kept of an account's person, wherever it may be told."""


def visible_facts(
    connection: Connection, context_id: int, author: Author | None, *, with_ended: bool = False
) -> list[Fact]:
    """Return the facts about an author that may be told in a context, newest first.

    Where others are, or were, that is what the person said in that chat, and what they let every chat know.

    Args:
        with_ended: Also the last few that something newer was said in the place of, at the end.
    """
    identity = find_identity(connection, author)
    if identity is None:
        return []
    sought = {"context": context_id, "person": identity.person_id, "identity": identity.id}
    queries = [_VISIBLE, _ENDED] if with_ended else [_VISIBLE]
    return [read_fact(row) for query in queries for row in connection.execute(query, sought).all()]


def is_private(connection: Connection, context_id: int, author: Author | None) -> bool:
    """Return whether an author is the only one who was ever seen in a context."""
    identity = find_identity(connection, author)
    if identity is None:
        return False
    sought = {"context": context_id, "identity": identity.id}
    return bool(connection.execute(select(_IS_ALONE), sought).scalar_one())


def facts_of(
    connection: Connection, person_id: int, *, context_id: int | None = None, with_ended: bool = False
) -> list[Fact]:
    """Return the facts about a person with their sources, oldest first; for that person alone.

    Args:
        context_id: Only what may be told in this chat, where others listen.
        with_ended: Also what something newer was said in the place of.
    """
    query = (
        select(*_COLUMNS, messages.c.text.label("said"), contexts.c.context_keys)
        .join(identities, identities.c.id == facts.c.identity_id)
        .join(contexts, contexts.c.id == facts.c.context_id)
        .outerjoin(messages, messages.c.id == facts.c.source_message_id)
        .where(identities.c.person_id == person_id)
        .order_by(facts.c.id)
    )
    query = query if with_ended else query.where(_IS_CURRENT)
    if context_id is not None:
        query = query.where(or_(facts.c.context_id == context_id, facts.c.is_shareable.is_(True)))
    return [read_fact(row) for row in connection.execute(query)]


def read_fact(row: Any) -> Fact:
    """Return a row as a fact."""
    return Fact(**row._asdict())


def insert_fact(connection: Connection, values: Mapping[str, Any]) -> Fact:
    """Store a fact and return it."""
    return read_fact(connection.execute(insert(facts).values(values).returning(*_COLUMNS)).one())


def end_facts(connection: Connection, fact_ids: Sequence[int], *, by: int, valid_to: datetime, now: datetime) -> None:
    """Supersede facts by another one; they come back if that one goes."""
    if fact_ids:
        ended = update(facts).where(facts.c.id.in_(fact_ids))
        connection.execute(ended.values(superseded_at=now, valid_to=valid_to, ended_by=by))


def correct_fact(connection: Connection, person_id: int, fact_id: int, text: str, now: datetime) -> bool:
    """Put a person's own words in the place of a fact of theirs; return whether there is such a fact.

    It then cites no message: the words that it came from may be what was wrong. What it said before is not found again.
    """
    row = connection.execute(_chosen(person_id, [fact_id])).one_or_none()
    if row is not None:
        refuse(connection, [row], now)
    new = {"text": tidied(text)[:MAX_TEXT], "updated_at": now, "source_message_id": None, "set_by": BY_PERSON}
    return _change(connection, person_id, fact_id, new)


def share_fact(connection: Connection, person_id: int, fact_id: int, *, is_shareable: bool) -> bool:
    """Set whether all chats of a person may use a fact of theirs; return whether there is such a fact."""
    return _change(connection, person_id, fact_id, {"is_shareable": is_shareable})


def delete_facts(connection: Connection, person_id: int, fact_ids: Sequence[int], now: datetime) -> list[str]:
    """Delete facts of a person with those that they superseded; return their texts.

    Nobody finds them again in what was said: only the person can have them kept once more.
    """
    gone = delete(facts).where(_meant(connection, person_id, fact_ids)).returning(*_REFUSED_COLUMNS)
    rows = connection.execute(gone).all()
    refuse(connection, rows, now)
    return [row.text for row in rows]


def _meant(connection: Connection, person_id: int, fact_ids: Sequence[int]) -> ColumnElement[bool]:
    topics = [row.topic for row in connection.execute(_chosen(person_id, fact_ids))]
    is_meant = or_(facts.c.id.in_(list(fact_ids)), and_(facts.c.topic.in_(topics), not_(_IS_CURRENT)))
    return is_meant & facts.c.identity_id.in_(ids_of(person_id))


def _chosen(person_id: int, fact_ids: Sequence[int]) -> Select[Any]:
    return select(*_REFUSED_COLUMNS).where(facts.c.id.in_(list(fact_ids)), facts.c.identity_id.in_(ids_of(person_id)))


def facts_from(connection: Connection, context_id: int, message_ids: Collection[int] | None = None) -> list[Known]:
    """Return all facts from a chat, superseded ones too."""
    query = _KNOWN.where(facts.c.context_id == context_id).order_by(facts.c.id)
    chosen = None if message_ids is None else set(message_ids)
    return [Known(*known) for *known, source_id in connection.execute(query) if chosen is None or source_id in chosen]


def drop_facts(connection: Connection, fact_ids: Collection[int]) -> None:
    """Delete facts."""
    for chunk in chunks(fact_ids):
        connection.execute(delete(facts).where(facts.c.id.in_(chunk)))


def drop_unsaid(connection: Connection, message_ids: Collection[int]) -> list[Known]:
    """Delete the facts that these messages do not support any more, and return them.

    Earlier versions took what a message quotes or shares for its author's own words.
    """
    found: list[Known] = []
    for row in select_among(connection, _KNOWN, facts.c.source_message_id, message_ids):
        if not is_said_in(row.text, own_words_of(connection, row.source_message_id)):
            connection.execute(delete(facts).where(facts.c.id == row.id))
            found.append(Known(row.id, row.person_id, row.text))
    return found


def _change(connection: Connection, person_id: int, fact_id: int, values: Mapping[str, Any]) -> bool:
    of_person = ids_of(person_id)
    chosen = update(facts).where(facts.c.id == fact_id, facts.c.identity_id.in_(of_person), _IS_CURRENT)
    return connection.execute(chosen.values(values)).rowcount > 0


def tidied(text: str) -> str:
    """Return a text as it is kept: in one line, with single spaces."""
    return " ".join(storable(text).split())


def refuse(connection: Connection, rows: Iterable[Any], now: datetime) -> None:
    """Store the digests of facts that their person does not want, given as rows."""
    values = [
        {
            "identity_id": row.identity_id,
            "digest": digest_of_words(row.text, row.identity_id),
            "topic_digest": digest_of_words(row.topic, row.identity_id),
            "message_id": row.source_message_id,
            "refused_at": now,
        }
        for row in rows
    ]
    if values:
        connection.execute(insert(refused_facts), values)


def is_refused(
    connection: Connection, person_id: int, *, topic: str, text: str, message_id: int, said_at: datetime
) -> bool:
    """Return whether a person has refused a fact, by its words, its message, or its topic since then."""
    query = (
        select(refused_facts)
        .join(identities, identities.c.id == refused_facts.c.identity_id)
        .where(identities.c.person_id == person_id)
    )
    return any(
        row.message_id == message_id
        or row.digest == digest_of_words(text, row.identity_id)
        or (said_at <= row.refused_at and row.topic_digest == digest_of_words(topic, row.identity_id))
        for row in connection.execute(query).all()
    )
