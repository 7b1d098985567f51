"""Whose calls of which tool run in a conversation without being asked about: the queries that own that."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from botservice.messages import Author
from botservice.storage.statements import execute
from botservice.storage.tables.waiting import tool_grants

_INSERT = insert(tool_grants)
_OF_CONTEXT = (
    select(tool_grants).where(tool_grants.c.context_id == bindparam("context")).order_by(tool_grants.c.created_at)
)


@dataclass(frozen=True, slots=True)
class Grant:
    """A tool that need not ask for a person in a conversation."""

    tool: str
    created_at: datetime


def is_named(author: Author | None) -> bool:
    """Return whether somebody can be told apart from others."""
    return author is not None and author.id is not None


def grant_tool(connection: Connection, context_id: int, tool: str, author: Author, now: datetime) -> None:
    """Have a tool run in a conversation for a person without asking."""
    if any(each.tool == tool for each in find_grants(connection, context_id, author)):
        return
    values = {"context_id": context_id, "tool": tool, "created_at": now}
    execute(connection, _INSERT, {**values, "author_platform": author.platform, "author_id": author.id})


def revoke_grants(connection: Connection, context_id: int, author: Author, tools: Sequence[str] | None = None) -> None:
    """Have tools ask again in a conversation for a person; all of them by default."""
    wanted = delete(tool_grants).where(_is_theirs(context_id, author))
    connection.execute(wanted if tools is None else wanted.where(tool_grants.c.tool.in_(list(tools))))


def find_grants(connection: Connection, context_id: int, author: Author | None) -> list[Grant]:
    """Return the tools that need not ask for a person in a conversation, each once."""
    if author is None or author.id is None:
        return []
    rows = execute(connection, _OF_CONTEXT, {"context": context_id}).all()
    own = [row for row in rows if (row.author_platform, row.author_id) == (author.platform, author.id)]
    return list({row.tool: Grant(row.tool, row.created_at) for row in reversed(own)}.values())[::-1]


def _is_theirs(context_id: int, author: Author) -> Any:
    return (
        (tool_grants.c.context_id == context_id)
        & (tool_grants.c.author_platform == author.platform)
        & (tool_grants.c.author_id == author.id)
    )
