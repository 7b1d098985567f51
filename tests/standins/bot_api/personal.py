"""Messages of a group that one member alone sees (Bot API 10.2 and 10.3).

Source: core.telegram.org/bots/api#ephemeral-messages-and-commands: an administrator may send them at any time, any bot
within 15 seconds of a press, or of a message that no other person saw.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from standins.bot_api.calls import Call, bad_request
from standins.bot_api.chats import Chat
from standins.bot_api.messages import _text
from standins.bot_api.methods import Bench, Method, method
from standins.bot_api.replies import keyboard
from standins.bot_api.rich import rich_message
from standins.serving import Entry

SECONDS = 15.0
_numbers = itertools.count(29_341_834)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalShown(Entry):
    """A message that its receiver alone sees became visible, or changed."""

    chat_id: int
    receiver_id: int
    ephemeral_message_id: int
    wire: dict[str, Any]

    @property
    def text(self) -> str:
        return str(self.wire.get("text", ""))


def _check_right(bench: Bench, chat: Chat, call: Call, given: dict[str, Any]) -> int:
    receiver = given.get("receiver_user_id")
    if chat.is_private:
        raise bad_request("ephemeral messages can be sent only to groups and supergroups")
    if receiver not in chat.members:
        raise bad_request("USER_NOT_PARTICIPANT")
    query = given.get("callback_query_id")
    replied = (call.object("reply_parameters", dict, "reply parameters") or {}).get("ephemeral_message_id")
    if query is not None and query not in bench.callback_answers:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    if query is None and replied is None and chat.bot_status != "administrator":
        raise bad_request("CHAT_ADMIN_REQUIRED")
    return int(str(receiver))


def _aside(original: Method, content: Callable[[Bench, Call], dict[str, Any]]) -> Method:
    def send(bench: Bench, call: Call) -> Any:
        given = call.object("ephemeral_message_parameters", dict, "ephemeral message parameters")
        if given is None:
            return original(bench, call)
        chat = bench.world.reachable(call)
        bench.world.thread(chat, call)
        receiver = _check_right(bench, chat, call, given)
        number = next(_numbers)
        wire = {
            "message_id": 0,
            "ephemeral_message_id": number,
            "from": bench.world.bot,
            "chat": chat.as_wire(),
            "receiver_user": bench.world.people[receiver].as_user(),
            "date": int(time.time()),
            **content(bench, call),
            **keyboard(call),
        }
        bench.world.journal.record(
            PersonalShown, chat_id=chat.id, receiver_id=receiver, ephemeral_message_id=number, wire=wire
        )
        return wire

    return send


for _name, _content in (("sendMessage", _text), ("sendRichMessage", lambda _, call: rich_message(call))):
    method(_name)(_aside(method.methods[_name.lower()], _content))


@method("editEphemeralMessageReplyMarkup")
def edit_markup(bench: Bench, call: Call) -> bool:
    chat = bench.world.reachable(call)
    number, receiver = call.integer("ephemeral_message_id"), call.integer("receiver_user_id")
    shown = [
        each
        for each in bench.world.journal.entries(PersonalShown)
        if (each.chat_id, each.ephemeral_message_id, each.receiver_id) == (chat.id, number, receiver)
    ]
    if not shown:
        raise bad_request("message to edit not found")
    kept = {name: value for name, value in shown[-1].wire.items() if name != "reply_markup"}
    wire = kept | keyboard(call)
    bench.world.journal.record(
        PersonalShown, chat_id=chat.id, receiver_id=receiver, ephemeral_message_id=number, wire=wire
    )
    return True
