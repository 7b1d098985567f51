"""What stands in a chat as a guest's message until the answer takes its place."""

import asyncio
import logging
from collections.abc import Mapping

from telegram.error import TelegramError

from botservice.errors import BotServiceError
from botservice.messages import ToolCall
from botservice.people.names import GUEST
from botservice.texts import in_language
from botservice.turns.transport import StreamRecord
from transports.telegram.client import BotClient
from transports.telegram.guests.calls import post

logger = logging.getLogger(__name__)


class GuestStub:
    """Answers a guest's question at once, because that can be done for a short while only; what follows is an edit.

    Its intent is stored before it appears and its id right after, so that whoever goes on after a cut edits it. The
    text of an answer does not grow there: each edit is a call more, and there may be many readers.
    """

    def __init__(
        self,
        client: BotClient,
        context_keys: Mapping[str, str],
        language: str | None,
        record: StreamRecord,
        *,
        after_seconds: float,
    ) -> None:
        self._client = client
        self._query_id = context_keys[GUEST]
        self._text = in_language("guests.stub", language)
        self._record = record
        self._is_posting = False
        self._task = asyncio.create_task(self._run(after_seconds), name="telegram-guest-stub")

    def on_text(self, piece: str) -> None:
        """Leave the stub as it is."""

    def on_activity(self, activity: str) -> None:
        """Leave the stub as it is."""

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Leave the stub as it is."""

    def on_restart(self) -> None:
        """Leave the stub as it is."""

    async def close(self) -> None:
        """End it. A stub that is on its way is waited for: only its id lets the answer take its place."""
        if not self._is_posting:
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self, after_seconds: float) -> None:
        await asyncio.sleep(after_seconds)
        self._is_posting = True
        try:
            await self._record.confirm()
            if await self._record.opening() is None:
                await self._record.opened(await post(self._client, self._query_id, {"text": self._text}))
        except (TelegramError, BotServiceError) as error:
            logger.info("telegram.guest_stub_not_shown", extra={"reason": type(error).__name__})
        except Exception:  # a border: the answer comes all the same
            logger.exception("telegram.guest_stub_failed")
