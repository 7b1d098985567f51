"""What the model is told of calls in its conversation that wait for a person's word, so that it makes none twice."""

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, select

from botservice.core.quoting import in_one_line
from botservice.storage.database import Connection
from botservice.storage.tables.conditions import CALL_IS_OPEN
from botservice.storage.tables.waiting import pending_calls

_MOST: Final = 5  # calls that are named
_LONGEST_NAME: Final = 64
_ABOUT: Final = (
    "The service notes: these calls were wanted for earlier messages of this chat, and wait until a person allows or "
    "denies them by the buttons of a message here. Do not make them again for the same request; where somebody asks, "
    "say that they wait. "
)
_WAITING: Final = (
    select(pending_calls.c.id, pending_calls.c.tool)
    .where(
        CALL_IS_OPEN,
        pending_calls.c.context_id == bindparam("context"),
        pending_calls.c.turn_id != bindparam("turn"),
        pending_calls.c.kind == "approval",
        pending_calls.c.status == "waiting",
        pending_calls.c.expires_at > bindparam("now"),
    )
    .order_by(pending_calls.c.id)
    .limit(_MOST + 1)
)


def describe_waiting(connection: Connection, context_id: int, turn_id: int | None, now: datetime) -> str:
    """Return what a prompt says of the calls that other turns of a context wait with; nothing where none does.

    Tools and numbers alone are named: arguments and people stand in the conversation itself.
    """
    rows = connection.execute(_WAITING, {"context": context_id, "turn": turn_id or 0, "now": now}).all()
    if not rows:
        return ""
    named = [f"{row.id}: {in_one_line(row.tool)[:_LONGEST_NAME]}" for row in rows[:_MOST]]
    return _ABOUT + "; ".join([*named, *(["and more"] if len(rows) > _MOST else [])]) + "."
