"""Chats, people and messages: what exists, who may write where, and what can be seen."""

import itertools
import re
import time
from dataclasses import dataclass, field
from typing import Any

from standins.bot_api.calls import ApiError, Call, bad_request, forbidden
from standins.bot_api.files import Files
from standins.bot_api.journal import DraftShown, MessageDeleted, MessageEdited, MessageShown
from standins.bot_api.rich_words import words_of
from standins.serving import Journal

MEDIA = (
    "photo",
    "document",
    "voice",
    "audio",
    "video",
    "video_note",
    "animation",
    "sticker",
    "location",
    "contact",
    "rich_message",
)
DRAFT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Person:
    """A person who talks to the bot."""

    id: int
    first_name: str = "Alice"
    last_name: str | None = None
    username: str | None = None
    language_code: str | None = "en"

    def as_user(self) -> dict[str, Any]:
        named = {"last_name": self.last_name, "username": self.username, "language_code": self.language_code}
        given = {name: value for name, value in named.items() if value is not None}
        return {"id": self.id, "is_bot": False, "first_name": self.first_name, **given}


@dataclass(slots=True)
class Message:
    """A message as it stands: `wire` is the Bot API's own object, kept up to date."""

    wire: dict[str, Any]
    from_bot: bool
    call_seq: int | None
    shown_seq: int = 0
    changed_seq: int = 0
    edits: int = 0
    deleted: bool = False
    reactions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def message_id(self) -> int:
        return int(self.wire["message_id"])


@dataclass(frozen=True, slots=True)
class Visible:
    """What a person sees: one message, after edits. `text` is a caption where there is media."""

    chat_id: int
    message_id: int
    text: str
    from_bot: bool
    entities: tuple[dict[str, Any], ...]
    thread_id: int | None
    reply_to: int | None
    sender_id: int
    kind: str
    file_id: str | None
    edits: int
    shown_seq: int
    changed_seq: int
    call_seq: int | None
    buttons: tuple[tuple[dict[str, Any], ...], ...]
    reactions: tuple[dict[str, Any], ...]
    wire: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Draft:
    draft_id: int
    text: str
    entities: tuple[dict[str, Any], ...]
    thread_id: int | None
    shown_at: float


@dataclass(slots=True)
class Chat:
    id: int
    type: str
    title: str = ""
    person: Person | None = None
    is_forum: bool = False
    is_direct_messages: bool = False
    bot_status: str = "member"
    blocked: bool = False
    deactivated: bool = False
    can_write: bool = True
    migrated_to: int | None = None
    topics: dict[int, str] = field(default_factory=dict)
    members: dict[int, Person] = field(default_factory=dict)
    administrators: dict[int, tuple[str, bool]] = field(default_factory=dict)  # their status, and if they are anonymous
    messages: dict[int, Message] = field(default_factory=dict)
    draft: Draft | None = None
    version: int = 0
    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @property
    def is_private(self) -> bool:
        return self.type == "private"

    def as_wire(self) -> dict[str, Any]:
        if self.person is not None:
            user = self.person.as_user()
            names: dict[str, Any] = {key: user[key] for key in ("first_name", "last_name", "username") if key in user}
            return {"id": self.id, "type": "private", **names}
        wire: dict[str, Any] = {"id": self.id, "type": self.type, "title": self.title}
        wire |= {"is_forum": True} if self.is_forum else {}
        return wire | ({"is_direct_messages": True} if self.is_direct_messages else {})


