"""Whose calls of which tool run in a conversation without being asked about: the queries that own that."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from botservice.messages import Author
from botservice.storage.statements import execute
from botservice.storage.tables.conversations import events, messages, turns
from botservice.storage.tables.waiting import tool_grants
from botservice.turns.turn import TurnStatus

_INSERT = insert(tool_grants)
_OF_CONTEXT = (
    select(tool_grants).where(tool_grants.c.context_id == bindparam("context")).order_by(tool_grants.c.created_at)
)
# Also events that have no message (any more): what was said there, and by whom, is not known.
_SAID = select(messages.c.author_platform, messages.c.author_id, messages.c.own_text).select_from(
    events.outerjoin(messages, messages.c.event_id == events.c.id)
)
_SAID_IN_TURN = _SAID.where(events.c.turn_id == bindparam("turn"))
_SAID_NOW = _SAID.join(turns, turns.c.id == events.c.turn_id).where(
    turns.c.context_id == bindparam("context"), turns.c.status == TurnStatus.RUNNING.value
)


@dataclass(frozen=True, slots=True)
class Grant:
    """A tool that need not ask for a person in a conversation."""

    tool: str
    created_at: datetime


def is_named(author: Author | None) -> bool:
    """Return whether an author is one known person, and does not write in the name of a chat as several may."""
    return author is not None and author.id is not None and not author.is_chat


def grant_tool(connection: Connection, context_id: int, tool: str, author: Author, now: datetime) -> None:
    """Let a tool run without asking, for one person in one conversation."""
    if any(each.tool == tool for each in find_grants(connection, context_id, author)):
        return
    values = {"context_id": context_id, "tool": tool, "created_at": now}
    execute(connection, _INSERT, {**values, "author_platform": author.platform, "author_id": author.id})


def revoke_grants(connection: Connection, context_id: int, author: Author, tools: Sequence[str] | None = None) -> None:
    """Make tools ask again, for one person in one conversation; all of them by default."""
    wanted = delete(tool_grants).where(_is_theirs(context_id, author))
    connection.execute(wanted if tools is None else wanted.where(tool_grants.c.tool.in_(list(tools))))


def find_grants(connection: Connection, context_id: int, author: Author | None) -> list[Grant]:
    """Return the tools that need not ask for a person in a conversation, each once."""
    if author is None or author.id is None:
        return []
    rows = execute(connection, _OF_CONTEXT, {"context": context_id}).all()
    own = [row for row in rows if (row.author_platform, row.author_id) == (author.platform, author.id)]
    return list({row.tool: Grant(row.tool, row.created_at) for row in reversed(own)}.values())[::-1]


def is_all_said_by(connection: Connection, context_id: int, turn_id: int | None, author: Author | None) -> bool:
    """Return whether all that a turn is about is a person's, and in their own words.

    What they allowed for always is for what they ask for themselves: not for what others say in the same turn, and not
    for what is asked anew or was written for them. A turn that nobody's message began is about what was theirs before.

    Args:
        turn_id: None for the one that is worked on in the context.
    """
    if turn_id is None:
        rows = execute(connection, _SAID_NOW, {"context": context_id}).all()
    else:
        rows = execute(connection, _SAID_IN_TURN, {"turn": turn_id}).all()
    theirs = None if author is None else (author.platform, author.id)
    return all((row.author_platform, row.author_id) == theirs and row.own_text != "" for row in rows)


def _is_theirs(context_id: int, author: Author) -> Any:
    return (
        (tool_grants.c.context_id == context_id)
        & (tool_grants.c.author_platform == author.platform)
        & (tool_grants.c.author_id == author.id)
    )
