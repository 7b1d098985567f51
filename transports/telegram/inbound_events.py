"""What Telegram delivers, as events to be stored: plain JSON is looked at, nothing is parsed that may fail."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from botservice.core.messages import CommandCall
from botservice.core.states import EventKind
from botservice.people.names import DIRECT_TOPIC, GUEST
from botservice.turns.commands import parse_command
from botservice.turns.turn import InboundEvent, StoredEvent
from transports.common.json_fields import field, integer, items_of, string
from transports.telegram.formatting import units
from transports.telegram.message_fields import QUOTES, is_typed

logger = logging.getLogger(__name__)

# What is asked for. Not to be named means not to be sent; an update of another kind does no harm.
ALLOWED_UPDATES = [
    *("message", "edited_message", "callback_query", "my_chat_member", "stopped_message_generation"),
    "message_reaction",
]
GUEST_MESSAGE = "guest_message"
_EVENTS = ("message", "edited_message", "stopped_message_generation", GUEST_MESSAGE)

_ABSENT = ("left", "kicked")
_LONGEST_WHOLE_UNITS = 4_000  # of the 4,096 at which clients cut a text: one that is longer may go on
_DIRECT_TOPIC = "direct_messages_topic"
_MIGRATIONS = ("migrate_to_chat_id", "migrate_from_chat_id")
_IN_DIRECT_TOPIC = ":direct"
UNSEEN = "e"  # what the id of a message begins with that nobody but its receiver sees


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """Who the bot is. Its username is None until Telegram has been reached.

    Attributes:
        takes_guests: Whether it answers in chats that it is no member of.
        has_topics: Whether private chats with it may have topics.
        hears_groups: Whether privacy mode is off, so that it receives what is said in groups without addressing it.
        commands: The names of the commands that it knows; None if any may be one.
    """

    id: int
    username: str | None = None
    takes_guests: bool = False
    has_topics: bool = False
    hears_groups: bool = False
    commands: frozenset[str] | None = None

    def takes(self, command: str) -> bool:
        """Return whether a command such as "/ban" or "/ban@some_bot" is for this bot, in a group of several."""
        name, at, username = command.removeprefix("/").partition("@")
        return self.is_called(username) if at else self.commands is None or name.lower() in self.commands

    def is_called(self, username: str) -> bool:
        """Return whether username is the bot's."""
        return self.username is not None and username.lstrip("@").lower() == self.username.lower()


def identified(bot: BotIdentity, me: object) -> BotIdentity:
    """Return who the bot is by what Telegram says of it; what it cannot do there is said once."""
    if bot.takes_guests and field(me, "supports_guest_queries") is False:
        logger.warning("telegram.guests_are_off", extra={"advice": "turn guest mode on for the bot at @BotFather"})
    if field(me, "supports_inline_queries") is True:
        logger.warning(
            "telegram.inline_is_on", extra={"advice": "nobody answers there: @BotFather, /setinline, turn off"}
        )
    has_topics = field(me, "has_topics_enabled") is True
    hears = field(me, "can_read_all_group_messages") is True
    return replace(bot, username=str(field(me, "username") or ""), has_topics=has_topics, hears_groups=hears)


def allowed_updates(*, takes_guests: bool) -> list[str]:
    """Return what is asked for."""
    return [*ALLOWED_UPDATES, GUEST_MESSAGE] if takes_guests else ALLOWED_UPDATES


def read_event(update: object, bot: BotIdentity) -> InboundEvent | None:
    """Return an update as an event, or None if it belongs to no conversation."""
    update_id = integer(update, "update_id")
    if update_id is None or not isinstance(update, Mapping):
        return None
    kind = next((name for name in _EVENTS if isinstance(update.get(name), Mapping)), None)
    if kind is None:
        return None
    body = update[kind]
    keys = guest_keys(body, bot) if kind == GUEST_MESSAGE else context_keys(body)
    if keys is None or migration_of(update) is not None or _is_aside(body, bot):
        return None
    edited = integer(body, "message_id") if kind == "edited_message" else None
    if kind == "edited_message" and edited is None:
        return None
    return InboundEvent(
        key=event_key(bot, update_id, keys),
        context_keys=keys,
        order_key=update_id,
        raw=json.dumps(update).encode(),
        kind=_kind(kind, body, bot),
        group_key=string(body, "media_group_id") or None if kind in ("message", "edited_message") else None,
        external_id=None if edited is None else str(edited),
        is_incomplete=kind == "message" and is_cut(body) and command_of(body, bot) is None,
    )


