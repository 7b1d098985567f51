"""What a stored event says to the agent."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from telegram import Message, Update

from botservice.messages import InboundMessage
from botservice.turns.turn import StoredEvent
from transports.telegram.commands import answer_to
from transports.telegram.content import author_of, is_addressed, text_of
from transports.telegram.files import Files
from transports.telegram.inbound import BotIdentity, command_of, stored_update

logger = logging.getLogger(__name__)

# What a message needs to be answered at all; a newer API may have changed the rest beyond what the library reads.
_PLAIN_FIELDS = ("message_id", "date", "chat", "from", "text", "caption", "message_thread_id", "is_topic_message")


class Reader:
    """Reads events: with the client library, and without it what it cannot parse."""

    def __init__(self, identify: Callable[[], Awaitable[BotIdentity]], files: Files) -> None:
        self._identify = identify
        self._files = files

    async def read(self, event: StoredEvent) -> InboundMessage | None:
        """Return what an event says; None where it says nothing to anybody."""
        update = stored_update(event)
        message = parse_message(update)
        if message is None:
            return None
        bot = await self._identify()
        text = text_of(message, bot)
        if text is None:
            return None
        is_for_bot = is_addressed(message, bot)
        attachments, remarks = await self._files.fetch(message, is_for_bot=is_for_bot)
        return InboundMessage(
            "\n".join(part for part in (text, *remarks) if part),
            author_of(message),
            attachments,
            message.date,
            str(message.message_id),
            is_for_bot,
            canned_answer=_canned_answer(update, message, bot) if is_for_bot else None,
        )


def parse_message(update: Mapping[str, Any]) -> Message | None:
    """Return the new message of an update; None where it brings none."""
    body = update.get("message")
    if not isinstance(body, Mapping):
        return None
    plain = {name: body[name] for name in _PLAIN_FIELDS if name in body}
    bare = {name: plain[name] for name in ("message_id", "date", "chat", "text", "caption") if name in plain}
    for fields in (body, plain, bare):
        try:
            message = Update.de_json({"update_id": 0, "message": dict(fields)}, None).message
        except Exception as error:  # noqa: BLE001 - a border: the library raises whatever unexpected fields lead to
            logger.warning("telegram.unreadable", extra={"reason": type(error).__name__})
        else:
            return message
    return None


def _canned_answer(update: Mapping[str, Any], message: Message, bot: BotIdentity) -> str | None:
    command = command_of(update.get("message"), bot)
    language = message.from_user.language_code if message.from_user is not None else None
    return None if command is None else answer_to(command, language)
