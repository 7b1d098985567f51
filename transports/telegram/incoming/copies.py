"""Questions that stand in a chat twice, because it was not heard that the first had arrived: both may be answered."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from botservice.messages import Button
from botservice.storage.tables.conditions import CALL_IS_OPEN
from botservice.storage.tables.conversations import deliveries
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.buttons import read_buttons


def find_copied(connection: Connection, context_id: int, text: str | None) -> Sequence[Button]:
    """Return the buttons of the question that waits in a context and says word for word what a message says."""
    if not text:
        return ()
    asked = select(pending_calls.c.delivery_id).where(CALL_IS_OPEN, pending_calls.c.context_id == context_id)
    query = select(deliveries.c.payload, deliveries.c.buttons).where(
        deliveries.c.id.in_(asked), deliveries.c.transport == "telegram", deliveries.c.buttons.is_not(None)
    )
    for row in connection.execute(query):
        if isinstance(row.payload, Mapping) and str(row.payload.get("text")).strip() == text.strip():
            return read_buttons(row.buttons)
    return ()
