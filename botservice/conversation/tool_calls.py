"""The calls of tools in a conversation: those that were made, those that were not, and those that wait."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botservice.conversation.field_codec import UnknownValue, decode, loads
from botservice.conversation.field_values import ToolResult
from botservice.conversation.queries import list_steps, list_waiting_calls, read_step_data
from botservice.conversation.readable_values import listed, match_results
from botservice.core.messages import ToolCall
from botservice.core.quoting import in_one_line
from botservice.storage.database import Connection

DENIED: Final = (
    "Denied: the person did not allow this call, and it was not made. Do not try it again unless they ask for it."
)
EXPIRED: Final = "Not made: nobody allowed this call in time. Say so, and make it again only if the person asks for it."
WITHDRAWN: Final = "Stopped by the person before it was allowed: it was not made."

NOT_ALLOWED: Final = "not allowed: "
"""What is told of a call begins with, after "Error: ", that a role refuses."""

_STATES: Final[Mapping[str, str]] = {DENIED: "denied", EXPIRED: "expired", WITHDRAWN: "withdrawn"}


def state_of_unmade(told: str) -> str | None:
    """Return why a call was not made, by what its model was told; None where it was made.

    The text is what a step keeps of it. A field of its own could not be read by the release before.
    """
    return _STATES.get(told)


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call, with its result where it has one."""

    call: ToolCall
    result: ToolResult | None


def read_made_calls(connection: Connection, context_id: int, turn_ids: Iterable[int]) -> dict[int, list[MadeCall]]:
    """Return the calls of turns by the turn, in the order in which they were made; none of compacted turns."""
    found: dict[int, list[MadeCall]] = {}
    for row in list_steps(connection, context_id, turn_ids):
        if row.step_number is not None:
            found.setdefault(row.turn_id, []).extend(_calls_of(loads(row.data)))
    return found


def read_calls(connection: Connection, step_id: int) -> list[ToolCall]:
    """Return the calls of a step, as the model made them; none if it is gone."""
    data = read_step_data(connection, step_id)
    return [] if data is None else calls_of(loads(data))


def calls_of(record: Any) -> list[ToolCall]:
    """Return the calls of the record of a step, in their order."""
    return [each for each in _decoded(record, "tool_calls") if isinstance(each, ToolCall)]


def _calls_of(record: Any) -> Iterator[MadeCall]:
    calls = calls_of(record)
    yield from map(MadeCall, calls, match_results(calls, _decoded(record, "tool_results")))


def _decoded(record: Any, name: str) -> Sequence[Any]:
    """Return the values of a field; none where a newer release wrote what this one cannot read."""
    try:
        return listed(decode(record.get(name))) if isinstance(record, Mapping) else ()
    except UnknownValue:
        return ()


_MOST: Final = 5  # calls that are named
_LONGEST_NAME: Final = 64
_ABOUT: Final = (
    "The service notes: these calls were wanted for earlier messages of this chat, and wait until a person allows or "
    "denies them by the buttons of a message here. Do not make them again for the same request; where somebody asks, "
    "say that they wait. "
)


def describe_waiting(connection: Connection, context_id: int, turn_id: int | None, now: datetime) -> str:
    """Return what a prompt says of the calls that other turns of a context wait with; nothing where none does.

    Tools and numbers alone are named: arguments and people stand in the conversation itself.
    """
    rows = list_waiting_calls(connection, context_id, turn_id, now, _MOST + 1)
    if not rows:
        return ""
    named = [f"{row.id}: {in_one_line(row.tool)[:_LONGEST_NAME]}" for row in rows[:_MOST]]
    return _ABOUT + "; ".join([*named, *(["and more"] if len(rows) > _MOST else [])]) + "."
