"""What a person sees while the bot is at work: that it types, and its answer as it grows.

In private chats a draft shows the answer, in groups one message that is edited.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from telegram.error import BadRequest, InvalidToken, RetryAfter, TelegramError

from botservice.core.errors import BotServiceError
from botservice.people.names import is_direct_topic
from botservice.turns.transport import Live, StreamRecord
from botservice.turns.turn import StoredEvent
from transports.common.growing_answer import GrowingAnswer, Surface
from transports.markdown.sections import readable_so_far
from transports.telegram.context import TelegramContext
from transports.telegram.failures import wait_of
from transports.telegram.formatting import Rich, as_wire, format_markdown
from transports.telegram.inbound_events import (
    BotIdentity,
    is_press,
    is_private_text,
    reply_target,
    send_parameters,
    stored_update,
)
from transports.telegram.inbound_messages import listen
from transports.telegram.refused_forms import THINKING

logger = logging.getLogger(__name__)

_TEXT_IS_FRESH_SECONDS = 10.0  # while text grows, it is the sign of life
_TAIL_CHARACTERS: Final = 3500
_HEAD_CHARACTERS: Final = 6000  # of markdown: what a message shows is less
_CALL_SECONDS: Final = 10.0


def show_turn(
    telegram: TelegramContext, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord
) -> Live | None:
    """Return what shows a turn's progress, or None if the bot only listens."""
    if not any(_is_answered(event, telegram.bot) for event in events):
        return None
    surface: TelegramSurface
    if context_keys["chat_id"].startswith("-"):
        surface = GrowingMessage(telegram, context_keys, record, reply_target(events))
    else:
        surface = PrivateDraft(telegram, context_keys, record, events[-1].id)
    return GrowingAnswer(surface, first_sign_seconds=telegram.tempo.first_sign)


def _is_answered(event: StoredEvent, bot: BotIdentity) -> bool:
    update = stored_update(event)
    if is_private_text(update) or is_press(update):
        return True
    received = listen(update, bot)
    is_under_way = bot.username is None  # nothing is begun before the bot knows its name: an earlier process did
    return received is not None and (received.is_addressed or is_under_way)


class TelegramSurface(Surface):
    """Says that the bot types. Its own calls only: it never waits for its turn by itself."""

    name = "telegram"
    errors: ClassVar[tuple[type[Exception], ...]] = (TelegramError, BotServiceError)

    def __init__(self, telegram: TelegramContext, context_keys: Mapping[str, str], record: StreamRecord) -> None:
        self._client = telegram.client
        self._tempo = telegram.tempo
        self._keys = context_keys
        self._record = record
        self._text_at: float | None = None

    async def open(self) -> None:
        """Say again and again that the bot types, while no text says so."""
        if is_direct_topic(self._keys):  # Telegram shows nobody there that a person types
            return
        while True:
            if self._text_at is None or time.monotonic() - self._text_at > _TEXT_IS_FRESH_SECONDS:
                await self._call("sendChatAction", action="typing")
            await asyncio.sleep(self._tempo.typing)

    def after_failure(self, error: Exception) -> float | None:
        """Return how long Telegram asks to wait."""
        return wait_of(error) if isinstance(error, RetryAfter) else None

    async def _call(self, method: str, **parameters: Any) -> Any:
        return await self._client.call(
            method, timeout_seconds=_CALL_SECONDS, **send_parameters(self._keys), **parameters
        )


class PrivateDraft(TelegramSurface):
    """A draft: Telegram shows it for 30 seconds and drops it when the answer comes.

    Source: core.telegram.org/bots/api#sendmessagedraft.
    """

    patience_seconds = 1.0
    refresh_seconds = 20.0

    _CHARACTERS_PER_CALL = 125  # keeps an answer below 15 calls per 1,000 characters, with room for the rest
    _MANY_ACTIVITIES = 20

    def __init__(
        self, telegram: TelegramContext, context_keys: Mapping[str, str], record: StreamRecord, draft_id: int
    ) -> None:
        super().__init__(telegram, context_keys, record)
        self.pause_seconds = telegram.tempo.draft
        self._forms = telegram.forms
        self._draft_id = draft_id % 2**31 or 1
        self._shown: str | None = None
        self._activities = 0

    def pause(self, answer: GrowingAnswer) -> float | None:
        """Return how long to wait before the next state of the draft; the first one comes at once."""
        activity = _activity_of(answer)
        is_short = 0 < len(answer.text) - answer.shown_length < self._CHARACTERS_PER_CALL and answer.shown_length
        if (activity or answer.text) == self._shown or (is_short and not activity):
            return None
        if self._shown is None:
            return 0.0
        is_slow = activity and self._activities >= self._MANY_ACTIVITIES
        return self._tempo.later_activity if is_slow else self._tempo.draft

    async def update(self, answer: GrowingAnswer) -> None:
        """Show the end of the text, or what the bot does."""
        await self._record.confirm()
        text, activity = answer.text, _activity_of(answer)
        if not activity:
            shown = tail_of(text) if text else Rich("")
            await self._draft("sendMessageDraft", text=shown.text, entities=as_wire(shown) or None)
            self._text_at = time.monotonic() if text else self._text_at
        elif not await self._think(activity):
            await self._draft("sendMessageDraft", text=f"⏳ {activity}…")
        self._shown = activity or text
        self._activities += bool(activity)

    async def _think(self, activity: str) -> bool:
        """Show what the bot does as a thought, where the chat takes that; return whether it does."""
        if not await self._forms.takes(self._keys, THINKING):
            return False
        try:
            block = {"type": "thinking", "text": f"{activity}…"}
            await self._draft("sendRichMessageDraft", rich_message={"blocks": [block]})
        except (BadRequest, InvalidToken) as error:  # a server that lacks a method answers as to a token
            await self._forms.note(self._keys, THINKING, error.message)
            return False
        return True

    async def _draft(self, method: str, **what: Any) -> None:
        await self._call(method, draft_id=self._draft_id, can_stop=True, **what)


