"""Messages that no answer brings: what a chat is told later, and what stands in the place of what it was shown."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, insert, select, update

from botservice.people.names import HOOKS
from botservice.storage.database import Connection
from botservice.storage.tables.conversations import deliveries, turns
from botservice.turns.outbox import content_columns
from botservice.turns.transport import Payload
from botservice.turns.turn import DeliveryKind, DeliveryStatus, Turn, set_due

_INSERT = insert(deliveries)
_LAY_OFF = (
    update(deliveries)
    .where((deliveries.c.id == bindparam("row")) | (deliveries.c.replaces == bindparam("row")))
    .where(deliveries.c.turn_id == bindparam("turn"))
    .values(buttons=None)
)
_TAKE_BACK = update(deliveries).where(deliveries.c.turn_id == bindparam("turn"), deliveries.c.finished_at.is_not(None))
_CHAT_OF_TURN = select(turns.c.context_id, turns.c.transport).where(turns.c.id == bindparam("turn"))


def take_back(connection: Connection, turn_id: int) -> None:
    """Empty what was told of a turn whose question is asked again: no page shows it any more."""
    connection.execute(_TAKE_BACK, {"turn": turn_id, "payload": {}})


def owe_in_turn(connection: Connection, turn_id: int, payloads: Sequence[Payload], now: datetime) -> None:
    """Store messages for the chat of an ended turn; nothing happens if the turn is gone."""
    turn = connection.execute(_CHAT_OF_TURN, {"turn": turn_id}).one_or_none()
    if turn is None:
        return
    state = {"kind": DeliveryKind.MESSAGE.value, "status": DeliveryStatus.PENDING.value, "created_at": now}
    of_turn = {
        "context_id": turn.context_id,
        "turn_id": turn_id,
        "transport": turn.transport.removeprefix(HOOKS),
        **set_due(now, now),
    }
    for payload in payloads:
        connection.execute(_INSERT, {**of_turn, **state, **content_columns(payload)})


def owe_in_place(connection: Connection, turn: Turn, delivery_id: int, payload: Payload, now: datetime) -> None:
    """Store a replacement of a message that was sent, or is about to be; the old buttons do nothing any more."""
    connection.execute(_LAY_OFF, {"row": delivery_id, "turn": turn.id})
    asked = connection.execute(select(deliveries.c.status).where(deliveries.c.id == delivery_id)).scalar_one_or_none()
    if asked is None or asked == DeliveryStatus.FAILED.value:
        return  # nobody has seen it
    values = {"kind": DeliveryKind.MESSAGE.value, "status": DeliveryStatus.PENDING.value, "attempts": 0}
    of_turn = {"context_id": turn.context_id, "turn_id": turn.id, "transport": turn.platform, "created_at": now}
    shown = {**content_columns(payload), **set_due(now, now), "replaces": delivery_id}
    connection.execute(_INSERT, {**values, **of_turn, **shown})
