"""What a message may have besides its words, and may go without: it is left out where a chat has refused it.

Newer than the client library: to be seen by one person alone (Bot API 10.3), coloured buttons (9.4), times as each
reader's own (9.5).
"""

from collections.abc import Mapping
from typing import Any, Final

from telegram.error import BadRequest, TelegramError

from transports.forms import Forms
from transports.telegram.failures import is_about_buttons, is_about_entities, is_gone
from transports.telegram.keyboards import has_styles, without_styles
from transports.telegram.outgoing import receiving
from transports.telegram.outgoing.moments import KIND as DATE_TIME

_COLOURS: Final = "colours"
_MOMENTS: Final = "moments"
_ENTITIES: Final = ("entities", "caption_entities")
_PERSONAL: Final = "ephemeral_message_parameters"


class Adornments:
    """Puts on a call what its chat takes, and takes off what was refused; a refusal is remembered."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms

    async def put_on(
        self, context_keys: Mapping[str, str], call: dict[str, Any], payload: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a call as its chat takes it."""
        if _has_moments(call) and not await self._forms.takes(context_keys, _MOMENTS):
            call = _without_moments(call)
        if has_styles(call.get("reply_markup")) and not await self._forms.takes(context_keys, _COLOURS):
            call = _without_colours(call)
        receiver = payload.get("receiver")
        if receiver is None or not call["chat_id"].startswith("-") or "message_id" in call:
            return call
        if await self._forms.takes(context_keys, receiving.form_of(receiver)):
            open_reply = {name: value for name, value in call.items() if name == "reply_parameters"}
            return call | receiving.as_parameters(receiver) | {"seen_by_all": open_reply}
        return call

    async def without_refused(
        self, context_keys: Mapping[str, str], call: dict[str, Any], error: TelegramError
    ) -> dict[str, Any] | None:
        """Return a call without what Telegram seems to refuse of it; None where that is something else."""
        if not isinstance(error, BadRequest):
            return None
        if _PERSONAL in call and not is_gone(error):
            await self._forms.refuse(context_keys, _form_of(call), error.message)
            return _seen_by_all(call)
        if _has_moments(call) and is_about_entities(error):
            await self._forms.refuse(context_keys, _MOMENTS, error.message)
            return _without_moments(call)
        if has_styles(call.get("reply_markup")) and is_about_buttons(error):
            await self._forms.refuse(context_keys, _COLOURS, error.message)
            return _without_colours(call)
        return None


def _form_of(call: Mapping[str, Any]) -> str:
    is_reply = "callback_query_id" in call[_PERSONAL] or "ephemeral_message_id" in call.get("reply_parameters", {})
    return receiving.AS_REPLY if is_reply else receiving.AS_ADMINISTRATOR


def _seen_by_all(call: Mapping[str, Any]) -> dict[str, Any]:
    open_call = {name: value for name, value in call.items() if name not in (_PERSONAL, "reply_parameters")}
    return {**open_call, **open_call.pop("seen_by_all", {})}


def _has_moments(call: Mapping[str, Any]) -> bool:
    return any(entity["type"] == DATE_TIME for name in _ENTITIES for entity in call.get(name) or ())


def _without_moments(call: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        name: [each for each in call[name] if each["type"] != DATE_TIME] or None for name in _ENTITIES if name in call
    }
    return {**call, **kept}


def _without_colours(call: Mapping[str, Any]) -> dict[str, Any]:
    return {**call, "reply_markup": without_styles(call["reply_markup"])}
