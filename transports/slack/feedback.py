"""What people think of an answer, stored with its turn."""

import logging
import re
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from botservice.access.records import read_names, read_roles
from botservice.access.values import AccessRole
from botservice.storage import Storage
from botservice.storage.tables.conversations import contexts, turns
from botservice.storage.tables.slack import feedback
from transports.slack.workspaces.people import account_of

logger = logging.getLogger(__name__)

_VALUE = re.compile(r"(good|bad):(\d{1,18})")
_KEYS_OF_TURN = (
    select(contexts.c.context_keys)
    .join(turns, turns.c.context_id == contexts.c.id)
    .where(turns.c.id == bindparam("turn"))
)
_DELETE = delete(feedback).where(
    feedback.c.turn_id == bindparam("turn"),
    feedback.c.platform == "slack",
    feedback.c.person_id == bindparam("person"),
)
_INSERT = insert(feedback)


async def write_feedback(storage: Storage, team: str, channel: str, user: str, value: str) -> None:
    """Store what a person thinks of an answer; a second press takes the place of the first.

    Raises:
        StorageUnavailable: it is not stored.
    """
    found = _VALUE.fullmatch(value)
    if found is None:
        return
    verdict, turn_id = found[1], int(found[2])
    account = account_of(team, user)

    def write(connection: Connection) -> bool:
        keys: Any = connection.execute(_KEYS_OF_TURN, {"turn": turn_id}).scalar_one_or_none()
        if keys is None or (keys.get("team_id"), keys.get("channel_id")) != (team, channel):
            return False  # the turn was forgotten, or another database wrote the button
        roles, _ = read_roles(connection, read_names(connection, f"slack:{account}"), "")
        if AccessRole.BLOCKED in roles:
            return False
        connection.execute(_DELETE, {"turn": turn_id, "person": account})
        row = {
            "turn_id": turn_id,
            "platform": "slack",
            "person_id": account,
            "verdict": verdict,
            "created_at": storage.now(),
        }
        connection.execute(_INSERT, row)
        return True

    is_stored = await storage.write(write)
    logger.info("slack.feedback", extra={"turn_of_answer": turn_id, "is_stored": is_stored})
