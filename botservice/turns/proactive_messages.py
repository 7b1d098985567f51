"""Messages that nobody asked for: a program's own words in a conversation, once for each key.

A message is stored with its turn and its delivery in one transaction, by any process. The delivery holds the number of
the message alone: the next holder of the conversation has its platform plan it, and sends it (see `Outbox`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.images import as_attachment
from botservice.conversation.queries import (
    find_audience,
    find_context,
    find_or_insert_context,
    note_untrusted,
    read_context_keys,
)
from botservice.core.argument_checks import check, check_listed
from botservice.core.chat_addresses import ChatAddress
from botservice.core.errors import ChatRefused, StorageError
from botservice.core.messages import Attachment, Author, Button, Message, Role, is_blank, storable
from botservice.core.states import API, EventKind, Outcome
from botservice.history.chat_history import count_text
from botservice.history.queries import find_answer, insert_message
from botservice.history.rows import NewMessage
from botservice.people.access import Access
from botservice.people.names import chat_name, is_chat_name, transport_of
from botservice.storage.database import Connection, Storage
from botservice.turns.buttons import write_buttons
from botservice.turns.delivery_queries import owe_unplanned
from botservice.turns.event_queries import event_key, find_event, find_turn_of_key, keep_key, set_turn_of_key
from botservice.turns.queries import finish_turn, insert_turn
from botservice.turns.transport import OF_MESSAGE, OFFERED
from botservice.turns.wakeups import Wakeup, notify_replicas

LONGEST_KEY: Final = 255  # characters


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that is stored to be sent.

    Attributes:
        is_new: Whether no message with its key was sent before.
    """

    message: Message
    is_new: bool


def checked_words(text: Any, attachments: Iterable[Attachment], key: Any) -> tuple[Attachment, ...]:
    """Check what is to be sent, and return its files.

    Raises:
        InvalidArgument: text is not a str or is empty, or the key is not a str of 1 to 255 characters.
    """
    files = tuple(map(as_attachment, check_listed("attachments=", attachments, remedy="give a list of files")))
    says = isinstance(text, str) and (bool(files) or not is_blank(text))
    check("what is sent", text, is_right=says, remedy="give a text, or files by attachments=[…]")
    is_key = key is None or (isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and key == storable(key))
    check("key=", key, is_right=is_key, remedy=f"give a text of 1 to {LONGEST_KEY} characters")
    return files


async def prepare_message(text: str, attachments: Sequence[Attachment], now: datetime) -> NewMessage:
    """Return the bot's own message as it is stored."""
    counter, count = await count_text(text)
    return NewMessage(
        role=Role.ASSISTANT,
        text=text,
        created_at=now,
        attachments=tuple(attachments),
        token_count=count,
        token_encoding=counter.name,
    )


def write_message(
    connection: Connection, context_id: int, new: NewMessage, *, buttons: Sequence[Button] = (), key: str | None = None
) -> Message:
    """Store a message to be sent, and return it; the message of a key that is stored already is returned as it is.

    Args:
        key: Names the message in its conversation, as long as events are kept.

    Raises:
        StorageError: the conversation is gone, or the message of the key has been deleted.
    """
    now = new.created_at
    transport = transport_of(read_context_keys(connection, context_id)) or API
    event_id = None
    if key is not None:
        event_id = keep_key(connection, context_id, key, transport, now)
        if event_id is None:
            return _find_sent(connection, context_id, key)
    # It has not begun: the steps that a program keeps in view are those of the turn before.
    turn_id = insert_turn(connection, context_id, transport, now)
    finish_turn(connection, turn_id, now, Outcome.ANSWERED)
    if event_id is not None:
        set_turn_of_key(connection, event_id, turn_id)
    message = insert_message(connection, context_id, replace(new, answers_turn_id=turn_id))
    note_untrusted(connection, context_id)  # whose words a program passes on is not known
    if transport != API:
        payload: dict[str, Any] = {OF_MESSAGE: message.id}
        if buttons:
            payload[OFFERED] = write_buttons(buttons)
        owe_unplanned(connection, context_id, turn_id, transport, payload, now)
        notify_replicas(connection, [Wakeup(context_id, EventKind.PROGRAM, is_open=True)])
    return replace(message, buttons=tuple(buttons))


def find_or_make(connection: Connection, chat: ChatAddress, now: datetime) -> int:
    """Return the id of a chat's context, which is made where it is named by keys and not there yet.

    Raises:
        StorageError: there is no context of that number.
    """
    if chat.number is None:
        return find_or_insert_context(connection, ContextKeys.of(chat.keys), now)
    read_context_keys(connection, chat.number)
    return chat.number


def find_chat(connection: Connection, chat: ChatAddress, name: str, now: datetime) -> int:
    """Return the id of a chat's context, which is made where its platform lets the bot write first.

    Args:
        name: What the chat is called in the error.

    Raises:
        ChatRefused: nobody there has written to the bot.
        StorageError: there is no context of that number.
    """
    if chat.must_write_first and find_context(connection, ContextKeys.of(chat.keys)) is None:
        raise ChatRefused(f"{name} never wrote to this bot, which may not begin there: write to it first")
    return find_or_make(connection, chat, now)


async def send(
    storage: Storage,
    access: Access,
    context_id: int,
    new: NewMessage,
    *,
    buttons: Sequence[Button] = (),
    key: str | None = None,
) -> Sent:
    """Store a message for a conversation that has access.

    Raises:
        ChatRefused: it has no access, or is blocked.
        StorageError: the conversation is gone, or the message of the key has been deleted.
    """
    await check_let_in(storage, access, context_id)

    def write(connection: Connection) -> Sent:
        earlier = key is not None and is_sent(connection, context_id, key)
        return Sent(write_message(connection, context_id, new, buttons=buttons, key=key), not earlier)

    return await storage.write(write, sort_key=(context_id,))


async def check_let_in(storage: Storage, access: Access, context_id: int) -> None:
    """Check that something may be said in a conversation.

    Raises:
        ChatRefused: it is blocked, or has no access.
    """
    if not await is_let_in(storage, access, context_id):
        keys = await storage.read(lambda connection: read_context_keys(connection, context_id))
        name = chat_name(keys)
        raise ChatRefused(f"{name} is blocked or has no access: `botservice access approve {name}` gives it")


async def is_let_in(storage: Storage, access: Access, context_id: int) -> bool:
    """Return whether a conversation may use the service, regardless of who asks; that of a program always may."""
    row = await storage.read(lambda connection: find_audience(connection, context_id))
    if row is None or transport_of(row.context_keys) == API:
        return True
    keys, name = row.context_keys, chat_name(row.context_keys)
    person = Author(row.platform, row.platform_id) if row.platform is not None else None
    if person is None and keys.get("transport") == "telegram":
        person = Author("telegram", keys.get("chat_id"))  # a person's own chat has their number
    is_shared = row.is_shared or is_chat_name(name) or not keys.get("channel_id", "D").startswith("D")
    return await access.lets_in(storage, keys, person, is_shared=is_shared)


def is_sent(connection: Connection, context_id: int, key: str) -> bool:
    """Return whether a message with a key was sent to a conversation already."""
    return find_event(connection, event_key(context_id, key)) is not None


def _find_sent(connection: Connection, context_id: int, key: str) -> Message:
    turn_id = find_turn_of_key(connection, context_id, key)
    found = None if turn_id is None else find_answer(connection, turn_id)
    if found is None:
        raise StorageError(f"the message with the key {key!r} in context {context_id} was deleted since it was sent")
    return found
