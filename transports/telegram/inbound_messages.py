"""What a stored event says to the agent: its words, whose they are, whether the bot is meant, what it holds of others.

Messages are read as the plain JSON that they are: whatever a newer Bot API adds or changes, as much is read as it takes
to answer.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from botservice.core.message_references import LONGEST_REFERENCE, Reference, ReferenceKind
from botservice.core.messages import Author, InboundMessage
from botservice.core.quoting import shortened
from botservice.turns.turn import StoredEvent
from transports.common.documents import ExtractedFiles
from transports.common.json_fields import field, integer, items_of, string
from transports.markdown.links import link
from transports.telegram.button_presses import pressed_message
from transports.telegram.context import TelegramContext
from transports.telegram.inbound_events import (
    GUEST_MESSAGE,
    BotIdentity,
    command_of,
    direct_topic,
    is_press,
    language_of,
    stored_update,
)
from transports.telegram.message_fields import FILES, QUOTES, describe, is_typed, name_content, with_links, words_of
from transports.telegram.received_files import TelegramFile, TelegramFiles, sent_files

_MESSAGES: Final = ("message", "edited_message", GUEST_MESSAGE)
_LATEST_DATE: Final = 2**33
# Those that hold no others. Source: core.telegram.org/bots/api#richblock
_TYPED_BLOCKS: Final = ("paragraph", "heading", "pre", "divider", "mathematical_expression")
_RECORDINGS: Final = ("voice", "video_note")
_NAME: Final = re.compile(r"(?<!\w)@\w+")

Body = Mapping[str, Any]
"""A message as Telegram sends it. Source: core.telegram.org/bots/api#message."""


@dataclass(frozen=True, slots=True)
class MessageContent:
    """What a message says, before its files are fetched.

    Attributes:
        is_private: Whether it was written to the bot alone.
        replied: The message that it replies to.
        text: What it says; nothing where all of it is forwarded, which is among references then.
        own_text: What of it its author wrote themselves.
        references: What it holds of others.
    """

    message: Body
    text: str
    own_text: str
    author: Author | None
    is_private: bool
    is_addressed: bool
    replied: Body | None
    files: tuple[TelegramFile, ...]
    replied_files: tuple[TelegramFile, ...]
    references: tuple[Reference, ...]


class TelegramReader:
    """Reads events, with their files."""

    def __init__(self, telegram: TelegramContext) -> None:
        self._telegram = telegram
        self._files = TelegramFiles(telegram)

    async def read(self, event: StoredEvent, *, with_files: bool = True) -> InboundMessage | None:
        """Return what an event says, or None if it says nothing to anybody."""
        update = stored_update(event)
        if is_press(update) and (pressed := pressed_message(update, event.received_at)) is not None:
            return pressed
        bot = await self._telegram.identify()
        received = listen(update, bot)
        if received is None:
            return None
        message, is_from_guest = received.message, GUEST_MESSAGE in update
        is_addressed = received.is_addressed or event.is_meant
        groups = received.files, received.replied_files
        # What nobody asked for is only named.
        fetched, quoted = [ExtractedFiles(remarks=[f"[{file}]" for file in files]) for files in groups]
        if is_addressed and with_files and any(groups):
            fetched, quoted = [await self._files.fetch(files, event_id=event.id) for files in groups]
        text, references = _with_files(received, fetched, quoted)
        own = "\n".join(part for part in (received.own_text, _spoken(message, fetched.remarks)) if part)
        return InboundMessage(
            text,
            received.author,
            (*fetched.attachments, *quoted.attachments),
            _sent_at(message),
            str(integer(message, "message_id") or 0),
            is_addressed,
            command=command_of(update.get("message"), bot) if is_addressed else None,
            language=language_of(message),
            is_private=received.is_private and not is_from_guest,
            replies_to=None if received.replied is None else str(received.replied["message_id"]),
            is_whole=with_files or not (is_addressed and any(groups)),
            unread=() if is_from_guest else (*fetched.unread, *quoted.unread),  # there is one message for all
            own_text=None if own == text else own,
            is_anonymous=_account(message.get("sender_chat")) is not None,
            references=references,
            is_all_own=is_typed(message) and _is_all_own(received, own == text, references),
        )


def listen(update: Mapping[str, Any], bot: BotIdentity) -> MessageContent | None:
    """Return what an update says, or None if it brings no message, or one that only reports something."""
    message = next((update[name] for name in _MESSAGES if name in update), None)
    if not isinstance(message, Mapping):
        return None
    files, written = _files(message), _written(message, bot)
    text = _text(message, written, files)
    if text is None:
        return None
    replied, is_private = _replied(message), _is_private(message)
    return MessageContent(
        message,
        "" if _is_forwarded(message) else text,
        (written or "") if is_typed(message) else "",
        _author(message),
        is_private,
        is_private or GUEST_MESSAGE in update or _is_addressed(message, replied, bot),
        replied,
        files,
        () if replied is None else _files(replied),
        tuple(_references(message, replied, text, bot)),
    )


