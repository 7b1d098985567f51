"""The roles of the people who ask in a turn: a tool that wants one runs only if each of them has it, now."""

from collections.abc import Iterable

from botservice.conversation.context import AgentContext
from botservice.core.messages import Author
from botservice.people.access import Access
from botservice.storage.database import Connection
from botservice.turns.approval_queries import list_askers
from botservice.turns.turn_messages import task_of


async def find_roles(access: Access, context: AgentContext, turn_id: int) -> list[frozenset[str]]:
    """Return the roles of each person who asks in a turn, as they are at this moment.

    These are the senders of the messages that the turn answers, and not the people whom these quote or forward, and the
    person who asks for the answer again. A sender who is not known, such as that of a deleted message, is a guest.
    """

    def read(connection: Connection) -> list[frozenset[str]]:
        return [access.tool_roles(connection, each) for each in _each_once(_find_askers(connection, context, turn_id))]

    return await context.storage.read(read)


def _find_askers(connection: Connection, context: AgentContext, turn_id: int) -> list[Author | None]:
    if context.is_unasked:  # nobody meant the bot, and nobody's right is lent to what it has to say
        return [None]
    senders = list_askers(connection, turn_id)
    return [*senders, context.asker] if senders else [context.asker if _is_own_question(context) else None]


def _is_own_question(context: AgentContext) -> bool:
    """Return whether the last message of a person is what a program, or a reminder, asks in the turn.

    Where such a turn goes on later, another person may have written since.
    """
    last = context.chat_history.last_user_message
    if context.asked_by is not None or last is None or context.task is None:
        return context.asked_by is not None
    return task_of([last]).task == context.task.task


def _each_once(askers: Iterable[Author | None]) -> list[Author | None]:
    return list({None if each is None else (each.platform, each.id): each for each in askers}.values())
