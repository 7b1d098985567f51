"""The unsent parts of long answers: dropped after a stop, and sent by turns if several people wait."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import and_, bindparam, exists, func, select, text, update

from botservice.storage.database import Connection
from botservice.storage.tables.conditions import DELIVERY_IS_OWED
from botservice.storage.tables.conversations import deliveries, turns
from botservice.turns.outbox import NEXT, read_delivery
from botservice.turns.turn import Delivery, DeliveryKind, DeliveryStatus

_earlier = deliveries.alias("earlier")
_others = deliveries.alias("others")
_IS_PENDING = and_(DELIVERY_IS_OWED, text("deliveries.status = 'pending'"))
_OTHERS_ARE_PENDING = text("others.status IN ('pending', 'attempting') AND others.status = 'pending'")

# Messages of answers of which some have gone out, or are on their way, whose questions came before the stop.
_STOPPED = and_(
    deliveries.c.context_id == bindparam("context"),
    deliveries.c.kind == DeliveryKind.MESSAGE.value,
    _IS_PENDING,
    deliveries.c.replaces.is_(None),  # what says that a question is over is no answer
    exists().where(turns.c.id == deliveries.c.turn_id, turns.c.order_key < bindparam("stop")),
    exists().where(_earlier.c.turn_id == deliveries.c.turn_id, _earlier.c.id < deliveries.c.id),
)
_DROP = (
    update(deliveries)
    .where(_STOPPED)
    .values(status=DeliveryStatus.FAILED.value, error="stopped", finished_at=bindparam("now"))
    .execution_options(synchronize_session=False)
)
_FAIREST = NEXT.order_by(None).order_by(
    select(func.count())
    .select_from(_others)
    .where(_others.c.context_id == bindparam("context"), _others.c.turn_id == deliveries.c.turn_id, _OTHERS_ARE_PENDING)
    .scalar_subquery(),
    deliveries.c.id,
)


def drop_stopped(connection: Connection, context_id: int, stop: int, now: datetime) -> None:
    """Drop the unsent messages of answers that were stopped.

    Args:
        stop: The order key of that wish.
    """
    connection.execute(_DROP, {"context": context_id, "stop": stop, "now": now})


def find_fairest_delivery(connection: Connection, context_id: int, transports: Collection[str]) -> Delivery | None:
    """Return the next message of a context if several people wait: of the answer with the fewest left."""
    return read_delivery(connection.execute(_FAIREST, {"context": context_id, "transports": list(transports)}))