def _is_all_own(received: MessageContent, is_only_text: bool, references: Sequence[Reference]) -> bool:  # noqa: FBT001 - one of three
    """Return whether a typed message holds nothing of anybody but its author and the bot."""
    message = received.message
    if received.author is None or message.get("sender_chat") is not None:
        return False
    if any(not each.is_of_assistant for each in references) or _holds_quotes(message):
        return False
    is_recording = any(message.get(name) is not None for name in _RECORDINGS) and message.get("caption") is None
    return is_recording or (is_only_text and FILES.isdisjoint(message))


def _holds_quotes(message: Body) -> bool:
    """Return whether a message holds quoted words, or blocks that need not be words of its author."""
    blocks = items_of(message, "rich_message", "blocks")
    are_typed = all(field(each, "type") in _TYPED_BLOCKS for each in blocks)
    return not are_typed or any(each.get("type") in QUOTES for each, _ in _entities(message))


def _files(message: Body) -> tuple[TelegramFile, ...]:
    return () if FILES.isdisjoint(message) else tuple(sent_files(message))


def _with_files(
    received: MessageContent, fetched: ExtractedFiles, quoted: ExtractedFiles
) -> tuple[str, tuple[Reference, ...]]:
    """Return the text and the references of a message with what files say: a file belongs to its first sender."""
    text, references = received.text, []
    for each in received.references:
        theirs = fetched if each.kind is ReferenceKind.FORWARD else quoted
        said = "\n".join(part for part in (each.text, *theirs.remarks) if part)
        references.append(replace(each, text=said, file_count=len(theirs.attachments)))
    if not _is_forwarded(received.message):
        text = "\n".join(part for part in (text, *fetched.remarks) if part)
    return text, tuple(references)


def _spoken(message: Body, remarks: Sequence[str]) -> str:
    """Return what the author of a message says in a recording of their own, which comes before any other file."""
    is_own = not _is_forwarded(message) and (message.get("voice") or message.get("video_note"))
    return remarks[0].partition("]\n")[2] if is_own and remarks else ""


def _text(message: Body, said: str | None, files: Sequence[TelegramFile]) -> str | None:
    """Return the text of a message, or None if it only reports that something happened in the chat.

    Args:
        said: What is written in it.
    """
    if isinstance(message.get("text"), str):  # then it is all that there is, but for buttons
        return "\n".join(part for part in (said, _link_buttons(message)) if part)
    described, buttons = describe(message), _link_buttons(message)
    if said is None and described is None and not files and not buttons:
        return name_content(message) or None
    return "\n".join(part for part in (described, said, buttons) if part)


def _written(message: Body, bot: BotIdentity) -> str | None:
    """Return text or caption, with the addresses of its links and without the bot's name in front of it."""
    text, entities = _words(message)
    text = with_links(text, entities) if text is not None else words_of(message.get("rich_message")) or None
    if text is None:
        return None
    return _without_name(text, bot)


def _without_name(text: str, bot: BotIdentity) -> str:
    """Return a text without the bot's name in front; where the bot is named next to others, it is told its name."""
    first, _, rest = text.lstrip().partition(" ")
    is_named = first.startswith("@") and bot.is_called(first)
    if is_named and rest.strip() and not rest.lstrip().startswith("@"):
        return rest.strip()
    if bot.username is None or text.strip().lower() == f"@{bot.username}".lower():
        return text
    own = re.compile(rf"(?<!\w)@{re.escape(bot.username)}(?!\w)", re.IGNORECASE)
    return own.sub(lambda found: f"{found[0]} (you)", text) if len(_NAME.findall(text)) > 1 else text


def _link_buttons(message: Body) -> str:
    """Return the buttons under a message that open an address, as links: posts of channels and bots have them."""
    rows = items_of(message, "reply_markup", "inline_keyboard")
    buttons = [each for row in rows if isinstance(row, list) for each in row]
    found = [(string(each, "text"), string(each, "url")) for each in buttons]
    return " ".join(link(text, url) for text, url in found if text and url)


def _words(message: Body) -> tuple[str | None, object]:
    """Return the text of a message, or its caption, with the entities of it."""
    for words, entities in (("text", "entities"), ("caption", "caption_entities")):
        if isinstance(message.get(words), str):
            return message[words], message.get(entities)
    return None, None


def _sent_at(message: Body) -> datetime:
    date = integer(message, "date")
    is_date = date is not None and 0 <= date < _LATEST_DATE
    return datetime.fromtimestamp(date if date is not None and is_date else int(time.time()), UTC)


def _is_private(message: Body) -> bool:
    """Return whether a message was written to the bot alone; where its chat has no kind, its number tells."""
    kind = field(message, "chat", "type")
    return kind == "private" if isinstance(kind, str) else (integer(message, "chat", "id") or 0) > 0


def _is_forwarded(message: Body) -> bool:
    """Return whether all that a message says and brings is another's."""
    return message.get("forward_origin") is not None


