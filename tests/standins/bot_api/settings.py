"""Methods about the bot itself, its webhook and commands, and about chats."""

import json
import re
from typing import Any

from standins.bot_api.calls import Call, bad_request, word_set
from standins.bot_api.chats import Chat, Person
from standins.bot_api.methods import Bench, Described, method

SCOPES = word_set(
    "default all_private_chats all_group_chats all_chat_administrators chat chat_administrators chat_member"
)


@method("getMe")
def get_me(bench: Bench, call: Call) -> dict[str, Any]:
    abilities = {
        "can_join_groups": True,
        "can_read_all_group_messages": not bench.privacy_mode,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": False,
        "supports_guest_queries": True,
    }
    return bench.world.bot | abilities | bench.abilities


@method("setWebhook", "deleteWebhook")
def set_webhook(bench: Bench, call: Call) -> Described:
    if call.method.lower() == "deletewebhook":
        call = Call(call.method, {k: v for k, v in call.params.items() if k == "drop_pending_updates"}, {}, call.seq)
    description = bench.webhooks.configure(call)
    bench.updates.allow(call.object("allowed_updates", list, "allowed updates"))
    if call.flag("drop_pending_updates"):
        bench.updates.throw_away(call.seq)
    if bench.webhooks.url:
        bench.updates.interrupt("setWebhook request")
    bench.webhooks.rebuild()
    return Described(True, description)


@method("getWebhookInfo")
def get_webhook_info(bench: Bench, call: Call) -> dict[str, Any]:
    return bench.webhooks.info()


@method("logOut", "close")
def log_out(bench: Bench, call: Call) -> bool:
    return True


def _commands_key(call: Call) -> tuple[str, str]:
    scope = call.object("scope", dict, "bot command scope") or {"type": "default"}
    if scope.get("type") not in SCOPES:
        raise bad_request("can't parse BotCommandScope: Unsupported type specified")
    language = call.text("language_code")
    if language and not re.fullmatch(r"[a-z]{2}", language):
        raise bad_request("BOT_COMMAND_LANGUAGE_INVALID")
    return json.dumps(scope, sort_keys=True), language


@method("setMyCommands")
def set_my_commands(bench: Bench, call: Call) -> bool:
    commands = call.object("commands", list, "commands")
    key = _commands_key(call)
    if commands is None or not all(isinstance(command, dict) for command in commands):
        raise bad_request("can't parse commands JSON object")
    if len(commands) > 100:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        if not re.fullmatch(r"/?[a-z0-9_]{1,32}", str(command.get("command", ""))):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(str(command.get("description", "")).strip()) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    bench.commands[key] = [
        {"command": command["command"].removeprefix("/"), "description": command["description"]} for command in commands
    ]
    return True


@method("getMyCommands")
def get_my_commands(bench: Bench, call: Call) -> list[dict[str, str]]:
    return bench.commands.get(_commands_key(call), [])


@method("deleteMyCommands")
def delete_my_commands(bench: Bench, call: Call) -> bool:
    bench.commands.pop(_commands_key(call), None)
    return True


@method("setMyName", "setMyDescription", "setMyShortDescription")
def set_my_words(bench: Bench, call: Call) -> bool:
    field = {"setmyname": "name", "setmydescription": "description"}.get(call.method.lower(), "short_description")
    bench.names[field] = call.text(field)
    return True


@method("answerCallbackQuery")
def answer_callback_query(bench: Bench, call: Call) -> bool:
    query_id = call.text("callback_query_id")
    if query_id not in bench.callback_answers or bench.callback_answers[query_id] is not None:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    if len(call.text("text")) > 200:
        raise bad_request("MESSAGE_TOO_LONG")
    bench.callback_answers[query_id] = dict(call.params)
    return True


@method("getChat")
def get_chat(bench: Bench, call: Call) -> dict[str, Any]:
    chat = bench.world.named(call.chat_id)
    gifts = dict.fromkeys(
        ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"), True
    )
    return chat.as_wire() | {"accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": gifts}


@method("getChatMember")
def get_chat_member(bench: Bench, call: Call) -> dict[str, Any]:
    chat = bench.world.readable(call)
    user_id = call.integer("user_id")
    if user_id == bench.world.bot["id"]:
        return {"status": chat.bot_status, "user": bench.world.bot}
    person = chat.members.get(user_id) or (chat.person if chat.person and chat.person.id == user_id else None)
    if person is None:
        raise bad_request("user not found" if user_id not in bench.world.people else "PARTICIPANT_ID_INVALID")
    # Of others, it is only promised to an administrator. Source: core.telegram.org/bots/api#getchatmember
    if not chat.is_private and chat.bot_status != "administrator":
        raise bad_request("CHAT_ADMIN_REQUIRED")
    return _member(chat, person)


@method("getChatAdministrators")
def get_chat_administrators(bench: Bench, call: Call) -> list[dict[str, Any]]:
    """Return the administrators that the bot sees: only one of them sees those who are anonymous."""
    chat = bench.world.readable(call)
    if chat.is_private:
        raise bad_request("there are no administrators in the private chat")
    sees_all = chat.bot_status == "administrator"
    shown = [each for each, (_, is_anonymous) in chat.administrators.items() if sees_all or not is_anonymous]
    return [_member(chat, bench.world.people[each]) for each in shown]


def _member(chat: Chat, person: Person) -> dict[str, Any]:
    """Return what a person is in a chat. Source: core.telegram.org/bots/api#chatmember."""
    status, is_anonymous = chat.administrators.get(person.id, ("member", False))
    found = {"status": status, "user": person.as_user()}
    if status == "member":
        return found
    rights = ("can_manage_chat", "can_delete_messages", "can_invite_users") if status == "administrator" else ()
    return found | {"is_anonymous": is_anonymous} | dict.fromkeys(rights, True)


@method("getChatMemberCount")
def get_chat_member_count(bench: Bench, call: Call) -> int:
    chat = bench.world.named(call.chat_id)
    return 2 if chat.is_private else len(chat.members) + 1


@method("leaveChat")
def leave_chat(bench: Bench, call: Call) -> bool:
    chat = bench.world.reachable(call)
    if chat.is_private:
        raise bad_request("chat member status can't be changed in private chats")
    chat.bot_status = "left"
    return True
