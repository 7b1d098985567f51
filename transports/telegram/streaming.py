"""What a person sees while the bot is at work."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from telegram.error import TelegramError

from botservice.turns.transport import Live, StreamRecord
from botservice.turns.turn import StoredEvent
from transports.telegram.client import BotClient
from transports.telegram.content import is_addressed
from transports.telegram.inbound import BotIdentity, stored_update
from transports.telegram.pacing import Pace
from transports.telegram.reading import parse_message

logger = logging.getLogger(__name__)

_TYPING_SECONDS = 5.0


class Stage:
    """Opens a show for every turn that is answered."""

    def __init__(self, client: BotClient, pace: Pace, identity: Callable[[], BotIdentity]) -> None:
        self._client = client
        self._pace = pace
        self._identity = identity

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows a turn's progress; None where the bot only listens."""
        messages = [parse_message(stored_update(event)) for event in events]
        if not any(message is not None and is_addressed(message, self._identity()) for message in messages):
            return None
        return Typing(self._client, context_keys)


class Typing:
    """Says "typing…" while the bot is at work."""

    def __init__(self, client: BotClient, context_keys: Mapping[str, str]) -> None:
        self._client = client
        self._keys = context_keys
        self._task = asyncio.create_task(self._run(), name="telegram-typing")

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""

    def on_activity(self, activity: str) -> None:
        """Take what the bot does now."""

    async def close(self) -> None:
        """End it."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            try:
                await self._client.call(
                    "sendChatAction",
                    chat_id=self._keys["chat_id"],
                    message_thread_id=self._keys.get("thread_id"),
                    action="typing",
                )
            except TelegramError as error:
                logger.debug("telegram.typing_failed", extra={"reason": error.message})
                return
            await asyncio.sleep(_TYPING_SECONDS)
