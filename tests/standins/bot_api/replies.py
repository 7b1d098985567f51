"""What a sent message may carry besides its content: what it replies to, and its keyboard."""

import re
from typing import Any

from standins.bot_api.calls import ApiError, Call, bad_request
from standins.bot_api.chats import Chat, World
from standins.bot_api.markup import LinkError, check_link

BUTTON_ACTIONS = (
    "url",
    "callback_data",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
    "disabled",
)


def replied_to(world: World, chat: Chat, call: Call) -> int | None:
    """Return the message that a call replies to, or None.

    Raises:
        ApiError: it is gone, and the call does not say that it minds not.
    """
    given = call.object("reply_parameters", dict, "reply parameters") or {}
    message_id = given.get("message_id", call.params.get("reply_to_message_id"))
    if message_id in (None, "", 0):
        return None
    may_miss = bool(given.get("allow_sending_without_reply")) or call.flag("allow_sending_without_reply")
    other = given.get("chat_id")
    place = world.chats.get(other) if other not in (None, chat.id) else chat
    message = world.existing(place, int(message_id)) if place is not None else None
    if message is None or place is not chat:
        if may_miss:
            return None
        raise bad_request("message to be replied not found")
    quote = given.get("quote")
    if quote and str(quote) not in str(message.wire.get("text", message.wire.get("caption", ""))):
        raise bad_request("QUOTE_TEXT_INVALID")
    return message.message_id


def keyboard(call: Call) -> dict[str, Any]:
    """Return the part of a message that its inline keyboard becomes; other keyboards are checked and not kept."""
    markup = call.object("reply_markup", dict, "reply keyboard markup")
    if not markup:
        return {}
    if "inline_keyboard" not in markup:
        if not {"keyboard", "remove_keyboard", "force_reply"} & markup.keys():
            raise bad_request("object expected as reply markup")
        return {}
    rows = markup["inline_keyboard"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ApiError(400, 'Bad Request: Field "inline_keyboard" must be of type Array')
    buttons = [button for row in rows for button in row]
    for button in buttons:
        _check_button(button)
    if len(buttons) > 100:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    return {"reply_markup": {"inline_keyboard": rows}} if buttons else {}


def _check_button(button: Any) -> None:
    start = "Bad Request: can't parse inline keyboard button: "
    if not isinstance(button, dict):
        raise ApiError(400, f"{start}InlineKeyboardButton must be an Object")
    if "text" not in button:
        raise ApiError(400, f'{start}Can\'t find field "text"')
    if button.get("style") not in (None, "danger", "success", "primary"):
        raise ApiError(400, f"{start}invalid button style specified")
    given = {"switch_inline_query", "disabled"} & button.keys()
    if not any(button.get(action) or action in given for action in BUTTON_ACTIONS):
        raise ApiError(400, f"{start}Text buttons are unallowed in the inline keyboard")
    if not str(button["text"]).strip():
        raise bad_request("BUTTON_TEXT_INVALID")
    if len(str(button.get("callback_data", "")).encode()) > 64:
        raise bad_request("BUTTON_DATA_INVALID")
    url = button.get("url")
    if url and not re.match(r"tg://", url):
        try:
            check_link(url)
        except LinkError as error:
            raise ApiError(400, f"Bad Request: inline keyboard button URL '{url}' is invalid: {error}") from error
