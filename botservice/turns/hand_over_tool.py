"""The tool by which the agent calls a person: the conversation pauses, and the owners are told why."""

from datetime import datetime
from typing import Final

from botservice.agent.tool import Tool
from botservice.conversation.context import AgentContext
from botservice.conversation.pausing import Pause, begin_pause, read_pause
from botservice.core.chat_addresses import ChatAddress, address_of
from botservice.core.messages import storable
from botservice.core.quoting import shortened
from botservice.core.states import API
from botservice.people.access import Access
from botservice.people.access_queries import find_private_chats
from botservice.people.names import person_name, transport_of
from botservice.people.usage_queries import HAND_OVER_RATE, count_message
from botservice.storage.database import Connection
from botservice.texts import in_language
from botservice.turns.proactive_messages import find_or_make, prepare_message, write_message

_LONGEST_REASON: Final = 500  # characters
_MOST_AN_HOUR: Final = 3  # for one person, in all of their chats


class HandOver:
    """Hands conversations over to the owners."""

    def __init__(self, access: Access, chat: ChatAddress | None, pages: str) -> None:
        """Make one.

        Args:
            chat: Where the owners are told; None for the private chat of each.
            pages: The address under which the inspector is.
        """
        self._access = access
        self._chat = chat
        self._pages = pages

    def tool(self) -> Tool:
        """Return the tool."""
        return Tool(self.hand_over, idempotent=True)

    async def hand_over(self, context: AgentContext, reason: str) -> str:
        """Hand this conversation over to a person, and stop answering in it until they give it back.

        Use it when the person asks for a human, or when you cannot help and somebody of the team has to.

        Args:
            reason: What the person needs, in one or two sentences. Only the team sees it.
        """
        if transport_of(context.context_keys, API) == API:
            return "Nobody can take over here: this conversation is in no chat."
        now = context.storage.now()
        said = in_language(
            "pause.handed_over",
            context.language,
            chat=address_of(context.id, context.context_keys),
            reason=shortened(" ".join(storable(reason).replace("`", "'").split()), _LONGEST_REASON),
            link=f"{self._pages}/inspect/{context.id}",
            number=context.id,
        )
        new = await prepare_message(said, (), now)

        def store(connection: Connection) -> str:
            chats = self._find_chats(connection, context)
            if not chats:
                return "Nobody was called: no owner has written to this bot yet. Say so, and go on yourself."
            if read_pause(connection, context.id, now) is None and _is_too_often(connection, context, now):
                return "Nobody was called: the team was called too often for this person. Say so, and go on yourself."
            if begin_pause(connection, context.id, Pause(now)):
                for chat_id in chats:
                    write_message(connection, chat_id, new)
            return "The team has been called. Say so in one sentence; you answer nothing here until they give it back."

        return await context.storage.write(store, sort_key=(context.id,))

    def _find_chats(self, connection: Connection, context: AgentContext) -> list[int]:
        """Return the contexts in which the owners are told."""
        if self._chat is not None:
            return [find_or_make(connection, self._chat, context.storage.now())]
        return find_private_chats(connection, self._access.owners(connection))


def _is_too_often(connection: Connection, context: AgentContext, now: datetime) -> bool:
    """Count one more call for a person, and return whether it is beyond those of an hour."""
    hour = f"{now:%Y-%m-%dT%H}"
    return count_message(connection, HAND_OVER_RATE, person_name(context.asker), hour) > _MOST_AN_HOUR
