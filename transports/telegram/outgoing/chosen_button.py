"""What is seen of a choice under the message that offered it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from telegram.error import BadRequest, TelegramError

from transports.telegram.client import BotClient
from transports.telegram.failures import is_not_editable, is_not_modified
from transports.telegram.inbound_events import UNSEEN
from transports.telegram.outgoing.forms import Forms

logger = logging.getLogger(__name__)

_DISABLED: Final = "disabled-buttons"


@dataclass(frozen=True, slots=True)
class Shown:
    """A message with buttons, and who has pressed one."""

    context_keys: Mapping[str, str]
    message_id: str
    presser_id: str | None

    def edit(self, keyboard: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the method and the parameters that change its keyboard."""
        parameters = {"chat_id": self.context_keys["chat_id"], "reply_markup": keyboard}
        if not self.message_id.startswith(UNSEEN):
            return "editMessageReplyMarkup", {**parameters, "message_id": self.message_id}
        whose = {"receiver_user_id": self.presser_id, "ephemeral_message_id": self.message_id.removeprefix(UNSEEN)}
        return "editEphemeralMessageReplyMarkup", {**parameters, **whose}


class Choices:
    """Shows choices: every button disabled, or the one that was pressed where a chat does not take that."""

    def __init__(self, client: BotClient, forms: Forms) -> None:
        self._client = client
        self._forms = forms

    async def show(self, shown: Shown, keyboards: Sequence[Mapping[str, Any]]) -> None:
        """Show the first of some keyboards that the chat takes; nothing depends on it."""
        first, *others = keyboards
        try:
            if not others or await self._forms.takes(shown.context_keys, _DISABLED):
                await self._edit(shown, first)
                return
        except BadRequest as error:
            if is_not_modified(error) or is_not_editable(error):
                return
            await self._forms.note(shown.context_keys, _DISABLED, error.message)
        except TelegramError as error:
            logger.debug("telegram.press_not_shown", extra={"reason": error.message})
            return
        try:
            await self._edit(shown, others[0])
        except TelegramError as error:
            logger.debug("telegram.press_not_shown", extra={"reason": error.message})

    async def _edit(self, shown: Shown, keyboard: Mapping[str, Any]) -> None:
        method, parameters = shown.edit(keyboard)
        await self._client.call(method, **parameters)
