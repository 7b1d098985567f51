"""The calls of an open step: started before they run, ended with their result."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from botservice.agent.tool_executor import ToolOutcome
from botservice.conversation.field_codec import decode, dumps, encode, loads
from botservice.storage.database import Connection
from botservice.storage.tables.conversations import tool_calls
from botservice.turns.buttons import read_buttons, write_buttons

_STARTED = "started"
_ENDED = "ended"

_INSERT = insert(tool_calls)
_INSERT_GIVEN = insert(tool_calls)
_OF_STEP = tool_calls.c.step_id == bindparam("step")
_UPDATE = update(tool_calls).where(_OF_STEP, tool_calls.c.call_index == bindparam("index"))
_DELETE = delete(tool_calls).where(_OF_STEP)


def write_started(connection: Connection, context_id: int, step_id: int, indices: Sequence[int]) -> None:
    """Take note that calls are about to run."""
    rows = [
        {"context_id": context_id, "step_id": step_id, "call_index": index, "status": _STARTED} for index in indices
    ]
    if rows:
        connection.execute(_INSERT, rows)


def write_ended(connection: Connection, step_id: int, index: int, outcome: ToolOutcome) -> None:
    """Take note of a call's result."""
    connection.execute(_UPDATE, {"step": step_id, "index": index, "status": _ENDED, "result": _write(outcome)})


def write_given(connection: Connection, context_id: int, step_id: int, index: int, outcome: ToolOutcome) -> None:
    """Take note of the result of a call that was not made."""
    row = {"context_id": context_id, "step_id": step_id, "call_index": index, "status": _ENDED}
    connection.execute(_INSERT_GIVEN, {**row, "result": _write(outcome)})


def has_started(connection: Connection, step_id: int) -> bool:
    """Return whether any call of a step was about to run."""
    return (
        connection.execute(select(tool_calls.c.call_index).where(tool_calls.c.step_id == step_id)).first() is not None
    )


def delete_calls(connection: Connection, step_id: int) -> None:
    """Drop the calls of a step that is closed: it has their results."""
    connection.execute(_DELETE, {"step": step_id})


def read_ended(connection: Connection, step_id: int) -> Mapping[int, ToolOutcome]:
    """Return the results of the calls that ended, by their place in the step."""
    query = select(tool_calls.c.call_index, tool_calls.c.result).where(
        tool_calls.c.step_id == step_id, tool_calls.c.status == _ENDED
    )
    return {row.call_index: _read(row.result) for row in connection.execute(query)}


def _write(outcome: ToolOutcome) -> str:
    fields: dict[str, Any] = {
        "text": outcome.text,
        "attachments": outcome.attachments,
        "output": outcome.output,
        "error_type": outcome.error_type,
        "duration_seconds": outcome.duration_seconds,
    }
    if outcome.sub_run is not None:
        fields["sub_run"] = outcome.sub_run
    if outcome.buttons:
        fields["buttons"] = write_buttons(outcome.buttons)
    return dumps(encode(fields))


def _read(text: str) -> ToolOutcome:
    fields = decode(loads(text))
    return ToolOutcome(
        fields["text"],
        tuple(fields["attachments"]),
        fields["output"],
        fields["error_type"],
        fields["duration_seconds"],
        read_buttons(fields.get("buttons")),
        fields.get("sub_run"),
    )
