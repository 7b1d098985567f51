"""What a message may have besides its words, and may go without: it is left out where a chat has refused it.

Newer than the client library: to be seen by one person alone (Bot API 10.3), coloured buttons (9.4), times as each
reader's own (9.5).
"""

from collections.abc import Mapping
from typing import Any, Final

from telegram.error import BadRequest, Forbidden, TelegramError

from transports.telegram.failures import (
    is_about_buttons,
    is_about_entities,
    is_gone,
    is_no_chat,
    is_too_late,
    is_unreadable,
)
from transports.telegram.keyboards import has_styles, without_styles
from transports.telegram.outgoing import receiving
from transports.telegram.outgoing.entities import DATE_TIME
from transports.telegram.outgoing.forms import Forms

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
        if (
            "reply_markup" in call
            and has_styles(call["reply_markup"])
            and not await self._forms.takes(context_keys, _COLOURS)
        ):
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
        if not isinstance(error, BadRequest | Forbidden) or is_no_chat(error):
            return None
        if _PERSONAL in call:
            if not is_too_late(error) and not is_unreadable(error):
                await self._forms.note(context_keys, _form_of(call), error.message)
            return _seen_by_all(call)
        if is_about_entities(error) and _has_moments(call):
            return await self._without_moments(context_keys, call, error)
        if is_about_buttons(error):
            return await self._without_colours(context_keys, call, error)
        return None

    async def without_suspected(
        self, context_keys: Mapping[str, str], call: dict[str, Any], error: TelegramError
    ) -> dict[str, Any] | None:
        """Return a call without what is new in it, whatever words it was refused in; None where nothing is."""
        if not isinstance(error, BadRequest) or is_gone(error) or is_unreadable(error):
            return None
        without = await self._without_moments(context_keys, call, error)
        return without or await self._without_colours(context_keys, call, error)

    async def _without_moments(
        self, context_keys: Mapping[str, str], call: dict[str, Any], error: TelegramError
    ) -> dict[str, Any] | None:
        if not _has_moments(call):
            return None
        await self._forms.note(context_keys, _MOMENTS, error.message)
        return _without_moments(call)

    async def _without_colours(
        self, context_keys: Mapping[str, str], call: dict[str, Any], error: TelegramError
    ) -> dict[str, Any] | None:
        if not has_styles(call.get("reply_markup")):
            return None
        await self._forms.note(context_keys, _COLOURS, error.message)
        return _without_colours(call)


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