class World:
    """Everything outside the bot. Its owner holds the lock."""

    def __init__(self, bot: dict[str, Any], journal: Journal):
        self.bot = bot
        self.journal = journal
        self.files = Files()
        self.chats: dict[int, Chat] = {}
        self.people: dict[int, Person] = {}
        self.shown_by_bot = 0
        self.fetched: list[str] = []  # addresses that Telegram has asked, to show what lies behind them
        self._shared_ids = itertools.count(1)  # private chats and small groups count their messages together

    def add_chat(self, chat: Chat) -> Chat:
        if chat.type in {"private", "group"}:
            chat.ids = self._shared_ids
        self.chats[chat.id] = chat
        for person in [chat.person, *chat.members.values()]:
            if person is not None:
                self.people[person.id] = person
        return chat

    def named(self, chat_id: int | str | None) -> Chat:
        """Return the chat of a call, whether or not the bot may write there."""
        if chat_id is None or chat_id == "":
            raise bad_request("chat_id is empty")
        if isinstance(chat_id, str) and chat_id.startswith("@"):
            for chat in self.chats.values():
                if not chat.is_private and chat.as_wire().get("username") == chat_id[1:]:
                    return chat
        if not isinstance(chat_id, int) or chat_id not in self.chats:
            raise bad_request("chat not found")
        return self.chats[chat_id]

    def reachable(self, call: Call) -> Chat:
        """Return the chat that a call wants to write to.

        Raises:
            ApiError: the bot may not.
        """
        chat = self.readable(call)
        if chat.deactivated:
            raise forbidden("user is deactivated")
        if chat.blocked:
            raise forbidden("bot was blocked by the user")
        if not chat.can_write:
            raise bad_request("not enough rights to send text messages to the chat")
        return chat

    def readable(self, call: Call) -> Chat:
        """Return the chat that a call asks about.

        Raises:
            ApiError: the bot is not in it.
        """
        chat = self.named(call.chat_id)
        if chat.migrated_to is not None:
            parameters = {"migrate_to_chat_id": chat.migrated_to}
            raise ApiError(400, "Bad Request: group chat was upgraded to a supergroup chat", parameters)
        if not chat.is_private and chat.bot_status == "kicked":
            raise forbidden(f"bot was kicked from the {chat.type} chat")
        if chat.bot_status == "left":
            raise forbidden(f"bot is not a member of the {chat.type} chat")
        return chat

    def direct_topic(self, chat: Chat, call: Call) -> dict[str, Any]:
        """Return the part of a message that says in which topic of a channel's direct messages it stands.

        Source: core.telegram.org/bots/api#sendmessage: required in such a chat, and unknown in any other.
        """
        topic_id = call.integer("direct_messages_topic_id")
        if not chat.is_direct_messages:
            if topic_id:
                raise bad_request("the chat is not a direct messages chat")
            return {}
        if topic_id not in chat.members:
            raise bad_request("direct messages topic not found" if topic_id else "topic must be specified")
        return in_direct_topic(chat.members[topic_id])

    def thread(self, chat: Chat, call: Call) -> int | None:
        """Return the topic that a call is about."""
        thread_id = call.integer("message_thread_id")
        if not thread_id:
            return None
        if thread_id not in chat.topics:
            raise bad_request("message thread not found")
        return thread_id

    def show(
        self,
        chat: Chat,
        sender: dict[str, Any],
        content: dict[str, Any],
        *,
        thread_id: int | None = None,
        reply_to: int | None = None,
        call_seq: int | None = None,
    ) -> Message:
        """Add a message to a chat."""
        from_bot = sender is self.bot
        message_id = next(chat.ids)
        wire = {"message_id": message_id, "from": sender, "chat": chat.as_wire(), "date": int(time.time())}
        if thread_id is not None:
            wire |= {"message_thread_id": thread_id, "is_topic_message": True}
        if reply_to is not None:
            replied = chat.messages[reply_to].wire
            wire["reply_to_message"] = {key: replied[key] for key in replied if key != "reply_to_message"}
            if thread_id is None and chat.type == "supergroup":  # replies make a thread, which is no topic
                wire["message_thread_id"] = replied.get("message_thread_id", reply_to)
        wire |= content
        message = Message(wire, from_bot, call_seq)
        chat.messages[message_id] = message
        chat.version += 1
        if from_bot:
            self.shown_by_bot += 1
            chat.draft = None
        entry = self.journal.record(
            MessageShown,
            chat_id=chat.id,
            message_id=message_id,
            from_bot=from_bot,
            text=_words(wire),
            thread_id=thread_id,
            call_seq=call_seq,
        )
        message.shown_seq = message.changed_seq = entry.seq
        return message

    def preview(self, call: Call, content: dict[str, Any]) -> None:
        """Fetch what lies behind the first link of a text, unless the call says otherwise."""
        options = call.object("link_preview_options", dict, "link preview options") or {}
        if options.get("is_disabled") or call.flag("disable_web_page_preview"):
            return
        linked = [each["url"] for each in content.get("entities", ()) if each["type"] == "text_link"]
        written = re.findall(r"https?://\S+|[\w.-]+\.[a-z]{2,}/\S*", content["text"])
        self.fetched += [*written, *linked][:1]

    def edit(self, chat: Chat, message: Message, wire: dict[str, Any], *, call_seq: int | None = None) -> None:
        message.wire = wire | {"edit_date": int(time.time())}
        message.edits += 1
        chat.version += 1
        message.changed_seq = self.journal.record(
            MessageEdited,
            chat_id=chat.id,
            message_id=message.message_id,
            from_bot=message.from_bot,
            text=_words(wire),
            call_seq=call_seq,
        ).seq

    def delete(self, chat: Chat, message: Message, *, call_seq: int | None = None) -> None:
        message.deleted = True
        chat.version += 1
        self.journal.record(MessageDeleted, chat_id=chat.id, message_id=message.message_id, call_seq=call_seq)

    def draft(self, chat: Chat, draft: Draft, *, call_seq: int) -> None:
        chat.draft = draft
        chat.version += 1
        self.journal.record(
            DraftShown,
            chat_id=chat.id,
            draft_id=draft.draft_id,
            text=draft.text,
            thread_id=draft.thread_id,
            call_seq=call_seq,
        )

    def existing(self, chat: Chat, message_id: int) -> Message | None:
        message = chat.messages.get(message_id)
        return None if message is None or message.deleted else message


def in_direct_topic(person: Person) -> dict[str, Any]:
    """Return the part of a message that names the topic of a person; its id is theirs."""
    return {"direct_messages_topic": {"topic_id": person.id, "user": person.as_user()}}


def _words(wire: dict[str, Any]) -> str:
    if "rich_message" in wire:
        return words_of(wire["rich_message"])
    return str(wire.get("text", wire.get("caption", "")))


def seen(chat: Chat, message: Message) -> Visible:
    """Return a message as a person sees it."""
    wire = message.wire
    kind = next((name for name in MEDIA if name in wire), "text" if "text" in wire else "service")
    media = wire.get(kind)
    attached = media[-1] if isinstance(media, list) and media else media
    keyboard = wire.get("reply_markup", {}).get("inline_keyboard", ())
    return Visible(
        chat_id=chat.id,
        message_id=message.message_id,
        text=_words(wire),
        from_bot=message.from_bot,
        entities=tuple(wire.get("entities", wire.get("caption_entities", ()))),
        thread_id=wire["message_thread_id"] if "is_topic_message" in wire else None,
        reply_to=wire.get("reply_to_message", {}).get("message_id"),
        sender_id=wire["from"]["id"],
        kind=kind,
        file_id=attached.get("file_id") if isinstance(attached, dict) else None,
        edits=message.edits,
        shown_seq=message.shown_seq,
        changed_seq=message.changed_seq,
        call_seq=message.call_seq,
        buttons=tuple(tuple(row) for row in keyboard),
        reactions=tuple(message.reactions),
        wire=wire,
    )
