"""Facts about persons: kept by the agent, and shown to that person alone.

Every function here names whose facts it is about, and where they are to be shown: what was said in private never
leaves the private chats of its person. Facts that people deleted or corrected are remembered as digests, so that they
do not come back.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, bindparam, delete, insert, not_, or_, select, update

from botservice.core.messages import Author, storable
from botservice.history.notes import digest_of_words
from botservice.people.fact_sources import find_source, own_words_of
from botservice.people.identities import find_identity, ids_of
from botservice.people.own_words import fitting_topic, is_said_in
from botservice.storage.chunks import chunks, select_among
from botservice.storage.database import Connection
from botservice.storage.tables.conversations import contexts, messages
from botservice.storage.tables.people import facts, identities, persons, refused_facts

BY_PERSON: Final = "person"
BY_OBSERVER: Final = "observer"
MAX_FACTS = 200  # of one person
MAX_TEXT = 500  # characters
MAX_TOPIC = 60


class Refused(StrEnum):
    """Why a fact was not kept; the text is for the agent."""

    NOBODY = "it is not known who says this, so nothing can be kept about them"
    EMPTY = "there is nothing in it"
    TOO_LONG = f"it is longer than {MAX_TEXT} characters: say it shorter"
    NOT_SAID = (
        "the person has not said all of this in one of their last messages here. Call remember again with their own "
        "words, quoted from that message, and nothing besides; if they have not said it themselves, do not keep it"
    )
    TOO_MANY = f"{MAX_FACTS} facts are kept of this person already: forget one of them first, or correct it"


@dataclass(frozen=True, slots=True)
class Fact:
    """A lasting thing about a person.

    Attributes:
        topic: What it is about; a newer fact with the same one takes its place.
        said: The words that it came from, or None if the person wrote it down themselves.
        context_keys: The chat that it came from.
        is_shareable: Whether the person lets every chat of theirs know, groups too.
        set_by: "observer" for what was found off the reply path, "person" for what they corrected, else None.
        valid_from: When it was said.
        valid_to: When something newer was said in its place; None as long as it holds.
        superseded_at: Since when that is known.
    """

    id: int
    topic: str
    text: str
    context_id: int
    is_shareable: bool
    created_at: datetime
    updated_at: datetime
    said: str | None = None
    context_keys: Mapping[str, str] | None = None
    set_by: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_at: datetime | None = None
    source_message_id: int | None = None

    @property
    def is_current(self) -> bool:
        """Whether no newer fact has superseded it."""
        return self.superseded_at is None

    @property
    def since(self) -> datetime:
        """When it was said, or last put into other words by its person."""
        return self.updated_at if self.valid_from is None or self.set_by == BY_PERSON else self.valid_from

    @property
    def until(self) -> datetime | None:
        """When the fact that superseded it was said."""
        return self.valid_to or self.superseded_at

    @property
    def shown_topic(self) -> str:
        """The topic, wherever the fact is shown; empty where it only repeats the text."""
        return "" if self.text.casefold().startswith(self.topic) else self.topic


@dataclass(frozen=True, slots=True)
class Known:
    """The facts of several authors."""

    id: int
    person_id: int
    text: str


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
    _OF_PERSON.where(_IS_VISIBLE, facts.c.ended_by.is_not(None))
    .order_by(facts.c.valid_to.desc(), facts.c.id.desc())
    .limit(_MOST_ENDED)
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
    query = _with_sources().where(identities.c.person_id == person_id).order_by(facts.c.id)
    query = query if with_ended else query.where(_IS_CURRENT)
    if context_id is not None:
        query = query.where(or_(facts.c.context_id == context_id, facts.c.is_shareable.is_(True)))
    return [read_fact(row) for row in connection.execute(query)]


def read_fact(row: Any) -> Fact:
    """Return a row as a fact."""
    return Fact(**row._asdict())


def keep_fact(
    connection: Connection, context_id: int, author: Author | None, topic: str, text: str, now: datetime
) -> Fact | Refused:
    """Keep a fact about an author, in the place of the one on the same topic; or say why it is not kept.

    All of it must be what the author said themselves, in one of their newest messages of this context: what was
    recalled from elsewhere, or said by others, is not theirs. A topic with other words than theirs and the common ones
    is left out: it would stand in prompts. Where others listen, only what was said there gives way.
    """
    identity = find_identity(connection, author)
    text, topic = _tidy(text), _tidy(topic)[:MAX_TOPIC].casefold()
    if identity is None:
        return Refused.NOBODY
    if not text:
        return Refused.EMPTY
    if len(text) > MAX_TEXT:
        return Refused.TOO_LONG
    found = find_source(connection, context_id, identity.author, text)
    if found is None:
        return Refused.NOT_SAID
    source, own = found
    topic = fitting_topic(topic, own) or text[:MAX_TOPIC].casefold()
    lock_person(connection, identity.person_id)
    known = facts_of(connection, identity.person_id)
    is_alone = is_private(connection, context_id, author)
    in_reach = [each for each in known if is_alone or each.context_id == context_id]
    same = [each for each in in_reach if each.topic == topic or each.text.casefold() == text.casefold()]
    if not same and len(known) >= MAX_FACTS:
        return Refused.TOO_MANY
    values = {
        "identity_id": identity.id,
        "context_id": context_id,
        "source_message_id": source,
        "topic": topic,
        "text": text,
    }
    kept = insert_fact(connection, values | dict.fromkeys(("created_at", "updated_at", "valid_from"), now))
    end_facts(connection, [each.id for each in same], by=kept.id, valid_to=now, now=now)
    return kept


def lock_person(connection: Connection, person_id: int) -> None:
    """Lock a person's row, so that processes write their facts one after the other."""
    connection.execute(select(persons.c.id).where(persons.c.id == person_id).with_for_update())


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
    new = {"text": _tidy(text)[:MAX_TEXT], "updated_at": now, "source_message_id": None, "set_by": BY_PERSON}
    return _change(connection, person_id, fact_id, new)


def share_fact(connection: Connection, person_id: int, fact_id: int, *, is_shareable: bool) -> bool:
    """Set whether all chats of a person may use a fact of theirs; return whether there is such a fact."""
    return _change(connection, person_id, fact_id, {"is_shareable": is_shareable})


def texts_going(connection: Connection, person_id: int, fact_ids: Sequence[int]) -> list[str]:
    """Return the texts of facts of a person, with those that they superseded."""
    is_meant = _meant(connection, person_id, fact_ids)
    return list(connection.execute(select(facts.c.text).where(is_meant)).scalars())


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


def put_aside(connection: Connection, fact_ids: Collection[int], now: datetime) -> int:
    """Hide facts until they are deleted; return how many of them were visible."""
    count = 0
    for chunk in chunks(fact_ids):
        told = update(facts).where(facts.c.id.in_(chunk), _IS_CURRENT)
        count += connection.execute(told.values(superseded_at=now)).rowcount
        # What ended is told with its dates, as long as it says by what.
        connection.execute(update(facts).where(facts.c.id.in_(chunk)).values(ended_by=None))
    return count


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


def _with_sources() -> Select[Any]:
    return (
        select(*_COLUMNS, messages.c.text.label("said"), contexts.c.context_keys)
        .join(identities, identities.c.id == facts.c.identity_id)
        .join(contexts, contexts.c.id == facts.c.context_id)
        .outerjoin(messages, messages.c.id == facts.c.source_message_id)
    )


def _tidy(text: str) -> str:
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
