"""Whose calls of which tool run in a conversation without being asked about: the queries that own that."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, insert, select

from botservice.core.messages import Author
from botservice.core.states import TurnStatus
from botservice.people.access_queries import read_decided_at
from botservice.people.names import person_name
from botservice.storage.database import Connection
from botservice.storage.references import decode_references
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, turns
from botservice.storage.tables.waiting import tool_grants

_INSERT = insert(tool_grants)
_OF_CONTEXT = (
    select(tool_grants).where(tool_grants.c.context_id == bindparam("context")).order_by(tool_grants.c.created_at)
)
_WHOSE = messages.c["position", "author_platform", "author_id", "is_all_own", "said_by_others"]
# Also events that have no message (any more): what was said there, and by whom, is not known.
_OF_EVENTS = select(*_WHOSE).select_from(events.outerjoin(messages, messages.c.event_id == events.c.id))
_ASKED_IN_TURN = _OF_EVENTS.where(events.c.turn_id == bindparam("turn"))
_ASKED_NOW = _OF_EVENTS.join(turns, turns.c.id == events.c.turn_id).where(
    turns.c.context_id == bindparam("context"), turns.c.status == TurnStatus.RUNNING.value
)
_OF_PEOPLE = select(*_WHOSE).where(messages.c.context_id == bindparam("context"), MESSAGE_IS_OF_A_PERSON)
# What a program asks has no event: it is the newest message.
_ASKED_BY_PROGRAM = _OF_PEOPLE.where(messages.c.event_id.is_(None)).order_by(messages.c.position.desc()).limit(1)
_LAST_OWN = (
    select(messages.c.position)
    .where(
        messages.c.context_id == bindparam("context"),
        MESSAGE_IS_OF_A_PERSON,
        messages.c.author_platform == bindparam("platform"),
        messages.c.author_id == bindparam("author"),
        messages.c.is_all_own.is_(True),
        messages.c.position < bindparam("before"),
    )
    .order_by(messages.c.position.desc())
    .limit(1)
)
_SINCE = (
    select(messages.c.position)
    .where(messages.c.context_id == bindparam("context"), MESSAGE_IS_OF_A_PERSON)
    .where(messages.c.position > bindparam("after"))
    .order_by(messages.c.position)
    .limit(bindparam("size"))
)
_ANSWERED_TURN = select(deliveries.c.turn_id).where(
    deliveries.c.context_id == bindparam("context"), deliveries.c.external_id == bindparam("message")
)
_UNTRUSTED_AT = select(contexts.c.untrusted_at).where(contexts.c.id == bindparam("context"))
_BEFORE_ALL = -1


@dataclass(frozen=True, slots=True)
class ToolGrant:
    """A tool that need not ask for a person in a conversation.

    Attributes:
        digest: Of what the tool looked like when it was allowed; None where that is not known, and it asks again.
    """

    tool: str
    created_at: datetime
    digest: str | None = None


def is_named(author: Author | None) -> bool:
    """Return whether an author is one known person, and does not write in the name of a chat as several may."""
    return author is not None and author.id is not None and not author.is_chat


def grant_tool(
    connection: Connection, context_id: int, tool: str, author: Author, now: datetime, *, digest: str | None
) -> None:
    """Let a tool run without asking, for one person in one conversation, as long as it has this digest."""
    if any((each.tool, each.digest) == (tool, digest) for each in find_grants(connection, context_id, author)):
        return
    revoke_grants(connection, context_id, author, [tool])
    values = {"context_id": context_id, "tool": tool, "created_at": now, "tool_digest": digest}
    connection.execute(_INSERT, {**values, "author_platform": author.platform, "author_id": author.id})


def revoke_grants(connection: Connection, context_id: int, author: Author, tools: Sequence[str] | None = None) -> None:
    """Make tools ask again, for one person in one conversation; all of them by default."""
    wanted = delete(tool_grants).where(_is_theirs(context_id, author))
    connection.execute(wanted if tools is None else wanted.where(tool_grants.c.tool.in_(list(tools))))


def find_grants(connection: Connection, context_id: int, author: Author | None) -> list[ToolGrant]:
    """Return the tools that need not ask for a person in a conversation, each once.

    What was allowed before somebody last gave the person roles or access was allowed to somebody of another standing.
    """
    if author is None or author.id is None:
        return []
    rows = connection.execute(_OF_CONTEXT, {"context": context_id}).all()
    own = [row for row in rows if (row.author_platform, row.author_id) == (author.platform, author.id)]
    decided_at = read_decided_at(connection, person_name(author)) if own else None
    if decided_at is not None:
        own = [row for row in own if row.created_at >= decided_at]
    return list({row.tool: ToolGrant(row.tool, row.created_at, row.tool_digest) for row in reversed(own)}.values())[
        ::-1
    ]


def is_all_said_by(connection: Connection, context_id: int, turn_id: int | None, author: Author | None) -> bool:
    """Return whether a turn is about nothing but a person's own words, with nobody else's since those before it.

    What they allowed for always is for what they ask for themselves: not for what others wrote, in a message, a file or
    a page, and not for what is asked again or was written for them. Whatever is not known counts as somebody else's.

    Args:
        turn_id: None for the one that is worked on in the context.
    """
    if not is_named(author) or author is None:
        return False
    in_context = {"context": context_id}
    asked = connection.execute(_ASKED_NOW, in_context).all()
    if turn_id is not None:
        asked = connection.execute(_ASKED_IN_TURN, {"turn": turn_id}).all()
    if not asked:
        asked = connection.execute(_ASKED_BY_PROGRAM, in_context).all()
    if not _are_own(asked, author) or not _answer_own(connection, context_id, asked, author):
        return False
    said_by = {**in_context, "platform": author.platform, "author": author.id}
    first = min(row.position for row in asked)
    before = connection.execute(_LAST_OWN, {**said_by, "before": first}).scalar_one_or_none()
    after = _BEFORE_ALL if before is None else before
    since = connection.execute(_SINCE, {**in_context, "after": after, "size": len(asked) + 1}).all()
    untrusted_at = connection.execute(_UNTRUSTED_AT, in_context).scalar_one_or_none()
    is_alone = {row.position for row in since} == {row.position for row in asked}
    return is_alone and (untrusted_at is None or untrusted_at < after)


def list_askers(connection: Connection, turn_id: int) -> list[Author | None]:
    """Return who sent the messages that a turn answers; None for one that is not known (any more)."""
    rows = connection.execute(_ASKED_IN_TURN, {"turn": turn_id}).all()
    return [None if row.position is None else Author(row.author_platform, row.author_id) for row in rows]


def _are_own(rows: Sequence[Any], author: Author) -> bool:
    """Return whether there are messages, and an author wrote all of each."""
    theirs = (author.platform, author.id)
    return bool(rows) and all((row.author_platform, row.author_id) == theirs and row.is_all_own for row in rows)


def _answer_own(connection: Connection, context_id: int, rows: Sequence[Any], author: Author) -> bool:
    """Return whether whatever messages reply to is the bot's answer to the same author's own words.

    Somebody else may have had the bot say something, and a stranger's text may have.
    """
    held = [each for row in rows if row.said_by_others for each in decode_references(row.said_by_others)]
    for each in held:
        sought = {"context": context_id, "message": each.external_id}
        found = connection.execute(_ANSWERED_TURN, sought).scalars().all() if each.is_of_assistant else []
        asked = [connection.execute(_ASKED_IN_TURN, {"turn": turn_id}).all() for turn_id in found]
        if not asked or not all(_are_own(each, author) for each in asked):
            return False
    return True


def _is_theirs(context_id: int, author: Author) -> Any:
    return (
        (tool_grants.c.context_id == context_id)
        & (tool_grants.c.author_platform == author.platform)
        & (tool_grants.c.author_id == author.id)
    )
