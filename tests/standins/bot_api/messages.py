"""Methods that write, change and remove messages."""

import time
from typing import Any

from standins.bot_api.calls import Call, bad_request, word_set
from standins.bot_api.chats import Chat, Draft, Message
from standins.bot_api.entities import MAX_CAPTION_UNITS, formatted
from standins.bot_api.methods import Bench, method
from standins.bot_api.replies import keyboard, replied_to

ACTIONS = word_set(
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document choose_sticker "
    "find_location record_video_note upload_video_note"
)
REACTIONS = word_set(
    "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 "
    "🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 "
    "😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 "
    "🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡 "
)
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)


def _text(bench: Bench, call: Call) -> dict[str, Any]:
    text, entities = formatted(call, set(bench.world.people), strict=bench.strict)
    return {"text": text} | ({"entities": _with_people(bench, entities)} if entities else {})


def _with_people(bench: Bench, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    people = bench.world.people
    return [e | {"user": people[e["user"]["id"]].as_user()} if e["type"] == "text_mention" else e for e in entities]


def caption(bench: Bench, call: Call) -> dict[str, Any]:
    """Return the part of a message that its caption becomes."""
    text, entities = formatted(
        call, set(bench.world.people), field="caption", limit=MAX_CAPTION_UNITS, strict=bench.strict, may_be_empty=True
    )
    return ({"caption": text} if text else {}) | (
        {"caption_entities": _with_people(bench, entities)} if entities else {}
    )


def place(bench: Bench, call: Call, content: dict[str, Any]) -> Message:
    """Show a message of the bot where a call wants it."""
    chat = bench.world.reachable(call)
    thread_id = bench.world.thread(chat, call)
    reply_to = replied_to(bench.world, chat, call)
    content = content | keyboard(call) | bench.world.direct_topic(chat, call)
    return bench.world.show(chat, bench.world.bot, content, thread_id=thread_id, reply_to=reply_to, call_seq=call.seq)


@method("sendMessage")
def send_message(bench: Bench, call: Call) -> dict[str, Any]:
    content = _text(bench, call)
    wire = place(bench, call, content).wire
    bench.world.preview(call, content)
    return wire


@method("sendMessageDraft")
def send_message_draft(bench: Bench, call: Call) -> bool:
    text, entities = formatted(call, set(bench.world.people), strict=bench.strict, may_be_empty=True)
    chat = bench.world.reachable(call)
    if not chat.is_private:
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    if not call.integer("draft_id"):
        raise bad_request("draft_id must be non-zero")
    thread_id = bench.world.thread(chat, call)
    draft = Draft(call.integer("draft_id"), text, tuple(entities), thread_id, time.monotonic())
    bench.world.draft(chat, draft, call_seq=call.seq)
    return True


@method("sendChatAction")
def send_chat_action(bench: Bench, call: Call) -> bool:
    chat = bench.world.reachable(call)
    bench.world.thread(chat, call)
    if chat.is_direct_messages:
        raise bad_request("chat actions can't be sent to channel direct messages chats")
    if call.text("action").lower() not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    return True


def _own(bench: Bench, call: Call, what: str) -> tuple[Chat, Message]:
    if call.text("inline_message_id"):
        raise bad_request("MESSAGE_ID_INVALID")
    chat = bench.world.reachable(call)
    if not call.integer("message_id"):
        raise bad_request("message identifier is not specified")
    message = bench.world.existing(chat, call.integer("message_id"))
    if message is None:
        raise bad_request(f"message to {what} not found")
    if not message.from_bot:
        raise bad_request("message can't be edited")
    return chat, message


def _change(bench: Bench, call: Call, chat: Chat, message: Message, changes: dict[str, Any]) -> dict[str, Any]:
    """Edit a message: `changes` replace text, caption and keyboard, which are gone where not given."""
    replaced = {"text", "entities", "caption", "caption_entities", "reply_markup", "edit_date"}
    kept = {name: value for name, value in message.wire.items() if name not in replaced}
    wire = kept | changes
    if wire == {name: value for name, value in message.wire.items() if name != "edit_date"}:
        raise bad_request(NOT_MODIFIED)
    bench.world.edit(chat, message, wire, call_seq=call.seq)
    return message.wire


@method("editMessageText")
def edit_message_text(bench: Bench, call: Call) -> dict[str, Any]:
    content = _text(bench, call)
    chat, message = _own(bench, call, "edit")
    if "text" not in message.wire:
        raise bad_request("there is no text in the message to edit")
    bench.world.preview(call, content)
    return _change(bench, call, chat, message, content | keyboard(call))


@method("editMessageCaption")
def edit_message_caption(bench: Bench, call: Call) -> dict[str, Any]:
    content = caption(bench, call)
    chat, message = _own(bench, call, "edit")
    if "text" in message.wire:
        raise bad_request("there is no caption in the message to edit")
    return _change(bench, call, chat, message, content | keyboard(call))


@method("editMessageReplyMarkup")
def edit_message_reply_markup(bench: Bench, call: Call) -> dict[str, Any]:
    chat, message = _own(bench, call, "edit")
    kept = {
        name: message.wire[name] for name in ("text", "entities", "caption", "caption_entities") if name in message.wire
    }
    return _change(bench, call, chat, message, kept | keyboard(call))


@method("deleteMessage")
def delete_message(bench: Bench, call: Call) -> bool:
    chat = bench.world.reachable(call)
    if not call.integer("message_id"):
        raise bad_request("message identifier is not specified")
    message = bench.world.existing(chat, call.integer("message_id"))
    if message is None:
        raise bad_request("message to delete not found")
    if not message.from_bot and not chat.is_private and chat.bot_status != "administrator":
        raise bad_request("message can't be deleted")
    bench.world.delete(chat, message, call_seq=call.seq)
    return True


@method("deleteMessages")
def delete_messages(bench: Bench, call: Call) -> bool:
    chat = bench.world.reachable(call)
    given = call.object("message_ids", list, "message identifiers") or []
    if not 1 <= len(given) <= 100:
        raise bad_request("there must be from 1 to 100 message identifiers")
    for message_id in given:
        message = bench.world.existing(chat, message_id)
        if message is not None and (message.from_bot or chat.is_private):
            bench.world.delete(chat, message, call_seq=call.seq)
    return True


@method("setMessageReaction")
def set_message_reaction(bench: Bench, call: Call) -> bool:
    chat = bench.world.reachable(call)
    message = bench.world.existing(chat, call.integer("message_id"))
    if message is None:
        raise bad_request("message to react not found")
    reactions = call.object("reaction", list, "reaction types") or []
    if len(reactions) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    for reaction in reactions:
        is_known = isinstance(reaction, dict) and reaction.get("type") == "emoji"
        if not is_known or str(reaction.get("emoji", "")).rstrip("\ufe0f") not in REACTIONS:
            raise bad_request("REACTION_INVALID")
    message.reactions = list(reactions)
    chat.version += 1
    return True
