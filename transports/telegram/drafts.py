"""What a growing answer is shown on: a draft in private chats, one message that is edited in groups."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from telegram.error import BadRequest, InvalidToken

from botservice.turns.transport import StreamRecord
from transports.common.growing_answers import Surface
from transports.common.pacing import Pace
from transports.telegram.client import BotClient
from transports.telegram.entities import Rich
from transports.telegram.formatting import as_wire, format_markdown
from transports.telegram.forms import THINKING, Forms
from transports.telegram.inbound_events import send_parameters

_TAIL_CHARACTERS = 3500
_HEAD_CHARACTERS = 6000  # of markdown: what a message shows is less
_CALL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TelegramTempo:
    """How soon and how often progress is shown. All in seconds.

    Attributes:
        first_sign: An answer that comes sooner needs no sign of life; a person should see one within a second.
        typing: Telegram shows "typing…" for 5 seconds. Source: core.telegram.org/bots/api#sendchataction.
        draft: Between two states of a draft.
        later_activity: Between two of them that say what a tool does, once there were many.
        first_message: So long a group's answer has to grow before a message shows it.
        edit: Between two states of that message; flood control of groups allows about one in 3 seconds.
    """

    first_sign: float = 0.2
    typing: float = 4.5
    draft: float = 1.0
    later_activity: float = 10.0
    first_message: float = 2.0
    edit: float = 3.5


class TelegramDraft(Surface, Protocol):
    """Shows text that grows. Its own calls only: it never waits for its turn by itself."""

    def wait(self, text: str, activity: str) -> float | None:
        """Return the seconds until this should be shown; None if it need not be."""

    def begin_again(self) -> None:
        """Take note that what comes is not a continuation of what is shown."""

    async def paint(self, text: str, activity: str) -> bool:
        """Show it, and return whether it was text."""


class PrivateDraft:
    """A draft: Telegram shows it for 30 seconds and drops it when the answer comes.

    Source: core.telegram.org/bots/api#sendmessagedraft.
    """

    patience_seconds = 1.0
    refresh_seconds: float | None = 20.0

    _CHARACTERS_PER_CALL = 125  # keeps an answer below 15 calls per 1,000 characters, with room for the rest
    _MANY_ACTIVITIES = 20

    def __init__(
        self,
        client: BotClient,
        tempo: TelegramTempo,
        context_keys: Mapping[str, str],
        draft_id: int,
        record: StreamRecord,
        forms: Forms,
    ) -> None:
        self._client = client
        self._forms = forms
        self._record = record
        self._keys = context_keys
        self._draft_id = draft_id % 2**31 or 1
        self._tempo = tempo
        self._shown: str | None = None
        self._shown_at = 0.0
        self._next_length = 1
        self._activities = 0

    def wait(self, text: str, activity: str) -> float | None:
        """Return the seconds until this should be shown; None if it need not be."""
        if self._line(text, activity) == self._shown or (not activity and 0 < len(text) < self._next_length):
            return None
        if self._shown is None and self._activities < self._MANY_ACTIVITIES:
            return 0.0
        is_slow = activity and self._activities >= self._MANY_ACTIVITIES
        pause = self._tempo.later_activity if is_slow else self._tempo.draft
        return max(0.0, self._shown_at + pause - time.monotonic())

    def rest(self) -> float:
        """Return the seconds for which nothing will be shown, whatever comes."""
        return 0.0 if self._shown is None else max(0.0, self._shown_at + self._tempo.draft - time.monotonic())

    def fade(self) -> None:
        """Take note that what is shown has become old."""
        self._shown, self._next_length = None, 1

    def begin_again(self) -> None:
        """Show the next text at once, however short it is."""
        self._next_length = 1

    async def paint(self, text: str, activity: str) -> bool:
        """Show it, and return whether it was text."""
        await self._record.confirm()
        line = self._line(text, activity)
        if not activity or not await self._think(activity):
            shown = Rich(line) if activity or not line else _tail(line)
            await self._show("sendMessageDraft", text=shown.text, entities=as_wire(shown) or None)
        self._shown, self._shown_at = line, time.monotonic()
        if activity:
            self._activities += 1
        else:
            self._next_length = len(text) + self._CHARACTERS_PER_CALL if text else 1
        return bool(line) and not activity

    async def _think(self, activity: str) -> bool:
        """Show what the bot does as a thought, where the chat takes that; return whether it does."""
        if not await self._forms.takes(self._keys, THINKING):
            return False
        try:
            block = {"type": "thinking", "text": f"{activity}…"}
            await self._show("sendRichMessageDraft", rich_message={"blocks": [block]})
        except (BadRequest, InvalidToken) as error:  # a server that lacks a method answers as to a token
            await self._forms.note(self._keys, THINKING, error.message)
            return False
        return True

    async def _show(self, method: str, **what: Any) -> None:
        await self._client.call(
            method,
            timeout_seconds=_CALL_SECONDS,
            **send_parameters(self._keys),
            draft_id=self._draft_id,
            can_stop=True,
            **what,
        )

    def _line(self, text: str, activity: str) -> str:
        return f"⏳ {activity}…" if activity else text


class GrowingMessage:
    """A message that is edited while its text grows, as often as a group's limits allow; the answer takes it over."""

    patience_seconds = 5.0
    refresh_seconds: float | None = None

    _LEAST_CHARACTERS = 200  # a shorter answer is there before it would have grown
    _CHARACTERS_PER_CALL = 150
    _RESERVE = 8  # of twenty messages a minute, left for answers

    def __init__(
        self,
        client: BotClient,
        pace: Pace,
        tempo: TelegramTempo,
        context_keys: Mapping[str, str],
        reply_to: int | None,
        record: StreamRecord,
    ) -> None:
        self._client = client
        self._tempo = tempo
        self._pace = pace
        self._keys = context_keys
        self._reply_to = reply_to
        self._record = record
        self._message_id: str | None = None
        self._text_since: float | None = None
        self._painted_at = 0.0
        self._next_length = self._LEAST_CHARACTERS
        self._is_full = False

    def wait(self, text: str, activity: str) -> float | None:
        """Return the seconds until this should be shown; None if it need not be."""
        if not text or activity:
            self._text_since = None
            return None
        now = time.monotonic()
        self._text_since = self._text_since or now
        if self._is_full or len(text) < self._next_length:
            return None
        if self._message_id is None:
            return max(0.0, self._text_since + self._tempo.first_message - now)
        return max(0.0, self._painted_at + self._tempo.edit - now)

    def rest(self) -> float:
        """Return the seconds for which nothing will be shown, whatever comes."""
        return 0.0 if self._message_id is None else max(0.0, self._painted_at + self._tempo.edit - time.monotonic())

    def fade(self) -> None:
        """A message stays."""

    def begin_again(self) -> None:
        """Keep what is shown until there is as much of the new answer as a message begins with."""
        self._next_length, self._is_full, self._text_since = self._LEAST_CHARACTERS, False, None

    async def paint(self, text: str, activity: str) -> bool:  # noqa: ARG002 - a message says no activities
        """Show it, and return whether it was text."""
        chat_id = self._keys["chat_id"]
        self._painted_at = time.monotonic()
        if not self._pace.may_show(chat_id, reserve=self._RESERVE):
            return False
        await self._record.confirm()
        if self._message_id is None:
            self._message_id = await self._record.opening()
        pieces = format_markdown(f"{text[:_HEAD_CHARACTERS]} …")
        self._is_full = len(pieces) > 1 or len(text) > _HEAD_CHARACTERS
        self._next_length = len(text) + self._CHARACTERS_PER_CALL
        said: dict[str, Any] = {"text": pieces[0].text, "entities": as_wire(pieces[0]) or None}
        if self._message_id is None:
            await self._open(said)
        else:
            await self._client.call(
                "editMessageText", timeout_seconds=_CALL_SECONDS, chat_id=chat_id, message_id=self._message_id, **said
            )
        return True

    async def _open(self, said: Mapping[str, Any]) -> None:
        """Send the message: its intent is stored already, and its id right after."""
        reply = {"message_id": self._reply_to, "allow_sending_without_reply": True}
        sent = await self._client.call(
            "sendMessage",
            timeout_seconds=_CALL_SECONDS,
            **send_parameters(self._keys),
            reply_parameters=reply if self._reply_to is not None else None,
            **said,
        )
        self._message_id = str(sent["message_id"])
        await self._record.opened(self._message_id)


def _tail(text: str) -> Rich:
    """Return the end of a text that grows, so much of it as a draft holds, from a line's beginning."""
    if len(text) > _TAIL_CHARACTERS:
        begin = text.find("\n", len(text) - _TAIL_CHARACTERS) + 1 or len(text) - _TAIL_CHARACTERS
        text = f"…\n{text[begin:]}"
    pieces = format_markdown(text)
    return pieces[-1] if pieces else Rich(text[-_TAIL_CHARACTERS:])
