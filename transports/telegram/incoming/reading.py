"""What a stored event says to the agent."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from telegram import Message

from botservice.messages import Author, CommandCall, InboundMessage
from botservice.references import Reference, ReferenceKind
from botservice.turns.turn import StoredEvent
from transports.files.fetched import Fetched
from transports.telegram.inbound import GUEST_MESSAGE, BotIdentity, command_of, is_press, stored_update
from transports.telegram.incoming.button_presses import pressed_message
from transports.telegram.incoming.content import (
    author_of,
    has_file,
    holds_others,
    is_addressed,
    is_forwarded,
    own_words_of,
    text_of,
)
from transports.telegram.incoming.files import Files, SentFile, sent_files
from transports.telegram.incoming.message_fields import name_content
from transports.telegram.incoming.references import references_of

logger = logging.getLogger(__name__)

_MESSAGES = ("message", "edited_message", GUEST_MESSAGE)
_PLAIN_FIELDS = ("message_id", "date", "chat", "from", "text", "caption", "entities", "caption_entities")


@dataclass(frozen=True, slots=True)
class Heard:
    """What a message says, before its files are fetched.

    Attributes:
        text: What it says; nothing where all of it is forwarded, which is among references then.
        own_text: What of it its author wrote themselves.
        references: What it holds of others.
    """

    message: Message
    text: str
    own_text: str
    author: Author | None
    is_addressed: bool
    files: tuple[SentFile, ...]
    replied_files: tuple[SentFile, ...]
    references: tuple[Reference, ...]


class Reader:
    """Reads events, with their files."""

    def __init__(self, identify: Callable[[], Awaitable[BotIdentity]], files: Files) -> None:
        self._identify = identify
        self._files = files

    async def read(self, event: StoredEvent, *, with_files: bool = True) -> InboundMessage | None:
        """Return what an event says; None where it says nothing to anybody.

        Args:
            with_files: Otherwise they are only named.
        """
        update = stored_update(event)
        if is_press(update) and (pressed := pressed_message(update, event.received_at)) is not None:
            return pressed
        bot = await self._identify()
        heard = listen(update, bot)
        if heard is None:
            return None
        groups = heard.files, heard.replied_files
        is_whole = with_files or not (heard.is_addressed and any(groups))
        # What nobody asked for is only named.
        fetched, quoted = [Fetched(remarks=[f"[{file}]" for file in files]) for files in groups]
        if heard.is_addressed and with_files and any(groups):
            fetched, quoted = await self._files.fetch(*groups, event_id=event.id)
        replied = heard.message.reply_to_message
        text, references = _with_files(heard, fetched, quoted)
        own = "\n".join(part for part in (heard.own_text, _spoken(heard.message, fetched.remarks)) if part)
        return InboundMessage(
            text,
            heard.author,
            (*fetched.attachments, *quoted.attachments),
            heard.message.date,
            str(heard.message.message_id),
            heard.is_addressed,
            command=_command(update, bot) if heard.is_addressed else None,
            language=_language(heard.message),
            is_private=heard.message.chat.type == "private" and not is_from_guest(update),
            replies_to=None if replied is None else str(replied.message_id),
            is_whole=is_whole,
            unread=() if is_from_guest(update) else (*fetched.unread, *quoted.unread),  # there is one message for all
            own_text=None if own == text else own,
            is_anonymous=heard.message.sender_chat is not None,
            references=references,
        )


def is_from_guest(update: Mapping[str, Any]) -> bool:
    """Return whether somebody has called the bot into a chat that it is no member of."""
    return GUEST_MESSAGE in update


def listen(update: Mapping[str, Any], bot: BotIdentity) -> Heard | None:
    """Return what an update says; None where it brings no message.

    A newer API may send what the client library cannot read: then as much is read as it takes to answer.
    """
    body = next((update[name] for name in _MESSAGES if name in update), None)
    if not isinstance(body, Mapping):
        return None
    for reduce in (dict, _plain, _bare):
        try:
            heard = _parse(reduce(body), bot)
            return replace(heard, is_addressed=True) if heard is not None and is_from_guest(update) else heard
        except Exception as error:  # noqa: BLE001 - a border: the library raises whatever unexpected fields lead to
            logger.warning("telegram.unreadable", extra={"reason": type(error).__name__, "read_as": reduce.__name__})
    return None


def _parse(body: Mapping[str, Any], bot: BotIdentity) -> Heard | None:
    if not body:
        return None
    message = Message.de_json(dict(body), None)
    text = text_of(message, bot)
    if text is None:
        return None
    heard = Heard(
        message,
        "" if is_forwarded(message) else text,
        own_words_of(message, bot),
        author_of(message),
        is_addressed(message, bot),
        _files(message),
        _files(message.reply_to_message),
        references_of(message, bot) if holds_others(message) else (),
    )
    _check(heard)
    return heard


def _files(message: Message | None) -> tuple[SentFile, ...]:
    return tuple(sent_files(message)) if message is not None and has_file(message) else ()


def _check(heard: Heard) -> None:
    """Return if everything is what it is said to be: the client library believes whatever comes.

    Raises:
        TypeError: it is not.
    """
    author = heard.author or Author()
    texts = [heard.text, *(value for value in (author.id, author.name) if value is not None)]
    for each in heard.references:
        texts += [each.text, (each.author and each.author.name) or ""]
    texts.extend(file.file_id for file in (*heard.files, *heard.replied_files))
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text is none")
    if not isinstance(heard.message.message_id, int) or not isinstance(heard.message.date, datetime):
        raise TypeError("an id or a date is none")


def _with_files(heard: Heard, fetched: Fetched, quoted: Fetched) -> tuple[str, tuple[Reference, ...]]:
    """Return the text and the references of a message with what files say: each file is of whoever sent it first."""
    text, references = heard.text, []
    for each in heard.references:
        theirs = fetched if each.kind is ReferenceKind.FORWARD else quoted
        said = "\n".join(part for part in (each.text, *theirs.remarks) if part)
        references.append(replace(each, text=said, file_count=len(theirs.attachments)))
    if not is_forwarded(heard.message):
        text = "\n".join(part for part in (text, *fetched.remarks) if part)
    return text, tuple(references)


def _spoken(message: Message, remarks: Sequence[str]) -> str:
    """Return what the author of a message says in a recording of their own, which comes before any other file."""
    is_own = message.forward_origin is None and (message.voice is not None or message.video_note is not None)
    return remarks[0].partition("]\n")[2] if is_own and remarks else ""


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without what most messages do not have; what else it holds is named where it has no words."""
    plain = {name: body[name] for name in _PLAIN_FIELDS if name in body}
    named = {} if plain.keys() & {"text", "caption"} else {"text": name_content(body) or None}
    return plain | named | _whose(body)


