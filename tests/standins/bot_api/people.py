"""The people's side: what a test lets a person say and do. Every method may be called from any thread."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standins.bot_api.chats import Chat, Message, Person, Visible, World, in_direct_topic, seen
from standins.bot_api.entities import MAX_TEXT_UNITS, detect
from standins.bot_api.files import File, attached
from standins.bot_api.updates import Updates
from standins.bot_api.webhooks import Webhooks
from standins.serving import Served

Who = Person | int | None
_queries = itertools.count(880_000_000_000_000_001)
_albums = itertools.count(14_000_000_000_000_001)


@dataclass(frozen=True, slots=True)
class Said:
    """What a person did: the message, and the update that tells the bot (None where it is not told)."""

    chat_id: int
    message_id: int
    update_id: int | None
    message: dict[str, Any]


class People(Served):
    """The half of the stand-in that people use."""

    world: World
    updates: Updates
    webhooks: Webhooks
    privacy_mode: bool
    callback_answers: dict[str, dict[str, Any] | None]

    def add_private_chat(self, person: Who = None, *, topics: dict[int, str] | None = None) -> Chat:
        """Let a person start the bot; `topics` turns topics on in the private chat."""
        with self.condition:
            someone = self._person(person if person is not None else 42)
            return self.world.add_chat(Chat(someone.id, "private", person=someone, topics=topics or {}))

    def add_group(
        self,
        chat_id: int = -1001000000001,
        *,
        title: str = "Team",
        type: str = "supergroup",  # noqa: A002 - the API's word
        is_forum: bool = False,
        members: Sequence[Person] = (),
        topics: dict[int, str] | None = None,
    ) -> Chat:
        """Make a group that the bot is in. Topics are ids and names, in a forum."""
        with self.condition:
            known = {member.id: member for member in members}
            is_forum = is_forum or bool(topics)
            return self.world.add_chat(
                Chat(chat_id, type, title, is_forum=is_forum, members=known, topics=topics or {})
            )

    def add_direct_messages(self, chat_id: int = -1002000000001, *, members: Sequence[Person] = ()) -> Chat:
        """Make the direct messages of a channel whose bot sees them: each member has a topic (Bot API 9.2)."""
        with self.condition:
            chat = Chat(chat_id, "supergroup", "Channel", is_direct_messages=True, bot_status="administrator")
            chat.members = {member.id: member for member in members}
            return self.world.add_chat(chat)

    def promote(self, chat_id: int, user: Who, status: str = "administrator", *, is_anonymous: bool = False) -> None:
        """Make a member of a group an administrator, or its "creator"; as a "member", nothing of it is left."""
        with self.condition:
            chat = self._chat(chat_id)
            person = self._member(chat, user)
            chat.administrators.pop(person.id, None)
            if status != "member":
                chat.administrators[person.id] = status, is_anonymous

    def add_topic(self, chat_id: int, name: str = "Topic") -> int:
        """Open a topic and return its message_thread_id."""
        with self.condition:
            chat = self._chat(chat_id)
            someone = next(iter(chat.members.values()), None) or chat.person or Person(1001)
            content = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
            made = self.world.show(chat, someone.as_user(), content)
            chat.topics[made.message_id] = name
            made.wire |= {"message_thread_id": made.message_id, "is_topic_message": True}
            self._push({"message": made.wire})
            return made.message_id

    def delete_topic(self, chat_id: int, thread_id: int) -> None:
        with self.condition:
            del self._chat(chat_id).topics[thread_id]

    def person_says(
        self,
        text: str = "hello",
        *,
        chat_id: int,
        user: Who = None,
        thread_id: int | None = None,
        reply_to: int | None = None,
        topic_of: Person | None = None,
        quote: str | None = None,
        entities: list[dict[str, Any]] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> Said:
        """Let a person write. An unknown positive chat is started; an unknown negative one is a new group."""
        found = detect(text) if entities is None else entities
        content = {"text": text} | ({"entities": found} if found else {}) | (extra or {})
        if quote is not None:
            content["quote"] = {"text": quote, "position": 0, "is_manual": True}
        where: dict[str, Any] = {"thread_id": thread_id, "reply_to": reply_to, "topic_of": topic_of}
        return self.person_sends(content, chat_id=chat_id, user=user, **where)

    def chat_says(self, text: str, *, chat_id: int, sender: dict[str, Any] | None = None, **how: Any) -> Said:
        """Let a person write in the name of a channel; by default an administrator in that of the group itself.

        Source: core.telegram.org/bots/api#message, `sender_chat`: for older clients, `from` is a bot of Telegram's own.
        """
        with self.condition:
            itself = self._chat(chat_id).as_wire()
        bot = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
        if sender is not None and sender["id"] != itself["id"]:
            bot = {"id": 136817688, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"}
        said = {"from": bot, "sender_chat": sender or itself, **how.pop("extra", {})}
        return self.person_says(text, chat_id=chat_id, extra=said, **how)

    def person_sends(
        self,
        content: dict[str, Any],
        *,
        chat_id: int,
        user: Who = None,
        thread_id: int | None = None,
        reply_to: int | None = None,
        topic_of: Person | None = None,
    ) -> Said:
        """Let a person send any content: `{"location": {…}}`, `{"sticker": {…}}`, what a newer API brings.

        Args:
            topic_of: In whose topic of a channel's direct messages; by default in the sender's own.
        """
        with self.condition:
            chat = self._chat(chat_id)
            someone = self._member(chat, user)
            if chat.is_direct_messages:
                content = content | in_direct_topic(topic_of or someone)
            message = self.world.show(chat, someone.as_user(), content, thread_id=thread_id, reply_to=reply_to)
            update_id = self._push({"message": message.wire}) if self._bot_sees(chat, message) else None
            return Said(chat.id, message.message_id, update_id, message.wire)

    def person_sends_file(
        self,
        kind: str,
        data: bytes,
        *,
        chat_id: int,
        caption: str = "",
        name: str = "",
        mime_type: str = "",
        size: int | None = None,
        user: Who = None,
        thread_id: int | None = None,
        reply_to: int | None = None,
    ) -> Said:
        """Let a person send a photo, document, voice, audio, video, video_note, animation or sticker.

        Args:
            size: What the platform says the size is, for files too big to exist here.
        """
        with self.condition:
            file = self.world.files.add(kind, data, name=name, mime_type=mime_type, size=size)
        content = attached(kind, file) | _captioned(caption)
        return self.person_sends(content, chat_id=chat_id, user=user, thread_id=thread_id, reply_to=reply_to)

    def person_sends_photo(self, data: bytes, *, chat_id: int, **how: Any) -> Said:
        return self.person_sends_file("photo", data, chat_id=chat_id, **how)

    def person_sends_voice(self, data: bytes, *, chat_id: int, **how: Any) -> Said:
        return self.person_sends_file("voice", data, chat_id=chat_id, **how)

    def person_sends_document(self, data: bytes, *, chat_id: int, name: str = "notes.txt", **how: Any) -> Said:
        return self.person_sends_file("document", data, chat_id=chat_id, name=name, **how)

    def person_sends_album(
        self,
        items: Sequence[bytes],
        *,
        chat_id: int,
        caption: str = "",
        caption_at: int = 0,
        kind: str = "photo",
        **how: Any,
    ) -> list[Said]:
        """Let a person send several files as one album: one update each, in a row, one media_group_id.

        Args:
            caption_at: On which of them the caption stands: clients put it on the first, people on any.
        """
        group = {"media_group_id": str(next(_albums))}
        said = []
        with self.condition:
            for number, data in enumerate(items):
                file = self.world.files.add(kind, data)
                content = attached(kind, file) | group | _captioned(caption if number == caption_at else "")
                said.append(self.person_sends(content, chat_id=chat_id, **how))
        return said

    def person_pastes(self, text: str, *, chat_id: int, **how: Any) -> list[Said]:
        """Let a person paste a text of any length: clients cut it and send the parts at once."""
        parts = [text[at : at + MAX_TEXT_UNITS] for at in range(0, len(text), MAX_TEXT_UNITS)]
        with self.condition:
            return [self.person_says(part, chat_id=chat_id, **how) for part in parts]

    def person_forwards(
        self, texts: Sequence[str], *, chat_id: int, comment: str = "", author: str = "Eve", **how: Any
    ) -> list[Said]:
        """Let a person forward messages of another person: a comment comes before them, as a message of its own."""
        origin = {"type": "hidden_user", "date": int(time.time()), "sender_user_name": author}
        with self.condition:
            said = [self.person_says(comment, chat_id=chat_id, **how)] if comment else []
            for text in texts:
                content = {"text": text, "forward_origin": origin}
                said.append(self.person_sends(content, chat_id=chat_id, **how))
            return said

    def person_edits(self, chat_id: int, message_id: int, text: str) -> Said:
        """Let a person change what they wrote."""
        with self.condition:
            chat = self._chat(chat_id)
            message = chat.messages[message_id]
            field, marks = ("text", "entities") if "text" in message.wire else ("caption", "caption_entities")
            wire = {name: value for name, value in message.wire.items() if name != marks} | {field: text}
            found = detect(text)
            self.world.edit(chat, message, wire | ({marks: found} if found else {}))
            update_id = self._push({"edited_message": message.wire}) if self._bot_sees(chat, message) else None
            return Said(chat.id, message_id, update_id, message.wire)

    def person_deletes(self, chat_id: int, message_id: int) -> None:
        """Let a person delete a message. Bots are not told."""
        with self.condition:
            chat = self._chat(chat_id)
            self.world.delete(chat, chat.messages[message_id])

    def person_presses(self, chat_id: int, message_id: int, data: str, *, user: Who = None) -> str:
        """Let a person press a button, and return the query's id; `callback_answers` has what the bot said."""
        with self.condition:
            chat = self._chat(chat_id)
            query_id = str(next(_queries))
            self.callback_answers[query_id] = None
            query = {
                "id": query_id,
                "from": self._member(chat, user).as_user(),
                "message": chat.messages[message_id].wire,
                "chat_instance": str(chat.id),
                "data": data,
            }
            self._push({"callback_query": query})
            return query_id

    def person_presses_alone(self, chat_id: int, wire: dict[str, Any], data: str, *, user: Who = None) -> str:
        """Let the only person who sees a message press a button under it, and return the query's id."""
        with self.condition:
            query_id = str(next(_queries))
            self.callback_answers[query_id] = None
            presser = self._member(self._chat(chat_id), user).as_user()
            query = {"id": query_id, "from": presser, "message": wire, "chat_instance": str(chat_id), "data": data}
            self._push({"callback_query": query})
            return query_id

    def person_reacts(
        self,
        chat_id: int,
        message_id: int,
        *emojis: str,
        before: Sequence[str] = (),
        user: Who = None,
        as_chat: bool = False,
    ) -> int | None:
        """Let a person react to a message, or take that back; in groups only an administrator is told of it."""
        with self.condition:
            chat = self._chat(chat_id)
            if not chat.is_private and chat.bot_status != "administrator":
                return None
            whose = {"actor_chat": chat.as_wire()} if as_chat else {"user": self._member(chat, user).as_user()}
            old, new = ([{"type": "emoji", "emoji": each} for each in some] for some in (before, emojis))
            place = {"chat": chat.as_wire(), "message_id": message_id, "date": int(time.time())}
            return self._push({"message_reaction": {**place, **whose, "old_reaction": old, "new_reaction": new}})

    def person_stops_generation(self, chat_id: int) -> int | None:
        """Let a person press the stop button of a draft (Bot API 10.3)."""
        with self.condition:
            chat = self._chat(chat_id)
            draft = chat.draft
            stopped: dict[str, Any] = {"chat": chat.as_wire(), "draft_id": draft.draft_id if draft else 0}
            if draft is not None and draft.thread_id is not None:
                stopped["message_thread_id"] = draft.thread_id
            return self._push({"stopped_message_generation": stopped})

    def person_blocks(self, chat_id: int) -> int | None:
        """Let a person block the bot, or the group throw it out."""
        with self.condition:
            chat = self._chat(chat_id)
            chat.blocked = chat.is_private
            chat.bot_status = "kicked"
            return self._bot_became(chat, "member", "kicked")

    def person_unblocks(self, chat_id: int) -> int | None:
        """Let a person unblock the bot, or the group take it in again."""
        with self.condition:
            chat = self._chat(chat_id)
            chat.blocked = False
            chat.bot_status = "member"
            return self._bot_became(chat, "kicked", "member")

    def migrate(self, chat_id: int, new_chat_id: int) -> None:
        """Turn a group into a supergroup: another id, a service message in both, and no way back."""
        with self.condition:
            old = self._chat(chat_id)
            new = self.world.add_chat(Chat(new_chat_id, "supergroup", old.title, members=dict(old.members)))
            new.administrators = dict(old.administrators)
            someone = next(iter(old.members.values()), Person(1001)).as_user()
            leaving = self.world.show(old, someone, {"migrate_to_chat_id": new_chat_id})
            coming = self.world.show(new, someone, {"migrate_from_chat_id": chat_id})
            old.migrated_to = new_chat_id
            self._push({"message": leaving.wire})
            self._push({"message": coming.wire})

    def push_update(self, update: dict[str, Any]) -> int | None:
        """Queue any update as it is, and return its id; without an `update_id` it gets the next."""
        with self.condition:
            return self._push(update)

    def seen(self, chat_id: int, message_id: int) -> Visible:
        with self.condition:
            chat = self._chat(chat_id)
            return seen(chat, chat.messages[message_id])

    def serve_files_from(self, folder: Path) -> None:
        """Be a Bot API server in local mode: getFile gives places on the disk, and nothing is served over HTTP.

        Source: core.telegram.org/bots/api#using-a-local-bot-api-server. The folder is called by the bot's token.
        """
        self.world.files.folder = folder
        self.world.files.by_path.clear()

    def add_file_to_web(self, url: str, data: bytes) -> None:
        """Put a file where the bot can tell Telegram to fetch it."""
        self.world.files.web[url] = data

    def file(self, file_id: str) -> File:
        """Return a stored file, with its bytes."""
        return self.world.files.by_id[file_id]

    def _push(self, update: dict[str, Any]) -> int | None:
        update_id = self.updates.add(update)
        if update_id is not None:
            self.webhooks.offer(update_id)
            self.in_loop(self._wake)
        return update_id

    def _wake(self) -> None:
        self.updates.wake()
        self.webhooks.pump()

    def _bot_became(self, chat: Chat, old: str, new: str) -> int | None:
        someone = chat.person or next(iter(chat.members.values()), Person(1001))
        states = [
            {"status": status, "user": self.world.bot} | ({"until_date": 0} if status == "kicked" else {})
            for status in (old, new)
        ]
        change = {"chat": chat.as_wire(), "from": someone.as_user(), "date": int(time.time())}
        return self._push({"my_chat_member": change | {"old_chat_member": states[0], "new_chat_member": states[1]}})

    def _bot_sees(self, chat: Chat, message: Message) -> bool:
        if chat.is_private:
            return True
        if chat.bot_status not in {"member", "administrator"}:
            return False
        if not self.privacy_mode or chat.bot_status == "administrator":
            return True
        wire = message.wire
        name = f"@{self.world.bot['username']}".lower()
        words = str(wire.get("text", wire.get("caption", ""))).lower()
        is_command = words.startswith("/") and ("@" not in words.split()[0] or words.split()[0].endswith(name))
        replied = wire.get("reply_to_message", {}).get("from", {}).get("id") == self.world.bot["id"]
        is_service = not {"text", "caption"} & wire.keys() and not {"photo", "voice", "document"} & wire.keys()
        return is_command or name in words or replied or is_service

    def _person(self, who: Who) -> Person:
        if isinstance(who, Person):
            self.world.people[who.id] = who
            return who
        number = 1001 if who is None else who
        if number not in self.world.people:
            self.world.people[number] = Person(number, first_name=f"Person {number}", username=f"person_{number}")
        return self.world.people[number]

    def _chat(self, chat_id: int) -> Chat:
        if chat_id not in self.world.chats:
            if chat_id > 0:
                self.add_private_chat(chat_id)
            else:
                self.add_group(chat_id, type="supergroup" if str(chat_id).startswith("-100") else "group")
        return self.world.chats[chat_id]

    def _member(self, chat: Chat, who: Who) -> Person:
        if chat.person is not None:
            if isinstance(who, Person) and who.id == chat.person.id:
                chat.person = self._person(who)
            return chat.person
        person = self._person(who)
        chat.members[person.id] = person
        return person


def _captioned(caption: str) -> dict[str, Any]:
    found = detect(caption)
    return ({"caption": caption} if caption else {}) | ({"caption_entities": found} if found else {})
