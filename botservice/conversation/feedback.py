"""What people think of answers, stored with their turns: the query that owns that."""

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, delete, insert

from botservice.core.messages import Author
from botservice.people.access_queries import read_names, read_roles
from botservice.people.access_values import AccessRole
from botservice.people.names import person_name
from botservice.storage.database import Connection
from botservice.storage.tables.slack import feedback

VERDICTS: Final = ("good", "bad")
_INSERT = insert(feedback)
_DELETE = delete(feedback).where(
    feedback.c.turn_id == bindparam("turn"),
    feedback.c.platform == bindparam("of_platform"),
    feedback.c.person_id == bindparam("person"),
)


def write_feedback(connection: Connection, turn_id: int, author: Author, verdict: str | None, now: datetime) -> bool:
    """Store an author's verdict on a turn's answer in place of their earlier one; return whether they may give one.

    Args:
        verdict: One of `VERDICTS`; None to take it back.
    """
    roles, _ = read_roles(connection, read_names(connection, person_name(author)), "")
    if AccessRole.BLOCKED in roles or author.id is None or author.is_chat:
        return False
    connection.execute(_DELETE, {"turn": turn_id, "of_platform": author.platform, "person": author.id})
    if verdict is not None:
        row = {"turn_id": turn_id, "platform": author.platform, "person_id": author.id}
        connection.execute(_INSERT, row | {"verdict": verdict, "created_at": now})
    return True