def event_key(bot: BotIdentity, update_id: int, keys: Mapping[str, str]) -> str:
    """Return the key by which an update is stored once."""
    return f"telegram:{bot.id}:{update_id}{_IN_DIRECT_TOPIC if DIRECT_TOPIC in keys else ''}"


def context_keys(message: object) -> dict[str, str] | None:
    """Return the context keys of a message: its chat, and its topic where it has one; None if it has no place.

    The direct messages of a channel are one chat. Each person has a topic there and sees no other, so nothing
    belongs to such a chat as a whole. docs/telegram.md says which fields decide which keys.
    """
    chat_id = integer(message, "chat", "id")
    if chat_id is None or not isinstance(message, Mapping):
        return None
    keys = {"transport": "telegram", "chat_id": str(chat_id)}
    if is_in_direct_messages(message):
        topic_id = integer(direct_topic(message), "topic_id")
        return None if topic_id is None else keys | {DIRECT_TOPIC: str(topic_id)}
    # A thread of replies in an ordinary group has a number as well, and is no topic.
    is_topic = message.get("is_topic_message") is True or message.get("draft_id") is not None
    thread_id = integer(message, "message_thread_id") if is_topic else None
    return keys if thread_id is None else keys | {"thread_id": str(thread_id)}


def direct_topic(message: object) -> Any:
    """Return the topic of a channel's direct messages that holds a message, or None if it stands elsewhere."""
    return field(message, _DIRECT_TOPIC)


def is_in_direct_messages(message: object) -> bool:
    """Return whether a message stands in the direct messages of a channel."""
    return field(message, _DIRECT_TOPIC) is not None or field(message, "chat", "is_direct_messages") is True


