"""The buttons under a message that was sent, and who was asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from botservice.core.messages import Button
from botservice.storage.database import Connection
from botservice.storage.tables.conditions import DELIVERY_HAS_BUTTONS, DELIVERY_IS_OWED
from botservice.storage.tables.conversations import deliveries, events
from botservice.turns.buttons import read_buttons

_ARRIVED = (
    select(deliveries.c.turn_id, deliveries.c.buttons)
    .where(
        deliveries.c.context_id == bindparam("context"),
        deliveries.c.external_id == bindparam("message"),
        deliveries.c.transport == bindparam("transport"),
    )
    .order_by(deliveries.c.id.desc())
    .limit(1)
)
_OFFERED = _ARRIVED.where(DELIVERY_HAS_BUTTONS)
_OWED_BUTTONS = (
    select(deliveries.c.id)
    .where(DELIVERY_IS_OWED, DELIVERY_HAS_BUTTONS, deliveries.c.context_id == bindparam("context"))
    .limit(1)
)
_ASKED_BY = select(events.c.raw).where(events.c.turn_id == bindparam("turn"), events.c.raw.is_not(None))


@dataclass(frozen=True, slots=True)
class Offered:
    """The buttons under a message.

    Attributes:
        asked: What its turn answers, as the platform delivered it.
    """

    buttons: tuple[Button, ...]
    asked: Sequence[bytes]


def are_owed(connection: Connection, context_id: int) -> bool:
    """Return whether some buttons are on their way or wait to be sent: they may have arrived without a word of it."""
    return connection.execute(_OWED_BUTTONS, {"context": context_id}).first() is not None


def has_arrived(connection: Connection, context_id: int, transport: str, message_id: str) -> bool:
    """Return whether a message is known to have arrived, with or without buttons."""
    sought = {"context": context_id, "transport": transport, "message": message_id}
    return connection.execute(_ARRIVED, sought).one_or_none() is not None


def find_offered(connection: Connection, context_id: int, transport: str, message_id: str) -> Offered | None:
    """Return the buttons under a message, or None if it is not known to have any."""
    sought = {"context": context_id, "transport": transport, "message": message_id}
    row = connection.execute(_OFFERED, sought).one_or_none()
    if row is None:
        return None
    return Offered(read_buttons(row.buttons), connection.execute(_ASKED_BY, {"turn": row.turn_id}).scalars().all())
