"""Storing the rating of an answer with its turn."""

from sqlalchemy import Connection, select

from botservice.contexts.feedback import VERDICTS
from botservice.contexts.feedback import write_feedback as write_feedback_of
from botservice.messages import Author
from botservice.storage import Storage
from botservice.storage.tables.conversations import messages
from transports.web.conversations.conversation_list import find_chat
from transports.web.inbound import NAME, session_in

__all__ = ["VERDICTS", "write_feedback"]


async def write_feedback(storage: Storage, chat: str, message_id: int, verdict: str | None) -> bool:
    """Store the rating of an answer in a chat, or with None delete it; return whether there is such an answer.

    Raises:
        StorageUnavailable: it is not stored.
    """
    author = Author(NAME, session_in(chat))
    is_answer = messages.c.id == message_id, messages.c.answers_turn_id.is_not(None)
    turn_of_answer = select(messages.c.answers_turn_id).where(*is_answer)

    def write(connection: Connection) -> bool:
        in_chat = messages.c.context_id == find_chat(connection, chat)
        turn_id = connection.execute(turn_of_answer.where(in_chat)).scalar_one_or_none()
        return turn_id is not None and write_feedback_of(connection, turn_id, author, verdict, storage.now())

    return await storage.write(write)
