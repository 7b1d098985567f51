"""Which facts are kept: those that a person has an agent remember, and those that the observer finds."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from botservice.core.messages import Author
from botservice.people.fact_evidence import fitting_topic, is_said_in
from botservice.people.fact_queries import (
    drop_facts,
    end_facts,
    facts_of,
    find_source,
    insert_fact,
    is_private,
    is_refused,
    tidied,
)
from botservice.people.facts import BY_OBSERVER, BY_PERSON, MAX_FACTS, MAX_TEXT, MAX_TOPIC, Fact, Refused
from botservice.people.queries import ensure_identity, find_identity, lock_person
from botservice.storage.database import Connection


def keep_fact(
    connection: Connection, context_id: int, author: Author | None, topic: str, text: str, now: datetime
) -> Fact | Refused:
    """Keep a fact about an author, in the place of the one on the same topic; or say why it is not kept.

    All of it must be what the author said themselves, in one of their newest messages of this context: what was
    recalled from elsewhere, or said by others, is not theirs. A topic with other words than theirs and the common ones
    is left out: it would stand in prompts. Where others listen, only what was said there gives way.
    """
    identity = find_identity(connection, author)
    text, topic = tidied(text), tidied(topic)[:MAX_TOPIC].casefold()
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


# Of these a person has one at a time: the newer takes the place of the older.
SINGLE_TOPICS: Final = ("name", "age", "birthday", "home", "origin", "job", "employer", "school", "family_status")

# Of these a person has many, one for each subject: a bad knee does not end an allergy.
TOPICS_BY_SUBJECT: Final = (
    *("language", "diet", "health", "goal", "style", "taste", "hobby", "pet", "relative", "friend", "possession"),
    *("project", "plan", "habit", "event", "skill", "other"),
)

TOPICS: Final = (*SINGLE_TOPICS, *TOPICS_BY_SUBJECT)

_MOST_ENDED: Final = 400  # of one person: what does not hold any more is bounded, too


class Unkept(StrEnum):
    """Why a found statement is not stored."""

    NOBODY = "nobody"
    REFUSED = "refused"
    CORRECTED = "corrected"
    KNOWN = "known"
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True)
class Found:
    """A statement of a person about themselves.

    Attributes:
        topic: One of TOPICS.
        subject: A word of theirs, where a person has many of a topic.
        text: Their sentence, as they said it.
        replaces: What is known of them and does not hold any more, by its key, or none if that is empty.
    """

    author: Author
    message_id: int
    said_at: datetime
    topic: str
    subject: str
    text: str
    replaces: str = ""

    @property
    def key(self) -> str:
        """What one fact at a time is about."""
        return self.topic if self.topic in SINGLE_TOPICS else f"{self.topic}: {self.subject.casefold()}"


def keep_found(connection: Connection, context_id: int, found: Found, now: datetime) -> Fact | Unkept:
    """Store a statement as a fact, or return why not.

    What is newer takes the place of what was said before of the same; where the newer one is known already, this one
    is kept as what was so until then. Where others listen, only what was said there gives way.
    """
    identity = find_identity(connection, found.author) or ensure_identity(connection, found.author, now)
    if identity is None:
        return Unkept.NOBODY
    lock_person(connection, identity.person_id)
    if is_refused(
        connection,
        identity.person_id,
        topic=found.key,
        text=found.text,
        message_id=found.message_id,
        said_at=found.said_at,
    ):
        return Unkept.REFUSED
    every = facts_of(connection, identity.person_id, with_ended=True)
    if (reason := _why_not(found, every)) is not None:
        return reason
    ended = sorted((each for each in every if each.until is not None), key=lambda each: (each.until, each.id))
    drop_facts(connection, [each.id for each in ended[: max(0, len(ended) - _MOST_ENDED)]])
    is_alone = is_private(connection, context_id, found.author)
    same = [
        each
        for each in every
        if each.is_current and each.topic in (found.key, found.replaces) and (is_alone or each.context_id == context_id)
    ]
    if not same and sum(each.is_current for each in every) >= MAX_FACTS:
        return Unkept.TOO_MANY
    newer = min((each for each in same if each.since > found.said_at), key=lambda each: each.since, default=None)
    return _insert_found(connection, context_id, identity.id, found, same, newer, now)


def _why_not(found: Found, every: list[Fact]) -> Unkept | None:
    """Return why a statement is not stored next to the known facts.

    A sentence may say several things: where the observer finds another one in it, that is kept, too.
    """
    about = (found.key, found.replaces)
    if any(each.set_by == BY_PERSON and each.is_current and each.topic in about for each in every):
        return Unkept.CORRECTED
    for each in every:
        is_same = each.topic == found.key and each.text.casefold() == found.text.casefold()
        is_other = each.set_by == BY_OBSERVER and each.topic.partition(":")[0] != found.topic
        is_of_message = each.source_message_id == found.message_id and (
            each.topic == found.key or (not is_other and is_said_in(each.text, found.text))
        )
        if (is_same and each.is_current) or is_of_message:
            return Unkept.KNOWN
    return None


def _insert_found(
    connection: Connection,
    context_id: int,
    identity_id: int,
    found: Found,
    same: list[Fact],
    newer: Fact | None,
    now: datetime,
) -> Fact:
    values = {
        "identity_id": identity_id,
        "context_id": context_id,
        "source_message_id": found.message_id,
        "topic": found.key,
        "text": found.text,
        "created_at": now,
        "updated_at": found.said_at,
        "set_by": BY_OBSERVER,
        "valid_from": found.said_at,
    }
    if newer is not None:
        return insert_fact(connection, {**values, "superseded_at": now, "valid_to": newer.since, "ended_by": newer.id})
    kept = insert_fact(connection, values)
    end_facts(connection, [each.id for each in same], by=kept.id, valid_to=found.said_at, now=now)
    return kept
