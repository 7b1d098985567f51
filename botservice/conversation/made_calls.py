"""The calls of tools that turns made, read without what their model was given."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, select

from botservice.conversation.field_codec import UnknownValue, decode, loads
from botservice.conversation.field_values import ToolResult
from botservice.conversation.readable import listed
from botservice.core.messages import ToolCall
from botservice.storage.database import Connection
from botservice.storage.tables.conversations import steps

# A sum, so that no index is chosen by it: SQLite would look through all steps of the context in their order.
_STEPS: Final = (
    select(steps.c.turn_id, steps.c.data)
    .where(
        steps.c.context_id + 0 == bindparam("context"),
        steps.c.turn_id.in_(bindparam("turns", expanding=True)),
        steps.c.step_number.is_not(None),
    )
    .order_by(steps.c.position, steps.c.id)
)


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call, with its result where it has one."""

    call: ToolCall
    result: ToolResult | None


def read_made_calls(connection: Connection, context_id: int, turn_ids: Iterable[int]) -> dict[int, list[MadeCall]]:
    """Return the calls of turns by the turn, in the order in which they were made; none of compacted turns."""
    found: dict[int, list[MadeCall]] = {}
    sought = list(turn_ids)
    if sought:
        for row in connection.execute(_STEPS, {"context": context_id, "turns": sought}).all():
            found.setdefault(row.turn_id, []).extend(_calls_of(loads(row.data)))
    return found


def _calls_of(record: Any) -> Iterator[MadeCall]:
    results = {each.call_id: each for each in _decoded(record, "tool_results") if isinstance(each, ToolResult)}
    for call in _decoded(record, "tool_calls"):
        if isinstance(call, ToolCall):
            yield MadeCall(call, results.get(call.id))


def _decoded(record: Any, name: str) -> Iterable[Any]:
    """Return the values of a field; none where a newer release wrote what this one cannot read."""
    try:
        return listed(decode(record.get(name))) if isinstance(record, Mapping) else ()
    except UnknownValue:
        return ()
