"""Forms that not every chat takes: what a chat has refused is left out of its messages and not tried there again.

Newer than the client library: to be seen by one person alone (Bot API 10.3), coloured buttons (9.4), times as each
reader's own (9.5). A bot that is no administrator may write to one member alone only within 15 seconds of a press, or
of a message that no other person saw either. Source: core.telegram.org/bots/api#ephemeral-messages-and-commands.
"""

import logging
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final

from telegram.error import BadRequest, Forbidden, TelegramError

from botservice.people.names import is_direct_topic
from botservice.storage.database import Storage
from botservice.turns.turn import StoredEvent
from transports.common.json_fields import field, integer
from transports.common.refusals import Refusals
from transports.telegram.failures import (
    is_about_buttons,
    is_about_entities,
    is_gone,
    is_no_chat,
    is_reply_gone,
    is_too_late,
    is_topic_gone,
    is_unreadable,
)
from transports.telegram.formatting import DATE_TIME
from transports.telegram.inbound_events import asker_of, stored_update
from transports.telegram.keyboards import has_styles, without_styles
from transports.telegram.queries import note_refused, refused_in

logger = logging.getLogger(__name__)


RICH: Final = "rich"
THINKING: Final = "thinking"  # a block of a draft, Bot API 10.1


class Forms(Refusals[Mapping[str, str], str, str]):
    """Which forms each conversation takes: what one refuses, it refuses for good, and others' notes count at once."""

    is_for_good: ClassVar[bool] = True
    fresh_seconds: ClassVar[float] = 0.0

    def __init__(
        self,
        storage: Callable[[], Storage | None],
        *,
        rich_messages: bool = True,
        plain_chats: Container[str] = frozenset(),
    ) -> None:
        """Begin.

        Args:
            rich_messages: Whether any chat may get them.
            plain_chats: The chats that get none, although their clients do not refuse them.
        """
        super().__init__(storage)
        self._rich_messages, self._plain_chats = rich_messages, plain_chats

    async def takes(self, where: Mapping[str, str], what: str) -> bool:
        """Return whether something may be tried in a chat."""
        if what in (RICH, THINKING) and (not self._rich_messages or str(where.get("chat_id")) in self._plain_chats):
            return False
        return await super().takes(where, what)

    async def _read(self, storage: Storage, where: Mapping[str, str]) -> set[str]:
        return await storage.read(lambda connection: refused_in(connection, where))

    async def _write(self, storage: Storage, where: Mapping[str, str], what: str) -> None:
        now = storage.now()
        await storage.write(lambda connection: note_refused(connection, where, what, now))

    def _say(self, where: Mapping[str, str], what: str, why: str) -> None:  # noqa: ARG002 - ids stay out of the log
        logger.warning("transport.form_refused", extra={"form": what, "reason": why})

    def _name(self, where: Mapping[str, str]) -> Hashable:
        return tuple(sorted(where.items()))


Call = Mapping[str, Any]
IsAbout = Callable[[TelegramError], bool]
AS_ADMINISTRATOR = "personal"
AS_REPLY = "personal-reply"
_ENTITIES: Final = ("entities", "caption_entities")
_PERSONAL: Final = "ephemeral_message_parameters"


def receiver_of(events: Sequence[StoredEvent]) -> dict[str, Any] | None:
    """Return who asked, with what allows to answer them alone, or None if that was not one person."""
    found = [_asker(stored_update(event)) for event in events]
    first, *others = found or [None]
    if first is None or any(each is None or each["user_id"] != first["user_id"] for each in others):
        return None
    return found[-1]


