"""Whose calls of which tool run in a conversation without being asked about: the queries that own that."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, select

from botservice.core.messages import Author
from botservice.people.access_queries import read_decided_at
from botservice.people.names import person_name
from botservice.storage.database import Connection
from botservice.storage.message_references import decode_references
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON, TURN_IS_OPEN, TURN_IS_RUNNING
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, turns
from botservice.storage.tables.waiting import tool_grants

_SAID = select(*messages.c["position", "author_platform", "author_id", "is_all_own", "said_by_others"])
# Also events that have no message (any more): what was said there, and by whom, is not known.
_SAID_BY_EVENTS = _SAID.select_from(events.outerjoin(messages, messages.c.event_id == events.c.id))
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
    connection.execute(insert(tool_grants), {**values, "author_platform": author.platform, "author_id": author.id})


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
    theirs = select(tool_grants).where(_is_theirs(context_id, author)).order_by(tool_grants.c.created_at)
    own = connection.execute(theirs).all()
    decided_at = read_decided_at(connection, person_name(author)) if own else None
    if decided_at is not None:
        own = [row for row in own if row.created_at >= decided_at]
    return list({row.tool: ToolGrant(row.tool, row.created_at, row.tool_digest) for row in own}.values())


def is_all_said_by(connection: Connection, context_id: int, turn_id: int | None, author: Author | None) -> bool:
    """Return whether a turn is about nothing but a person's own words, with nobody else's since those before it.

    What they allowed for always is for what they ask for themselves: not for what others wrote, in a message, a file or
    a page, and not for what is asked again or was written for them. Whatever is not known counts as somebody else's.

    Args:
        turn_id: None for the one that is worked on in the context.
    """
    if not is_named(author) or author is None:
        return False
    asked = _read_asked(connection, context_id, turn_id)
    if not _are_own(asked, author) or not _answer_own(connection, context_id, asked, author):
        return False
    positions = {row.position for row in asked}
    said = select(messages.c.position).where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON)
    is_theirs = (messages.c.author_platform == author.platform) & (messages.c.author_id == author.id)
    earlier = said.where(is_theirs, messages.c.is_all_own.is_(True), messages.c.position < min(positions))
    newest = earlier.order_by(messages.c.position.desc()).limit(1)
    before = connection.execute(newest).scalar_one_or_none()
    after = _BEFORE_ALL if before is None else before
    since = said.where(messages.c.position > after).order_by(messages.c.position).limit(len(asked) + 1)
    is_alone = set(connection.execute(since).scalars()) == positions
    find_untrusted = select(contexts.c.untrusted_at).where(contexts.c.id == context_id)
    untrusted_at = connection.execute(find_untrusted).scalar_one_or_none()
    return is_alone and (untrusted_at is None or untrusted_at < after)


def _read_asked(connection: Connection, context_id: int, turn_id: int | None) -> Sequence[Any]:
    """Return what a turn is asked, or the one that is worked on; what a program asks is the newest message."""
    is_it: ColumnElement[bool] = turns.c.id == turn_id
    if turn_id is None:
        is_it = and_(turns.c.context_id == context_id, TURN_IS_OPEN, TURN_IS_RUNNING)
    of_turn = _SAID_BY_EVENTS.join(turns, turns.c.id == events.c.turn_id).where(is_it)
    by_program = _SAID.where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON, messages.c.event_id.is_(None))
    newest = by_program.order_by(messages.c.position.desc()).limit(1)
    return connection.execute(of_turn).all() or connection.execute(newest).all()


def list_askers(connection: Connection, turn_id: int) -> list[Author | None]:
    """Return who sent the messages that a turn answers; None for one that is not known (any more)."""
    rows = connection.execute(_SAID_BY_EVENTS.where(events.c.turn_id == turn_id)).all()
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
        is_it = deliveries.c.context_id == context_id, deliveries.c.external_id == each.external_id
        answered = connection.execute(select(deliveries.c.turn_id).where(*is_it)).scalars().all()
        asked = [connection.execute(_SAID_BY_EVENTS.where(events.c.turn_id == turn_id)).all() for turn_id in answered]
        if not each.is_of_assistant or not asked or not all(_are_own(rows, author) for rows in asked):
            return False
    return True


def _is_theirs(context_id: int, author: Author) -> Any:
    return (
        (tool_grants.c.context_id == context_id)
        & (tool_grants.c.author_platform == author.platform)
        & (tool_grants.c.author_id == author.id)
    )
