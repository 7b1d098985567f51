"""Finding out whether people have taken back what they asked: nobody is answered then."""

from typing import Final

from sqlalchemy import Connection, bindparam, select

from botservice.storage.tables.conditions import EVENT_IS_EXTERNAL
from botservice.storage.tables.conversations import events
from botservice.turns.turn import EventKind
from transports.slack.inbound_events import stored_message

_ASKED: Final = select(events.c.raw, events.c.context_id).where(events.c.turn_id == bindparam("turn"))
_DELETED: Final = (
    select(events.c.id)
    .where(
        EVENT_IS_EXTERNAL,
        events.c.context_id == bindparam("context"),
        events.c.external_id == bindparam("ts"),
        events.c.kind == EventKind.DELETE.value,
    )
    .limit(1)
)


def is_all_deleted(connection: Connection, turn_id: int) -> bool:
    """Return whether a turn answers messages alone, all of which were deleted since."""
    asked = connection.execute(_ASKED, {"turn": turn_id}).all()
    written = [(row.context_id, stored_message(row.raw or b"")) for row in asked]
    return bool(written) and all(
        message is not None and connection.execute(_DELETED, {"context": context, "ts": message.ts}).first() is not None
        for context, message in written
    )
