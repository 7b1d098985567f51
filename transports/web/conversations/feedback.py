"""What people think of an answer, stored with its turn."""

from typing import Final

from sqlalchemy import Connection, delete, insert, select

from botservice.access.records import read_names, read_roles
from botservice.access.values import AccessRole
from botservice.storage import Storage
from botservice.storage.tables.conversations import messages
from botservice.storage.tables.slack import feedback
from transports.web.conversations.mine import find_chat
from transports.web.inbound import NAME, session_in

VERDICTS: Final = ("good", "bad")


async def write_feedback(storage: Storage, chat: str, message_id: int, verdict: str | None) -> bool:
    """Store what somebody thinks of an answer of their chat, None to take it back; return whether it is an answer.

    Raises:
        StorageUnavailable: it is not stored.
    """
    person = session_in(chat)
    is_answer = messages.c.id == message_id, messages.c.answers_turn_id.is_not(None)
    turn_of_answer = select(messages.c.answers_turn_id).where(*is_answer)

    def write(connection: Connection) -> bool:
        in_chat = messages.c.context_id == find_chat(connection, chat)
        turn_id = connection.execute(turn_of_answer.where(in_chat)).scalar_one_or_none()
        roles, _ = read_roles(connection, read_names(connection, f"{NAME}:{person}"), "")
        if turn_id is None or AccessRole.BLOCKED in roles:
            return False
        is_own = (feedback.c.turn_id == turn_id, feedback.c.platform == NAME, feedback.c.person_id == person)
        connection.execute(delete(feedback).where(*is_own))
        if verdict is not None:
            row = {"turn_id": turn_id, "platform": NAME, "person_id": person}
            connection.execute(insert(feedback).values(**row, verdict=verdict, created_at=storage.now()))
        return True

    return await storage.write(write)
