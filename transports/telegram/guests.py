"""Answers in chats that the bot is no member of: a stub at once, and the answer in its place (Bot API 10.0)."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from telegram.error import BadRequest, Forbidden, InvalidToken, RetryAfter, TelegramError

from botservice.core.errors import BotServiceError
from botservice.core.messages import Message
from botservice.people.names import GUEST
from botservice.texts import in_language
from botservice.turns.transport import Live, Payload, StreamRecord
from botservice.turns.turn import Delivery, StoredEvent
from transports.common.growing_answer import GrowingAnswer, Surface
from transports.common.json_fields import integer
from transports.common.too_long_messages import MAX_CHARACTERS, head_of
from transports.telegram.answer_messages import formatted
from transports.telegram.client import BotClient
from transports.telegram.context import TelegramContext
from transports.telegram.failures import as_delivery_error, is_about_entities, is_not_modified, wait_of
from transports.telegram.formatting import as_wire
from transports.telegram.inbound_events import asked_as_guest, language_of

logger = logging.getLogger(__name__)

_RESULT_ID: Final = "answer"
_TITLE: Final = "…"  # every result has one; nobody sees it
_ROOM_UNITS: Final = 3_600  # of 4,096: the rest is for what may have to be said around it


async def post(client: BotClient, query_id: str, said: Mapping[str, Any]) -> str:
    """Have a guest's message appear and return its id; a question takes one."""
    content = {"message_text": said["text"], "link_preview_options": {"is_disabled": True}}
    if said.get("entities"):
        content["entities"] = said["entities"]
    result = {"type": "article", "id": _RESULT_ID, "title": _TITLE, "input_message_content": content}
    sent = await client.call("answerGuestQuery", guest_query_id=query_id, result=result)
    return str(sent["inline_message_id"])


class GuestStub(Surface):
    """Answers a guest's question at once, because that can be done for a short while only; what follows is an edit.

    Its intent is stored before it appears and its id right after, so that the process that resumes the turn edits it.
    The text of an answer does not grow there: each edit is one more call, and there may be many readers.
    """

    name = "telegram guests"
    errors: ClassVar[tuple[type[Exception], ...]] = (TelegramError, BotServiceError)
    patience_seconds = None  # only its id lets the answer take its place

    def __init__(self, client: BotClient, query_id: str, text: str, record: StreamRecord) -> None:
        self._client = client
        self._query_id = query_id
        self._text = text
        self._record = record

    def pause(self, answer: GrowingAnswer) -> float | None:
        """Return that the stub comes at once, and nothing after it."""
        return 0.0 if answer.shown_at is None else None

    async def update(self, answer: GrowingAnswer) -> None:  # noqa: ARG002 - it says the same whatever the answer
        """Show the stub."""
        await self._record.confirm()
        if await self._record.opening() is None:
            await self._record.opened(await post(self._client, self._query_id, {"text": self._text}))


def plan_guest(answer: Message, asked: object) -> list[Payload]:
    """Return the message that makes answer visible: text alone, so much of it as one message holds."""
    is_long = len(answer.text) > MAX_CHARACTERS
    pieces = formatted(answer, head_of(answer.text) if is_long else answer.text, max_units=_ROOM_UNITS)
    is_cut = len(pieces) > 1 or is_long or bool(answer.attachments)
    if not pieces and not is_cut:
        return []
    language = answer.language or language_of(asked)
    said: dict[str, Any] = {"text": pieces[0].text, "entities": as_wire(pieces[0])} if pieces else {"text": ""}
    if is_cut:
        cut = in_language("guests.cut", language)
        said["text"] = f"{said['text']}\n\n{cut}".lstrip()
    late = {"asker": integer(asked, "from", "id"), "late": in_language("guests.late", language)}
    return [{name: value for name, value in (said | late).items() if value}]


class Guests:
    """Shows that questions in chats that the bot is no member of are worked on, and sends their deliveries."""

    def __init__(self, telegram: TelegramContext) -> None:
        self._client = telegram.client
        self._pace = telegram.pace
        self._first_sign_seconds = telegram.tempo.first_sign

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live:
        """Return what answers at once where the answer takes longer."""
        text = in_language("guests.stub", language_of(asked_as_guest(events)))
        stub = GuestStub(self._client, context_keys[GUEST], text, record)
        return GrowingAnswer(stub, first_sign_seconds=self._first_sign_seconds)

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make a delivery visible and return its message's id."""
        said: dict[str, Any] = dict(delivery.payload)
        try:
            return await self._show(context_keys[GUEST], said, delivery)
        except TelegramError as error:
            if is_not_modified(error):
                return delivery.external_id
            if isinstance(error, RetryAfter):
                self._pace.refused(context_keys[GUEST], wait_of(error))
            # Of a method that a server does not know, the client says what it says of a token that is refused.
            is_closed = isinstance(error, BadRequest | Forbidden | InvalidToken)
            if not is_closed or "asker" not in said:
                raise as_delivery_error(error) from error
            logger.warning("telegram.guest_too_late", extra={"delivery": delivery.id, "reason": error.message})
        await self._tell_asker(said)
        return None

    async def _show(self, query_id: str, said: Mapping[str, Any], delivery: Delivery) -> str:
        """Show what is said; without its formatting where only that is refused."""
        await self._pace.turn(query_id, delivery.turn_id)
        await delivery.confirm()
        try:
            return await self._put(query_id, said, delivery.external_id)
        except TelegramError as error:
            if not said.get("entities") or not is_about_entities(error):
                raise
            return await self._put(query_id, {"text": said["text"]}, delivery.external_id)

    async def _put(self, query_id: str, said: Mapping[str, Any], inline_message_id: str | None) -> str:
        if inline_message_id is None:
            return await post(self._client, query_id, said)
        await self._client.call(
            "editMessageText",
            inline_message_id=inline_message_id,
            text=said["text"],
            entities=said.get("entities") or None,
        )
        return inline_message_id

    async def _tell_asker(self, said: Mapping[str, Any]) -> None:
        """Tell the person who asked in their private chat with the bot, if there is one."""
        await self._pace.turn(str(said["asker"]))
        try:
            await self._client.call("sendMessage", chat_id=said["asker"], text=f"{said['late']}\n\n{said['text']}")
        except TelegramError as error:
            raise as_delivery_error(error) from error
