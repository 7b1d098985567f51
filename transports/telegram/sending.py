"""Making an answer's messages visible, one call each, with a second try where a simpler one may pass; new topics."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cachetools import FIFOCache
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, RetryAfter, TelegramError

from botservice.core.errors import DeliveryInstead, DeliveryRefused
from botservice.turns.turn import Delivery
from transports.common.stored_files import ending_of, read_stored_file
from transports.telegram.client import InputFile, as_media
from transports.telegram.context import TelegramContext
from transports.telegram.failures import (
    as_delivery_error,
    is_failing,
    is_gone,
    is_kind_forbidden,
    is_method_unknown,
    is_not_editable,
    is_not_modified,
    is_too_large,
    is_unreadable,
    wait_of,
)
from transports.telegram.inbound_events import send_parameters, shown_id
from transports.telegram.keyboards import in_topic
from transports.telegram.refused_forms import Extras, without

logger = logging.getLogger(__name__)

# Simpler and simpler: seen by all, no colours, no times, another chat, no topic, no reply, no formatting, another kind.
_MAX_TRIES = 9
# A server may fail at a form alone: after so many tries the words go out as they did before.
_TRIES_OF_A_FORM = 2

_NOT_SENT = frozenset({"form", "plain", "then", "receiver"})


class TelegramSender:
    """Sends deliveries. What Telegram refuses for a reason that can be removed is sent again without it."""

    def __init__(self, telegram: TelegramContext) -> None:
        self._telegram = telegram
        self._client = telegram.client
        self._pace = telegram.pace
        self._forms = telegram.forms
        self._extras = Extras(telegram.forms)

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make a delivery visible and return its message id."""
        payload: Any = delivery.payload
        form, plain = payload.get("form"), payload.get("plain")
        has_other = form is not None
        if has_other and not await self._forms.takes(context_keys, form):
            raise DeliveryInstead(f"not sent as {form}: this chat has refused that", plain)
        call = await self._prepare(context_keys, delivery)
        for _ in range(_MAX_TRIES):
            try:
                return await self._try(call, delivery)
            except TelegramError as error:
                if is_not_modified(error):
                    return delivery.external_id
                simpler = await self._extras.without_refused(context_keys, call, error)
                simpler = simpler or _simpler(call, error, has_other_form=has_other)
                if simpler is None and has_other and _is_form_refused(error, delivery.attempts):
                    if not is_too_large(error) and not is_failing(error):  # the next message may pass
                        await self._forms.note(context_keys, form, error.message)
                    raise DeliveryInstead(f"Telegram refuses {form}: {error.message}", plain) from error
                simpler = simpler or await self._extras.without_suspected(context_keys, call, error)
                if simpler is None:
                    raise as_delivery_error(error) from error
                logger.warning("telegram.sent_differently", extra={"delivery": delivery.id, "reason": error.message})
                call = simpler
        raise DeliveryRefused("Telegram takes this message in no form")

    async def _try(self, call: Mapping[str, Any], delivery: Delivery) -> str | None:
        parameters = dict(call)
        method = parameters.pop("method")
        replaced = parameters.pop("replaced", None)
        parameters.pop("seen_by_all", None)
        parameters.pop("if_anew", None)
        chat_id = parameters["chat_id"]
        await self._pace.turn(chat_id, delivery.turn_id)
        await delivery.confirm()
        try:
            result = await self._client.call(method, **parameters)
        except RetryAfter as error:
            self._pace.refused(chat_id, wait_of(error))
            raise
        if replaced is not None:
            await self._delete(chat_id, replaced)
        return shown_id(result[0] if isinstance(result, list) and result else result)

    async def _delete(self, chat_id: str, message_id: str) -> None:
        """Take away a streamed text whose place a file has taken."""
        try:
            await self._client.call("deleteMessage", chat_id=chat_id, message_id=message_id)
        except TelegramError as error:
            logger.warning("telegram.stream_left", extra={"reason": error.message})

    async def _prepare(self, context_keys: Mapping[str, str], delivery: Delivery) -> dict[str, Any]:
        """Return the parameters of the call that makes a delivery visible."""
        call: dict[str, Any] = {name: value for name, value in delivery.payload.items() if name not in _NOT_SENT}
        reply_to = call.pop("reply_to", None)
        call |= send_parameters(context_keys)
        if "reply_markup" in call:
            call["reply_markup"] = in_topic(call["reply_markup"], context_keys)
        replying = {"message_id": reply_to, "allow_sending_without_reply": True}
        reply: dict[str, Any] = {} if reply_to is None else {"reply_parameters": replying}
        file = call.pop("file", None)
        if file is not None:
            call[file["field"]] = await self._file(context_keys, file)
        elif "media" in call:
            call |= await self._album(context_keys, call["media"])
        elif delivery.external_id is not None:
            edit = call | {"method": "editMessageText", "message_id": delivery.external_id, "if_anew": reply}
            return await self._extras.put_on(context_keys, edit, delivery.payload)
        if delivery.external_id is not None:
            call["replaced"] = delivery.external_id
        return await self._extras.put_on(context_keys, call | reply, delivery.payload)

    async def _album(self, context_keys: Mapping[str, str], media: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the parameters of an album: its files next to what names them."""
        files = [await self._file(context_keys, each["file"], is_attached=True) for each in media]
        return {"media": [as_media(each, file) for each, file in zip(media, files, strict=True)]}

    async def _file(
        self, context_keys: Mapping[str, str], file: Mapping[str, Any], *, is_attached: bool = False
    ) -> InputFile | str:
        if "url" in file:
            return str(file["url"])
        data = await read_stored_file(self._telegram.storage, context_keys, file)
        name = file.get("name") or f"{file['field']}{ending_of(str(file['mime_type']))}"
        return InputFile(data, filename=name, attach=is_attached)


def _is_form_refused(error: TelegramError, attempts: int) -> bool:
    """Return whether the same words may pass in another form."""
    if is_too_large(error):
        return True
    if is_failing(error):
        return attempts >= _TRIES_OF_A_FORM
    is_about_form = isinstance(error, BadRequest) and not is_gone(error)
    return is_about_form or is_method_unknown(error) or is_kind_forbidden(error)


def _simpler(call: Mapping[str, Any], error: TelegramError, *, has_other_form: bool) -> dict[str, Any] | None:
    """Return the call without what Telegram did not take, or None if nothing can be left out."""
    if isinstance(error, ChatMigrated):
        return {**without(call, "message_thread_id"), "chat_id": str(error.new_chat_id)}
    if not isinstance(error, BadRequest | Forbidden):
        return None
    if call["method"] == "editMessageText" and is_not_editable(error):
        return {
            **without(call, "message_id", "if_anew"),
            **call["if_anew"],
            "method": "sendRichMessage" if "rich_message" in call else "sendMessage",
        }
    return None if has_other_form else _as_document(call, error) or _as_words(call, error)


def _as_words(call: Mapping[str, Any], error: TelegramError) -> dict[str, Any] | None:
    """Return what stands below a file as a message, where a chat takes no such files."""
    if "caption" not in call or not is_kind_forbidden(error):
        return None
    kept = without(call, "photo", "voice", "audio", "video", "document", "caption", "caption_entities")
    entities = {"entities": call["caption_entities"]} if call.get("caption_entities") else {}
    return {**kept, **entities, "method": "sendMessage", "text": call["caption"]}


def _as_document(call: Mapping[str, Any], error: TelegramError) -> dict[str, Any] | None:
    """Return a file as a plain document: a picture may be too large or too odd to be one."""
    field = next((name for name in ("photo", "voice", "audio", "video") if name in call), None)
    words = error.message.lower()
    if field is None:
        return None
    if not any(word in words for word in ("photo", "image", "voice", "audio", "video", "too big")):
        return None
    return {**without(call, field), "method": "sendDocument", "document": call[field]}


_MOST_CHATS: Final = 10_000


class Topics:
    """Makes topics where Telegram lets the bot; a chat in which it does not is not tried again."""

    def __init__(self, telegram: TelegramContext) -> None:
        self._telegram = telegram
        self._refused: FIFOCache[str, None] = FIFOCache(_MOST_CHATS)

    async def open(self, context_keys: Mapping[str, str], name: str) -> bool:
        """Return whether a new topic is there to go on in. Only private chats have them by the bot's doing."""
        chat_id = context_keys.get("chat_id", "-")
        if not self._telegram.bot.has_topics or chat_id.startswith("-") or chat_id in self._refused:
            return False
        try:
            await self._telegram.client.call("createForumTopic", chat_id=chat_id, name=name)
        except TelegramError as error:
            logger.warning("telegram.topic_refused", extra={"reason": error.message})
            if isinstance(error, BadRequest | Forbidden | InvalidToken) and not is_unreadable(error):
                self._refused[chat_id] = None
            return False
        return True
