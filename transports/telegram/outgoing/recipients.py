"""Whom a message concerns that others in a group need not see.

A bot that is no administrator may write to one member alone only within 15 seconds of a press, or of a message that
nobody else saw either. Source: core.telegram.org/bots/api#ephemeral-messages-and-commands.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from botservice.turns.turn import StoredEvent
from transports.telegram.inbound import field, integer, stored_update

AS_ADMINISTRATOR = "personal"
AS_REPLY = "personal-reply"


def receiver_of(events: Sequence[StoredEvent]) -> dict[str, Any] | None:
    """Return who asked, with what allows to answer them alone; None where that was not one person."""
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


def form_of(receiver: Mapping[str, Any]) -> str:
    """Return what the form is called: what an administrator may do is something else than an answer at once."""
    return AS_ADMINISTRATOR if receiver.keys() == {"user_id"} else AS_REPLY


def _asker(update: Mapping[str, Any]) -> dict[str, Any] | None:
    query = update.get("callback_query")
    said = query or update.get("message")
    user_id = integer(field(field(said, "from"), "id"))
    if user_id is None or field(said, "sender_chat") is not None:
        return None
    asker: dict[str, Any] = {"user_id": user_id}
    if query is not None:
        return asker | {"callback_query_id": field(query, "id")}
    unseen = integer(field(said, "ephemeral_message_id"))
    return asker | ({} if unseen is None else {"ephemeral_message_id": unseen})
