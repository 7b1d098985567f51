"""What a person sees while the bot is at work: that it types, and its answer as it grows."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from telegram.error import TelegramError

from botservice.core.errors import BotServiceError
from botservice.core.messages import ToolCall
from botservice.people.names import is_direct_topic
from botservice.turns.transport import Live, StreamRecord
from botservice.turns.turn import StoredEvent
from transports.common.growing_answers import Growing, joined
from transports.common.pacing import Pace
from transports.telegram.client import BotClient
from transports.telegram.drafts import GrowingMessage, PrivateDraft, TelegramDraft, TelegramTempo
from transports.telegram.forms import Forms
from transports.telegram.inbound_events import (
    BotIdentity,
    is_press,
    is_private_text,
    reply_target,
    send_parameters,
    stored_update,
)
from transports.telegram.reading import listen

logger = logging.getLogger(__name__)

# While text grows, it is the sign of life.
_TEXT_IS_FRESH_SECONDS = 10.0


class TelegramLiveAnswers:
    """Opens a show for every turn that is answered."""

    def __init__(
        self, client: BotClient, pace: Pace, tempo: TelegramTempo, identity: Callable[[], BotIdentity], forms: Forms
    ) -> None:
        self._client = client
        self._forms = forms
        self._pace = pace
        self._tempo = tempo
        self._identity = identity

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows a turn's progress, or None if the bot only listens."""
        if not any(self._is_answered(event) for event in events):
            return None
        return TelegramLive(self._client, self._tempo, context_keys, partial(self._draft, context_keys, events, record))

    def _draft(
        self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord
    ) -> TelegramDraft:
        if context_keys["chat_id"].startswith("-"):
            return GrowingMessage(self._client, self._pace, self._tempo, context_keys, reply_target(events), record)
        return PrivateDraft(self._client, self._tempo, context_keys, events[-1].id, record, self._forms)

    def _is_answered(self, event: StoredEvent) -> bool:
        update, bot = stored_update(event), self._identity()
        if is_private_text(update) or is_press(update):
            return True
        heard = listen(update, bot)
        is_under_way = bot.username is None  # nothing is begun before the bot knows its name: an earlier process did
        return heard is not None and (heard.is_addressed or is_under_way)


class TelegramLive(Live):
    """A turn's progress. Whatever goes wrong with it, it ends without a word: the answer comes all the same."""

    def __init__(
        self,
        client: BotClient,
        tempo: TelegramTempo,
        context_keys: Mapping[str, str],
        open_draft: Callable[[], TelegramDraft],
    ) -> None:
        self._client = client
        self._tempo = tempo
        self._keys = context_keys
        self._open_draft = open_draft
        self._draft: TelegramDraft | None = None
        self._activity = ""
        self._painted_at: float | None = None
        self._text: list[str] = []
        self._changed = asyncio.Event()
        self._growing: Growing | None = None
        self._first_sign = asyncio.get_running_loop().call_later(tempo.first_sign, self._begin)

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""
        if self._activity:  # what was said before a tool ran is not the answer
            self._activity = ""
            self._text.clear()
        self._text.append(piece)
        self._changed.set()

    def on_activity(self, activity: str) -> None:
        """Take what the bot does now."""
        self._activity = activity.replace("_", " ")
        self._changed.set()

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Take what a tool says of its work."""
        self._activity = f"{call.name.replace('_', ' ')}: {text.rstrip('.…')}"
        self._changed.set()

    def on_restart(self) -> None:
        """Drop what was said of an answer that begins anew."""
        self._text.clear()
        if self._draft is not None:
            self._draft.begin_again()
        self._changed.set()

    async def close(self) -> None:
        """End it."""
        self._first_sign.cancel()
        if self._growing is not None:
            await self._growing.close()

    def _begin(self) -> None:
        self._draft, self._growing = self._open_draft(), Growing(self._changed)
        self._growing.begin(self._type(), self._show(self._draft, self._growing))

    async def _type(self) -> None:
        if is_direct_topic(self._keys):  # Telegram shows nobody there that somebody types
            return
        try:
            while True:
                if self._painted_at is None or time.monotonic() - self._painted_at > _TEXT_IS_FRESH_SECONDS:
                    await self._client.call("sendChatAction", **send_parameters(self._keys), action="typing")
                await asyncio.sleep(self._tempo.typing)
        except TelegramError as error:
            logger.debug("telegram.typing_ended", extra={"reason": type(error).__name__})

    async def _show(self, draft: TelegramDraft, growing: Growing) -> None:
        async def paint() -> None:
            if await growing.finish(draft.paint(joined(self._text), self._activity)):
                self._painted_at = time.monotonic()

        try:
            await growing.grow(draft, lambda: draft.wait(joined(self._text), self._activity), paint)
        except (TelegramError, BotServiceError) as error:
            logger.info("telegram.stream_ended", extra={"reason": type(error).__name__})
        except Exception:  # a border: formatting what is half written must not cost the answer
            logger.exception("telegram.stream_failed")
