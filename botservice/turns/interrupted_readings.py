"""Which events had files that were being read when their process ended."""

from sqlalchemy import bindparam, update

from botservice.storage.database import Connection, Storage
from botservice.storage.tables.conversations import events

_BEGIN = (
    update(events)
    .where(events.c.id == bindparam("event"), events.c.reading_at.is_(None))
    .values(reading_at=bindparam("now"))
    .returning(events.c.id)
)
_END = update(events).where(events.c.id == bindparam("event")).values(reading_at=None)


async def begin_reading(storage: Storage, event_id: int) -> bool:
    """Mark that an event's files are about to be read; return False if this was begun before."""
    now = storage.now()

    def begin(connection: Connection) -> bool:
        return connection.execute(_BEGIN, {"event": event_id, "now": now}).one_or_none() is not None

    return await storage.write(begin)


async def end_reading(storage: Storage, event_id: int) -> None:
    """Take note that reading an event's files is over, however it ended; only the process's own end is not noted."""
    await storage.write(lambda connection: connection.execute(_END, {"event": event_id}))