def send_parameters(context_keys: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a Bot API method that send something to a conversation."""
    names = {"chat_id": "chat_id", "thread_id": "message_thread_id", DIRECT_TOPIC: DIRECT_TOPIC}
    return {name: context_keys[key] for key, name in names.items() if key in context_keys}


def guest_keys(message: object, bot: BotIdentity) -> dict[str, str] | None:
    """Return what a question of a guest's chat is called, or None if none is taken, or another bot asks.

    Each is a conversation of its own: what a chat is called that the bot is no member of, nobody promises to be unique.
    """
    query_id, asker = field(message, "guest_query_id"), field(message, "from")
    if not bot.takes_guests or not isinstance(query_id, str) or not query_id or field(asker, "is_bot") is True:
        return None
    return {"transport": "telegram", GUEST: query_id} if integer(asker, "id") is not None else None


def migration_of(update: object) -> tuple[dict[str, str], dict[str, str]] | None:
    """Return the old and the new keys of a group that became a supergroup; None for any other update."""
    message = field(update, "message")
    if not isinstance(message, Mapping) or message.keys().isdisjoint(_MIGRATIONS):
        return None
    here = context_keys(message)
    if here is None:
        return None
    for name in _MIGRATIONS:
        other = integer(message, name)
        if other is not None:
            there = here | {"chat_id": str(other)}
            return (here, there) if name == "migrate_to_chat_id" else (there, here)
    return None


@dataclass(frozen=True, slots=True)
class Membership:
    """What the bot is in a chat from now on, such as "member" or "kicked".

    Attributes:
        is_private: Whether it is one person's chat: who is not in it has blocked the bot.
    """

    keys: Mapping[str, str]
    status: str
    by: int | None
    was_there: bool
    is_private: bool = False

    @property
    def is_there(self) -> bool:
        """Whether the bot is in the chat."""
        return self.status not in _ABSENT


def membership_of(update: object) -> Membership | None:
    """Return what becomes of the bot in a chat; None for any other update."""
    change = field(update, "my_chat_member")
    keys = context_keys(change)
    status = field(change, "new_chat_member", "status")
    if keys is None or not isinstance(status, str):
        return None
    before = field(change, "old_chat_member", "status")
    was_there = before not in (None, *_ABSENT)
    is_private = field(change, "chat", "type") == "private"
    return Membership(keys, status, integer(change, "from", "id"), was_there, is_private)


def place_of(update: object) -> tuple[int, int] | None:
    """Return the chat and the id of the message that an update brings, if it brings one."""
    message = field(update, "message")
    chat_id, message_id = integer(message, "chat", "id"), integer(message, "message_id")
    return (chat_id, message_id) if chat_id is not None and message_id is not None else None


def command_of(message: object, bot: BotIdentity) -> CommandCall | None:
    """Return the command that a person typed to this bot, or None: what others wrote, or a bot sent, gives none."""
    text = field(message, "text")
    if not isinstance(text, str):
        return None
    # Until Telegram was reached, nobody knows what the bot is called.
    call = parse_command(text, is_called=lambda name: bot.username is None or bot.is_called(name))
    return None if call is None or not is_typed(message) or _begins_with_quote(message) else call


def _begins_with_quote(message: object) -> bool:
    """Return whether the first words of a message are quoted: then they are a person's, and not its author's."""
    return any(field(each, "type") in QUOTES and field(each, "offset") == 0 for each in items_of(message, "entities"))


def is_press(update: object) -> bool:
    """Return whether an update is about a pressed button."""
    return isinstance(field(update, "callback_query"), Mapping)


def is_private_text(update: object) -> bool:
    """Return whether an update is a text in a private chat: then the bot is meant."""
    message = field(update, "message")
    return field(message, "chat", "type") == "private" and isinstance(field(message, "text"), str)


def asked_as_guest(events: Sequence[StoredEvent]) -> object | None:
    """Return the message by which a bot was called into a chat that it is no member of; None for any other turn."""
    found = (stored_update(event).get(GUEST_MESSAGE) for event in events)
    return next((message for message in found if message is not None), None)


def was_spoken(events: Sequence[StoredEvent]) -> bool:
    """Return whether events hold a voice message; what is only quoted or forwarded asks nothing."""
    said = [stored_update(event).get("message") for event in events]
    return any(field(each, "voice") is not None and field(each, "forward_origin") is None for each in said)


def stored_update(event: StoredEvent) -> Mapping[str, Any]:
    """Return an update as it was stored; empty where it is none."""
    try:
        update = json.loads(event.raw)
    except (ValueError, RecursionError):
        return {}
    return update if isinstance(update, dict) else {}


def reply_target(events: Sequence[StoredEvent]) -> int | None:
    """Return the message that an answer replies to: in a group, so that it is seen who is meant."""
    return integer(_asked_in_group(events), "message_id") or None  # 0 where no other person sees it


def is_comment(events: Sequence[StoredEvent]) -> bool:
    """Return whether events ask below a channel's post: what replies to nothing there leaves the comments.

    A post stands in the channel's group as a forward. Deeper in a thread it is not told what that began with, and a
    group's own threads look the same; a forum's are no comments.
    """
    message = _asked_in_group(events)
    thread_id = integer(message, "message_thread_id")
    is_forum = field(message, "chat", "is_forum") is True or field(message, "is_topic_message") is True
    if thread_id is None or is_forum:
        return False
    replied = field(message, "reply_to_message")
    return field(replied, "message_id") != thread_id or field(replied, "is_automatic_forward") is True


def _asked_in_group(events: Sequence[StoredEvent]) -> object:
    """Return the last message of events that stands in a group; None where there is none."""
    for event in reversed(events):
        update = stored_update(event)
        # What answers a pressed button replies to the message that it stands under.
        message = update.get("message") or field(update, "callback_query", "message")
        if field(message, "chat", "type") in ("group", "supergroup") and not is_in_direct_messages(message):
            return message
    return None


def shown_id(message: object) -> str | None:
    """Return what a message is called by here; one that only its receiver sees has a number of another kind."""
    unseen, message_id = integer(message, "ephemeral_message_id"), integer(message, "message_id")
    if unseen is not None:
        return f"{UNSEEN}{unseen}"
    return None if message_id is None else str(message_id)


def _is_aside(message: Mapping[str, Any], bot: BotIdentity) -> bool:
    """Return whether one person says something to the bot alone, in a group, that is no command.

    A group's conversation is everybody's: what is said in it is answered to all, and shown to the model again.
    """
    return integer(message, "ephemeral_message_id") is not None and command_of(message, bot) is None


def is_cut(message: object) -> bool:
    """Return whether a text is so long that its client may have cut it, and the rest is about to come."""
    return units(string(message, "text") or "") >= _LONGEST_WHOLE_UNITS


def _kind(kind: str, body: Mapping[str, Any], bot: BotIdentity) -> EventKind:
    if kind == "edited_message":
        return EventKind.EDIT
    is_stop = kind == "stopped_message_generation" or (kind == "message" and _is_stop(command_of(body, bot)))
    return EventKind.STOP if is_stop else EventKind.MESSAGE


def _is_stop(command: CommandCall | None) -> bool:
    return command is not None and command.name == "stop"


def language_of(said: object) -> str | None:
    """Return the language of the person whom a message, or a press, is from."""
    return string(said, "from", "language_code")


def asker_of(update: object) -> int | None:
    """Return the id of who wrote a message or pressed a button; None where that is a chat, not a person."""
    said = field(update, "callback_query") or field(update, "message")
    return None if field(said, "sender_chat") is not None else integer(said, "from", "id")
