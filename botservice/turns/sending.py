"""Messages that nobody asked for: a program's own words in a conversation, once for each key.

A message is stored with its turn and its delivery in one transaction, by any process. The delivery holds the number of
the message alone: whoever holds the conversation next has its platform plan it, and sends it (see `Outbox`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select, update

from botservice.conversation.context import note_untrusted, read_context_keys
from botservice.core.errors import StorageError
from botservice.core.messages import Attachment, Button, Message, Role
from botservice.history.chat_history import count_text
from botservice.history.rows import NewMessage, find_answer, insert_message
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conversations import deliveries, events
from botservice.turns.buttons import write_buttons
from botservice.turns.records import finish_turn, insert_turn
from botservice.turns.transport import OF_MESSAGE, OFFERED
from botservice.turns.turn import API, DeliveryKind, DeliveryStatus, Outcome, set_due
from botservice.turns.wakeups import Wakeup, notify_replicas

LONGEST_KEY: Final = 255  # characters
_KIND: Final = "send"  # of the event that keeps a key; no release takes it for one of a platform

_insert_key = of_each_database(
    lambda insert: insert(events).on_conflict_do_nothing(index_elements=["key"]).returning(events.c.id)
)
_NAME_TURN = update(events).where(events.c.id == bindparam("row")).values(turn_id=bindparam("turn"))
_TURN_OF_KEY = select(events.c.turn_id).where(events.c.key == bindparam("key"))
_INSERT = insert(deliveries)


async def prepare_message(text: str, attachments: Sequence[Attachment], now: datetime) -> NewMessage:
    """Return the bot's own message as it is stored."""
    counter, count = await count_text(text)
    return NewMessage(
        role=Role.ASSISTANT,
        text=text,
        created_at=now,
        attachments=tuple(attachments),
        token_count=count,
        token_encoding=counter.name,
    )


def write_message(
    connection: Connection, context_id: int, new: NewMessage, *, buttons: Sequence[Button] = (), key: str | None = None
) -> Message:
    """Store a message to be sent, and return it; the message of a key that is stored already is returned as it is.

    Args:
        key: Names the message in its conversation, as long as events are kept.

    Raises:
        StorageError: the conversation is gone, or the message of the key was deleted since.
    """
    now = new.created_at
    transport = _transport_of(read_context_keys(connection, context_id))
    event_id = None
    if key is not None:
        event = {"key": f"{_KIND}:{context_id}:{key}", "context_id": context_id, "transport": transport}
        event |= {"kind": _KIND, "order_key": 0, "received_at": now, "handled_at": now}
        event_id = connection.execute(_insert_key(connection), event).scalar_one_or_none()
        if event_id is None:
            return _find_sent(connection, context_id, key, event["key"])
    # It has not begun: the steps that a program keeps in view are those of the turn before.
    turn_id = insert_turn(connection, context_id, transport, now)
    finish_turn(connection, turn_id, now, Outcome.ANSWERED)
    if event_id is not None:
        connection.execute(_NAME_TURN, {"row": event_id, "turn": turn_id})
    message = insert_message(connection, context_id, replace(new, answers_turn_id=turn_id))
    note_untrusted(connection, context_id)  # whose words a program passes on is not known
    if transport != API:
        payload: dict[str, Any] = {OF_MESSAGE: message.id}
        if buttons:
            payload[OFFERED] = write_buttons(buttons)
        of_turn = {"context_id": context_id, "turn_id": turn_id, "transport": transport, "created_at": now}
        state = {"kind": DeliveryKind.UNPLANNED.value, "status": DeliveryStatus.PENDING.value, "attempts": 0}
        connection.execute(_INSERT, {**of_turn, **state, "payload": payload, **set_due(now, now)})
        notify_replicas(connection, [Wakeup(context_id, is_open=True)])
    return replace(message, buttons=tuple(buttons))


def _find_sent(connection: Connection, context_id: int, key: str, event_key: Any) -> Message:
    turn_id = connection.execute(_TURN_OF_KEY, {"key": event_key}).scalar_one_or_none()
    found = None if turn_id is None else find_answer(connection, turn_id)
    if found is None:
        raise StorageError(f"the message with the key {key!r} in context {context_id} was deleted since it was sent")
    return found


def _transport_of(context_keys: Mapping[str, Any]) -> str:
    """Return the transport of a conversation; that of one on no platform shows nothing."""
    transport = context_keys.get("transport")
    return transport if isinstance(transport, str) and transport else API