def _whose(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what keeps the words of others from being taken for their sender's own, whoever they are of."""
    marks: dict[str, Any] = {}
    if body.get("forward_origin") is not None:
        marks["forward_origin"] = {"type": "hidden_user", "date": 0, "sender_user_name": ""}
    if body.get("via_bot") is not None:
        marks["via_bot"] = {"id": 0, "is_bot": True, "first_name": ""}
    return marks


def _bare(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of which everything is as it should be: who, where, and the words."""
    chat = body["chat"]
    kind = chat.get("type")
    bare: dict[str, Any] = {
        "message_id": _whole(body.get("message_id"), 0),
        "date": _whole(body.get("date"), int(time.time())),
        "chat": {"id": chat["id"], "type": kind if isinstance(kind, str) else "private" if chat["id"] > 0 else "group"},
    }
    sender = body.get("from")
    if isinstance(sender, Mapping) and isinstance(sender.get("id"), int):
        name = sender.get("first_name")
        bare["from"] = {"id": sender["id"], "is_bot": False, "first_name": name if isinstance(name, str) else ""}
    words = next((body[name] for name in ("text", "caption") if isinstance(body.get(name), str)), None)
    return bare | {"text": words or name_content(body) or None} | _whose(body)


def _whole(value: object, otherwise: int) -> int:
    is_fit = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**33
    return int(value) if is_fit and isinstance(value, int) else otherwise


def _command(update: Mapping[str, Any], bot: BotIdentity) -> CommandCall | None:
    message = update.get("message")
    name = command_of(message, bot)
    if name is None or not isinstance(message, Mapping):
        return None
    return CommandCall(name, str(message.get("text")).strip().partition(" ")[2].strip())


def _language(message: Message) -> str | None:
    language = message.from_user.language_code if message.from_user is not None else None
    return language if isinstance(language, str) else None