def _is_addressed(message: Body, replied: Body | None, bot: BotIdentity) -> bool:
    """Return whether the bot is meant in a group: if it is mentioned, replied to or given a command."""
    if field(message, "chat", "type") == "sender":
        return True
    if field(message, "from", "is_bot") is True and _account(message.get("sender_chat")) is None:
        return False
    if (topic := direct_topic(message)) is not None and _is_of_topic(message, topic):
        return True
    is_reply = _is_said(replied) and field(replied, "from", "id") == bot.id
    return is_reply or any(_means(entity, text, bot) for entity, text in _entities(message))


def _is_of_topic(message: Body, topic: object) -> bool:
    """Return whether the person whose topic of a channel's direct messages this is wrote a message.

    The channel's administrators write there as well, to that person.
    """
    author, person_id = _author(message), integer(topic, "user", "id")
    return person_id is None or (author is not None and author.id == str(person_id))


def _entities(message: Body) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the entities of a message with the words that they cover: Telegram counts in UTF-16 code units."""
    text, entities = _words(message)
    data = (text or "").encode("utf-16-le", "surrogatepass")
    for each in items_of(entities):
        offset, length = integer(each, "offset"), integer(each, "length")
        if offset is not None and length is not None:
            yield each, data[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")


def _means(entity: Mapping[str, Any], text: str, bot: BotIdentity) -> bool:
    match entity.get("type"):
        case "text_mention":
            return bool(field(entity, "user", "id") == bot.id)
        case "mention":
            return bot.is_called(text)
        case "bot_command":
            return entity["offset"] == 0 and bot.takes(text)
        case _:
            return False


def _author(message: Body) -> Author | None:
    """Return who wrote a message: a person, or a chat in whose name it was written."""
    return _account(message.get("sender_chat")) or _account(message.get("from"))


def _account(sender: object) -> Author | None:
    """Return a person or a chat as an author, or None if there is none."""
    sender_id = integer(sender, "id")
    if sender_id is None or not isinstance(sender, Mapping):
        return None
    given = {name: value for name, value in sender.items() if isinstance(value, str) and value}
    full = " ".join(given[name] for name in ("first_name", "last_name") if name in given)
    return Author("telegram", str(sender_id), full or given.get("title") or given.get("username") or str(sender_id))


def _replied(message: Body) -> Body | None:
    """Return the message that a message replies to."""
    replied = message.get("reply_to_message")
    has_id = isinstance(replied, Mapping) and integer(replied, "message_id") is not None
    return replied if has_id else None


def _is_said(replied: Body | None) -> bool:
    """Return whether a reply is to a person's message: Telegram has everything in a topic reply to its beginning."""
    return replied is not None and replied.get("forum_topic_created") is None


def _references(message: Body, replied: Body | None, text: str, bot: BotIdentity) -> Iterator[Reference]:
    """Yield what a message forwards and what it replies to, with who said it.

    Telegram names the author of a message that the bot was never shown, too.
    """
    if _is_forwarded(message):
        yield _reference(ReferenceKind.FORWARD, _origin(message["forward_origin"]), text, None, bot)
    outside, story = message.get("external_reply"), message.get("reply_to_story")
    quote = message.get("quote")
    quoted = string(quote, "text")
    quoted = None if quoted is None else with_links(quoted, field(quote, "entities"))
    if replied is not None and _is_said(replied):
        said = quoted if quoted is not None else _text(replied, _written(replied, bot), _files(replied))
        # The author of a forwarded message is its first sender.
        is_sent_on = _is_forwarded(replied)
        author = _origin(replied["forward_origin"]) if is_sent_on else _author(replied)
        found = _reference(ReferenceKind.REPLY, author, _cut(said), str(replied["message_id"]), bot)
        yield replace(found, is_sent_on=is_sent_on)
    elif isinstance(outside, Mapping):
        author = _origin(outside.get("origin"))
        yield _reference(ReferenceKind.REPLY, author, _cut(quoted or describe(outside)), None, bot)
    elif story is not None:
        yield _reference(ReferenceKind.REPLY, _account(field(story, "chat")), "[story]", None, bot)


def _reference(
    kind: ReferenceKind, author: Author | None, text: str, external_id: str | None, bot: BotIdentity
) -> Reference:
    is_of_assistant = author is not None and author.id == str(bot.id)
    return Reference(kind, author, text, external_id, is_of_assistant)


def _origin(origin: object) -> Author | None:
    """Return whom Telegram names as the author of what is forwarded: a person may hide who they are, but for a name."""
    match field(origin, "type"):
        case "hidden_user" if isinstance(field(origin, "sender_user_name"), str):
            return Author("telegram", None, field(origin, "sender_user_name"))
        case "user" | "chat" as kind:
            return _account(field(origin, f"sender_{kind}"))
        case "channel":
            return _account(field(origin, "chat"))
        case _:
            return None


def _cut(text: str | None) -> str:
    return shortened(text or "", LONGEST_REFERENCE)
