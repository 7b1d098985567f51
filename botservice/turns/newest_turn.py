"""Finding the newest turn, or the newest one that failed."""

from sqlalchemy import select

from botservice.core.errors import StorageError
from botservice.storage.database import Connection, Storage
from botservice.storage.tables.conversations import turns
from botservice.turns.turn import Outcome, TurnStatus


async def find_newest_turn(storage: Storage, context_id: int | None, *, is_failed: bool) -> tuple[int, int]:
    """Return the conversation and the number of the newest turn, or of the newest that failed or was set aside.

    Args:
        context_id: In which conversation; None for any.

    Raises:
        StorageError: there is none.
    """
    query = select(turns.c.context_id, turns.c.id).where(turns.c.context_id.is_not(None)).limit(1)
    if context_id is None:
        query = query.order_by(turns.c.id.desc())
    else:  # not "equal", and ordered by both: Postgres would go through the turns of all contexts otherwise
        query = query.where(turns.c.context_id.between(context_id, context_id))
        query = query.order_by(turns.c.context_id.desc(), turns.c.id.desc())
    if is_failed:
        query = query.where((turns.c.outcome == Outcome.FAILED.value) | (turns.c.status == TurnStatus.SET_ASIDE.value))

    def read(connection: Connection) -> tuple[int, int] | None:
        row = connection.execute(query).one_or_none()
        return None if row is None else (row.context_id, row.id)

    found = await storage.read(read, is_long=True)
    if found is None:
        where = "" if context_id is None else f" in context {context_id}"
        raise StorageError(f"no turn has failed{where}" if is_failed else f"there is no turn{where}")
    return found
