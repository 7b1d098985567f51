"""Topics in private chats: each is a conversation of its own, and the bot may make one."""

import logging
from collections.abc import Mapping
from typing import Final

from cachetools import FIFOCache
from telegram.error import BadRequest, Forbidden, InvalidToken, TelegramError

from transports.telegram.client import BotClient
from transports.telegram.failures import is_unreadable
from transports.telegram.inbound_events import BotIdentity

logger = logging.getLogger(__name__)

_MOST_CHATS: Final = 10_000


class Topics:
    """Makes topics where Telegram lets the bot; a chat in which it does not is not tried again."""

    def __init__(self, client: BotClient) -> None:
        self._client = client
        self._refused: FIFOCache[str, None] = FIFOCache(_MOST_CHATS)

    async def open(self, context_keys: Mapping[str, str], name: str, bot: BotIdentity) -> bool:
        """Return whether a new topic is there to go on in. Only private chats have them by the bot's doing."""
        chat_id = context_keys.get("chat_id", "-")
        if not bot.has_topics or chat_id.startswith("-") or chat_id in self._refused:
            return False
        try:
            await self._client.call("createForumTopic", chat_id=chat_id, name=name)
        except TelegramError as error:
            logger.warning("telegram.topic_refused", extra={"reason": error.message})
            if isinstance(error, BadRequest | Forbidden | InvalidToken) and not is_unreadable(error):
                self._refused[chat_id] = None
            return False
        return True
