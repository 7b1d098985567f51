"""Pressed buttons: the person who was asked says, once, what stands behind one, and the message shows the choice."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from telegram.error import BadRequest, TelegramError

from botservice.core.messages import Author, CommandCall, InboundMessage
from botservice.core.states import EventKind
from botservice.storage.database import Storage
from botservice.texts import in_language
from botservice.turns.call_decisions import order_of
from botservice.turns.commands import parse_command
from botservice.turns.turn import InboundEvent
from transports.common.connected_transport import PAUSES_SECONDS, read_when_known
from transports.common.json_fields import field, integer, string
from transports.telegram.context import TelegramContext
from transports.telegram.failures import is_not_editable, is_not_modified
from transports.telegram.inbound_events import UNSEEN, BotIdentity, language_of, shown_id
from transports.telegram.keyboards import in_topic, make_chosen, make_disabled, parse_data
from transports.telegram.queries import find_keyboard

logger = logging.getLogger(__name__)

_DISABLED: Final = "disabled-buttons"
_PAUSES_SECONDS: Final = (*PAUSES_SECONDS, 1.0, 1.0)
_MOST_TOLD: Final = 200  # characters; Bot API, answerCallbackQuery
_PRESSED: Final = "pressed"  # the field of a stored update that says what a button stands for


@dataclass(frozen=True, slots=True)
class TelegramChoice:
    """A message with buttons of which a person has pressed one.

    Attributes:
        disabled: Its keyboard with every button disabled.
        chosen: The keyboard that is left of it, where buttons cannot be disabled.
    """

    context_keys: Mapping[str, str]
    message_id: str
    presser_id: str
    disabled: Mapping[str, Any]
    chosen: Mapping[str, Any]

    def edit(self, keyboard: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the method and the parameters that change its keyboard."""
        parameters = {"chat_id": self.context_keys["chat_id"], "reply_markup": keyboard}
        if not self.message_id.startswith(UNSEEN):
            return "editMessageReplyMarkup", {**parameters, "message_id": self.message_id}
        whose = {"receiver_user_id": self.presser_id, "ephemeral_message_id": self.message_id.removeprefix(UNSEEN)}
        return "editEphemeralMessageReplyMarkup", {**parameters, **whose}


async def _show(choice: TelegramChoice, telegram: TelegramContext) -> None:
    """Show a choice: every button disabled, or the one that was pressed where a chat does not take that.

    Nothing depends on it.
    """
    try:
        if await telegram.forms.takes(choice.context_keys, _DISABLED):
            try:
                method, parameters = choice.edit(choice.disabled)
                await telegram.client.call(method, **parameters)
            except BadRequest as error:
                if is_not_modified(error) or is_not_editable(error):
                    return
                await telegram.forms.note(choice.context_keys, _DISABLED, error.message)
            else:
                return
        method, parameters = choice.edit(choice.chosen)
        await telegram.client.call(method, **parameters)
    except TelegramError as error:
        logger.debug("telegram.press_not_shown", extra={"reason": error.message})


@dataclass(frozen=True, slots=True)
class TelegramPress:
    """A pressed button.

    Attributes:
        query_id: What has to be answered, or the button keeps showing that it waits.
        event: What is to be stored, or None if the press counts for nothing.
        told: What the presser is told at once.
        presser: Who pressed it, and in which language they are spoken to.
        is_on_copy: Whether it stood under a message of which nobody knows: what it says will not change.
    """

    query_id: str
    event: InboundEvent | None = None
    told: str = ""
    choice: TelegramChoice | None = None
    says: str = ""
    presser: Author | None = None
    language: str | None = None
    is_on_copy: bool = False


async def read_press(update: Mapping[str, Any], bot: BotIdentity, storage: Storage) -> TelegramPress | None:
    """Return what an update's press means by what is stored of the keyboard, or None if it cannot even be answered."""
    query = update["callback_query"]
    query_id, update_id = field(query, "id"), integer(update, "update_id")
    if not isinstance(query_id, str) or update_id is None:
        return None
    message, presser = field(query, "message"), field(query, "from")
    chat_id, message_id = integer(message, "chat", "id"), shown_id(message)
    place, presser_id = parse_data(field(query, "data")), integer(presser, "id")
    gone = TelegramPress(query_id, told=in_language("buttons.gone", language_of(query)))
    if chat_id is None or message_id is None or place is None or presser_id is None:
        return gone
    keys = {"transport": "telegram", "chat_id": str(chat_id)} | place[1]
    find = partial(find_keyboard, keys=keys, message_id=message_id, said=string(message, "text"))
    found = await read_when_known(storage, find, lambda each: not each.is_coming, _PAUSES_SECONDS)
    if place[0] >= len(found.buttons):
        return (
            TelegramPress(query_id, told=in_language("approval.over", language_of(query)))
            if found.was_question
            else gone
        )
    button = found.buttons[place[0]]
    is_order = order_of(button.says) is not None  # who may give one is judged where it is carried out
    if chat_id < 0 and found.askers and presser_id not in found.askers and not is_order:
        return TelegramPress(query_id, told=in_language("buttons.not_asked", language_of(query)))
    event = InboundEvent(
        key=f"telegram:{bot.id}:pressed:{chat_id}:{message_id}",
        context_keys=keys,
        order_key=update_id,
        raw=json.dumps({**update, _PRESSED: button.says}).encode(),
        kind=EventKind.STOP if parse_command(button.says) == CommandCall("stop") else EventKind.MESSAGE,
    )
    chosen = in_topic(make_chosen(found.buttons, place[0]), keys)
    return TelegramPress(
        query_id,
        event,
        choice=TelegramChoice(keys, message_id, str(presser_id), make_disabled(found.buttons, place[0]), chosen),
        says=button.says,
        presser=Author("telegram", str(presser_id), _name(presser)),
        language=language_of(query),
        is_on_copy=found.is_copy,
    )


def pressed_message(update: Mapping[str, Any], received_at: datetime) -> InboundMessage | None:
    """Return what a stored press says, or None if that is not known."""
    said, query = update.get(_PRESSED), update.get("callback_query")
    if not isinstance(said, str) or not isinstance(query, Mapping):
        return None
    presser = field(query, "from")
    chat_id = integer(query, "message", "chat", "id") or 0
    return InboundMessage(
        said,
        Author("telegram", str(integer(presser, "id")), _name(presser)),
        created_at=received_at,
        command=parse_command(said),
        language=language_of(query),
        is_private=chat_id > 0,
        own_text="",  # the text of a button is not the presser's own
    )


async def acknowledge(telegram: TelegramContext, press: TelegramPress, *, is_new: bool) -> None:
    """Have the pressed button stop waiting, and what was chosen be seen. Nothing depends on it."""
    try:
        told = press.told[:_MOST_TOLD] or None
        await telegram.client.call("answerCallbackQuery", callback_query_id=press.query_id, text=told)
    except TelegramError as error:
        logger.debug("telegram.press_not_shown", extra={"method": "answerCallbackQuery", "reason": error.message})
    if is_new and press.choice is not None:
        await _show(press.choice, telegram)


def _name(person: object) -> str | None:
    names = [field(person, "first_name"), field(person, "last_name")]
    return " ".join(name for name in names if isinstance(name, str) and name) or None
