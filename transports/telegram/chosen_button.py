"""What is seen of a choice under the message that offered it."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from telegram.error import BadRequest, TelegramError

from transports.telegram.client import BotClient
from transports.telegram.failures import is_not_editable, is_not_modified
from transports.telegram.forms import Forms
from transports.telegram.inbound_events import UNSEEN

logger = logging.getLogger(__name__)

_DISABLED: Final = "disabled-buttons"


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


class TelegramChoices:
    """Shows choices: every button disabled, or the one that was pressed where a chat does not take that."""

    def __init__(self, client: BotClient, forms: Forms) -> None:
        self._client = client
        self._forms = forms

    async def show(self, choice: TelegramChoice) -> None:
        """Show a choice as its chat takes it; nothing depends on it."""
        try:
            if await self._forms.takes(choice.context_keys, _DISABLED):
                try:
                    await self._edit(choice, choice.disabled)
                except BadRequest as error:
                    if is_not_modified(error) or is_not_editable(error):
                        return
                    await self._forms.note(choice.context_keys, _DISABLED, error.message)
                else:
                    return
            await self._edit(choice, choice.chosen)
        except TelegramError as error:
            logger.debug("telegram.press_not_shown", extra={"reason": error.message})

    async def _edit(self, choice: TelegramChoice, keyboard: Mapping[str, Any]) -> None:
        method, parameters = choice.edit(keyboard)
        await self._client.call(method, **parameters)