def as_parameters(receiver: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a call that only the receiver sees."""
    whom = {"receiver_user_id": receiver["user_id"]}
    if "callback_query_id" in receiver:
        return {"ephemeral_message_parameters": {**whom, "callback_query_id": receiver["callback_query_id"]}}
    if "ephemeral_message_id" in receiver:
        reply = {"ephemeral_message_id": receiver["ephemeral_message_id"]}
        return {"ephemeral_message_parameters": whom, "reply_parameters": reply}
    return {"ephemeral_message_parameters": whom}


def _asker(update: Mapping[str, Any]) -> dict[str, Any] | None:
    query, user_id = update.get("callback_query"), asker_of(update)
    if user_id is None:
        return None
    asker: dict[str, Any] = {"user_id": user_id}
    if query is not None:
        return asker | {"callback_query_id": field(query, "id")}
    unseen = integer(update, "message", "ephemeral_message_id")
    return asker | ({} if unseen is None else {"ephemeral_message_id": unseen})


class Extras:
    """Puts on a call what its chat takes, and takes off what was refused; a refusal is remembered."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms

    async def put_on(
        self, context_keys: Mapping[str, str], call: dict[str, Any], payload: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a call as its chat takes it."""
        for form, _, is_in, leave_out in _PARTS:
            if form is not None and is_in(call) and not await self._forms.takes(context_keys, form):
                call = leave_out(call)
        receiver = payload.get("receiver")
        is_in_group = call["chat_id"].startswith("-") and not is_direct_topic(context_keys)
        if receiver is None or not is_in_group or "message_id" in call:
            return call
        # What an administrator may do is something else than an answer at once.
        form = AS_ADMINISTRATOR if receiver.keys() == {"user_id"} else AS_REPLY
        if await self._forms.takes(context_keys, form):
            open_reply = {name: value for name, value in call.items() if name == "reply_parameters"}
            return call | as_parameters(receiver) | {"seen_by_all": open_reply}
        return call

    async def without_refused(
        self, context_keys: Mapping[str, str], call: dict[str, Any], error: TelegramError
    ) -> dict[str, Any] | None:
        """Return a call without what Telegram seems to refuse of it, or None if that is something else."""
        if not isinstance(error, BadRequest | Forbidden) or is_no_chat(error):
            return None
        if _PERSONAL in call:
            if not is_too_late(error) and not is_unreadable(error):
                await self._forms.note(context_keys, _form_of(call), error.message)
            return _seen_by_all(call)
        return await self._leave_out(context_keys, call, error, is_named=True)

    async def without_suspected(
        self, context_keys: Mapping[str, str], call: dict[str, Any], error: TelegramError
    ) -> dict[str, Any] | None:
        """Return a call without what is new in it, whatever words it was refused in, or None if nothing is."""
        if not isinstance(error, BadRequest) or is_gone(error) or is_unreadable(error):
            return None
        return await self._leave_out(context_keys, call, error, is_named=False)

    async def _leave_out(
        self, context_keys: Mapping[str, str], call: dict[str, Any], error: TelegramError, *, is_named: bool
    ) -> dict[str, Any] | None:
        """Return a call without the first thing that it can do without, if need be one that an error names."""
        for form, is_about, is_in, leave_out in _PARTS:
            if is_in(call) and (is_about(error) if is_named else form is not None):
                if form is not None:
                    await self._forms.note(context_keys, form, error.message)
                return leave_out(call)
        return None


def _form_of(call: Mapping[str, Any]) -> str:
    is_reply = "callback_query_id" in call[_PERSONAL] or "ephemeral_message_id" in call.get("reply_parameters", {})
    return AS_REPLY if is_reply else AS_ADMINISTRATOR


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


def _has_colours(call: Mapping[str, Any]) -> bool:
    return has_styles(call.get("reply_markup"))


def _without_colours(call: Mapping[str, Any]) -> dict[str, Any]:
    return {**call, "reply_markup": without_styles(call["reply_markup"])}


def without(call: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a call without some of its parameters."""
    return {name: value for name, value in call.items() if name not in names}


def _part(is_about: IsAbout, *names: str) -> tuple[None, IsAbout, Callable[[Call], bool], Callable[[Call], Any]]:
    """Return parameters as a part that this message alone does without."""
    return None, is_about, lambda call: any(name in call for name in names), lambda call: without(call, *names)


# What a call can do without, in the order in which it is left out: the form that a chat does not take then, if it is
# one; whether an error is about it, whether it is there, and the call without it.
_PARTS: Final = (
    ("colours", is_about_buttons, _has_colours, _without_colours),
    ("moments", is_about_entities, _has_moments, _without_moments),
    _part(is_topic_gone, "message_thread_id"),
    _part(is_reply_gone, "reply_parameters"),
    _part(is_about_buttons, "reply_markup"),
    _part(is_about_entities, "entities", "caption_entities"),
)
