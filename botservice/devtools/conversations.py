"""Conversations and their turns, one by one: listed, read, exported and deleted."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botservice.conversation.items import MemoryItem
from botservice.conversation.reminder_queries import read_schedules, read_waiting
from botservice.conversation.step_records import read_steps
from botservice.core.errors import StorageError
from botservice.core.messages import Attachment
from botservice.devtools.queries import check_context, list_context_rows, list_turn_rows
from botservice.history.queries import list_messages
from botservice.privacy.forgetting import forget_chat
from botservice.storage.database import Connection, Storage
from botservice.turns.call_queries import find_of_turns
from botservice.turns.waiting_calls import say_state, work_seconds


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """A conversation in a list."""

    id: int
    keys: Mapping[str, str]
    message_count: int
    last_message_at: datetime | None
    last_message_id: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        last = self.last_message_at and self.last_message_at.isoformat()
        return {"id": self.id, "keys": dict(self.keys), "messages": self.message_count, "last_message_at": last}


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn with its steps.

    Attributes:
        compacted_at: Since when its steps are not kept any more.
        waited: What it waits for, or has waited for, and what became of that.
        worked_seconds: How long it took, without the time in which a person had to decide; None if it has not ended.
    """

    id: int
    status: str
    outcome: str | None
    error: str | None
    created_at: datetime
    finished_at: datetime | None
    steps: tuple[MemoryItem, ...]
    compacted_at: datetime | None = None
    waited: tuple[str, ...] = ()
    worked_seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "turn": self.id,
            "status": self.status,
            "outcome": self.outcome,
            "error": self.error,
            "created_at": self.created_at.isoformat(),
            "finished_at": self.finished_at and self.finished_at.isoformat(),
            "compacted_at": self.compacted_at and self.compacted_at.isoformat(),
            "waited": list(self.waited),
            "steps": [step.to_dict() for step in self.steps],
        }


async def list_contexts(
    storage: Storage, *, limit: int | None = None, having: str | None = None, after: tuple[int, int] | None = None
) -> list[ContextSummary]:
    """Return the conversations, those with the newest messages first.

    Args:
        having: Only those one of whose keys has this value.
        after: Only those after one in the list, by its last_message_id and its id.
    """

    def read(connection: Connection) -> list[ContextSummary]:
        return [ContextSummary(*row) for row in list_context_rows(connection, limit, having, after)]

    return await storage.read(read, is_long=True)


async def read_turns(storage: Storage, context_id: int, turn_id: int | None = None) -> list[TurnRecord]:
    """Return the turns of a conversation with their steps, oldest first.

    Raises:
        StorageError: there is no such context, or no such turn in it.
    """

    def query(connection: Connection) -> list[TurnRecord]:
        check_context(connection, context_id)
        rows = list_turn_rows(connection, context_id, turn_id)
        if turn_id is not None and not rows:
            raise StorageError(f"context {context_id} has no turn {turn_id}")
        steps: dict[int, list[MemoryItem]] = {}
        for stored in read_steps(connection, context_id, turn_ids=None if turn_id is None else [turn_id]):
            steps.setdefault(stored.turn_id, []).append(stored.item)
        waiting = find_of_turns(connection, [row.id for row in rows])
        return [
            TurnRecord(
                row.id,
                row.status,
                row.outcome,
                row.error,
                row.created_at,
                row.finished_at,
                tuple(steps.get(row.id, ())),
                row.compacted_at,
                tuple(map(say_state, waiting.get(row.id, ()))),
                work_seconds(row, waiting.get(row.id, ())),
            )
            for row in rows
        ]

    return await storage.read(query, is_long=True)


async def export_context(storage: Storage, context_id: int) -> dict[str, Any]:
    """Return everything that is kept of a conversation, as JSON values; the bytes of files as base64.

    Raises:
        StorageError: there is no such context.
    """

    def query(connection: Connection) -> dict[str, Any]:
        row = check_context(connection, context_id)
        return {
            "context": {"id": context_id, "keys": row.context_keys, "metadata": row.metadata},
            "messages": [
                {
                    "id": each.id,
                    "role": each.role.value,
                    "text": each.text,
                    "author": each.author
                    and {"platform": each.author.platform, "id": each.author.id, "name": each.author.name},
                    "created_at": each.created_at.isoformat(),
                    "attachments": [_export_file(file) for file in each.attachments],
                }
                for each in list_messages(connection, context_id)
            ],
            "reminders": [
                each.as_dict()
                for each in (*read_waiting(connection, context_id), *read_schedules(connection, context_id))
            ],
        }

    exported = await storage.read(query, is_long=True)
    exported["turns"] = [each.as_dict() for each in await read_turns(storage, context_id)]
    return exported


def _export_file(file: Attachment) -> dict[str, str | None]:
    about = {"name": file.name, "mime_type": file.mime_type}
    if file.data is None:
        return {**about, "url": file.url}
    return {**about, "data": base64.b64encode(file.data).decode()}


async def forget_context(storage: Storage, context_id: int) -> None:
    """Delete a conversation with everything that belongs to it. A turn that runs there can store nothing more.

    Raises:
        StorageError: there is no such context.
    """
    await storage.read(lambda connection: check_context(connection, context_id))
    await forget_chat(storage, context_id)
