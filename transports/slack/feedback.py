"""What people think of an answer, stored with its turn."""

import logging
import re
from typing import Any

from sqlalchemy import Connection, bindparam, select

from botservice.contexts.feedback import write_feedback as write_feedback_of
from botservice.messages import Author
from botservice.storage import Storage
from botservice.storage.tables.conversations import contexts, turns
from transports.slack.inbound import account_of

logger = logging.getLogger(__name__)

_VALUE = re.compile(r"(good|bad):(\d{1,18})")
_KEYS_OF_TURN = (
    select(contexts.c.context_keys)
    .join(turns, turns.c.context_id == contexts.c.id)
    .where(turns.c.id == bindparam("turn"))
)


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
        return write_feedback_of(connection, turn_id, Author("slack", account), verdict, storage.now())

    is_stored = await storage.write(write)
    logger.info("slack.feedback", extra={"turn_of_answer": turn_id, "is_stored": is_stored})