class GrowingMessage(TelegramSurface):
    """A message that is edited while its text grows, as often as a group's limits allow; the answer takes it over."""

    _LEAST_CHARACTERS = 200  # a shorter answer is there before it would have grown
    _CHARACTERS_PER_CALL = 150
    _RESERVE = 8  # of twenty messages a minute, left for answers

    def __init__(
        self, telegram: TelegramContext, context_keys: Mapping[str, str], record: StreamRecord, reply_to: int | None
    ) -> None:
        super().__init__(telegram, context_keys, record)
        self.pause_seconds = telegram.tempo.edit
        self._pace = telegram.pace
        self._reply_to = reply_to
        self._message_id: str | None = None
        self._is_full = False

    def pause(self, answer: GrowingAnswer) -> float | None:
        """Return how long to wait before the message is sent or edited; None while there is too little to say."""
        if not answer.shown_length:
            self._is_full = False
        least = answer.shown_length + self._CHARACTERS_PER_CALL if answer.shown_length else self._LEAST_CHARACTERS
        if self._is_full or answer.at_work is not None or len(answer.text) < least:
            return None
        return self._tempo.first_message if self._message_id is None else self._tempo.edit

    async def update(self, answer: GrowingAnswer) -> None:
        """Send the message, or edit it; where the group's limits leave no room, wait for more."""
        if not self._pace.may_show(self._keys["chat_id"], reserve=self._RESERVE):
            answer.shown_length = 0
            return
        await self._record.confirm()
        if self._message_id is None:
            self._message_id = await self._record.opening()
        text = answer.text
        pieces = format_markdown(f"{readable_so_far(text[:_HEAD_CHARACTERS])} …")
        self._is_full = len(pieces) > 1 or len(text) > _HEAD_CHARACTERS
        said: dict[str, Any] = {"text": pieces[0].text, "entities": as_wire(pieces[0]) or None}
        if self._message_id is None:
            await self._send(said)
        else:
            chat_id = self._keys["chat_id"]
            edited = {"chat_id": chat_id, "message_id": self._message_id, **said}
            await self._client.call("editMessageText", timeout_seconds=_CALL_SECONDS, **edited)
        self._text_at = time.monotonic()

    def after_failure(self, error: Exception) -> float | None:
        """Return how long Telegram asks to wait, in which no other person writes to the group either."""
        seconds = super().after_failure(error)
        if seconds is not None:
            self._pace.refused(self._keys["chat_id"], seconds)
        return seconds

    async def _send(self, said: Mapping[str, Any]) -> None:
        """Send the message: its intent is stored already, and its id right after."""
        reply = {"message_id": self._reply_to, "allow_sending_without_reply": True}
        sent = await self._call("sendMessage", reply_parameters=reply if self._reply_to is not None else None, **said)
        self._message_id = str(sent["message_id"])
        await self._record.opened(self._message_id)


def tail_of(text: str) -> Rich:
    """Return the end of a text that grows, so much of it as a draft holds, from a line's beginning."""
    if len(text) > _TAIL_CHARACTERS:
        begin = text.find("\n", len(text) - _TAIL_CHARACTERS) + 1 or len(text) - _TAIL_CHARACTERS
        text = f"…\n{text[begin:]}"
    pieces = format_markdown(readable_so_far(text))
    return pieces[-1] if pieces else Rich(text[-_TAIL_CHARACTERS:])


def _activity_of(answer: GrowingAnswer) -> str:
    """Return what the bot does now, and what that last said of its work; empty while the model writes."""
    step = answer.at_work
    if step is None:
        return ""
    name = step.name.replace("_", " ")
    return f"{name}: {step.said.rstrip('.…')}" if step.said else name
