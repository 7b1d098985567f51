"""What waits, what runs, and what was set aside: looked at from outside, and dealt with while the service runs."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import read_context_keys
from botservice.core.errors import BotServiceError, StorageError
from botservice.core.states import OPEN, EventKind, Outcome, TurnStatus
from botservice.history.edit_queries import delete_rows
from botservice.storage.database import Connection, Storage
from botservice.turns.backlog_queries import OWED, list_backlog, list_set_aside
from botservice.turns.call_queries import find_of_turn, find_waiting, withdraw_turn
from botservice.turns.event_queries import insert_event
from botservice.turns.finding_queries import find_locked, has_gone_on, is_asked, list_asked
from botservice.turns.queries import begin_anew, drop_set_aside, finish_turn, make_due, reopen_turn
from botservice.turns.turn import InboundEvent
from botservice.turns.waiting_calls import say_wait
from botservice.turns.wakeups import Wakeup, notify_replicas

_SHOWN = {
    TurnStatus.RUNNING: "running",
    TurnStatus.QUEUED: "waiting",
    TurnStatus.WAITING: "suspended",
    TurnStatus.SET_ASIDE: "set aside",
}


@dataclass(frozen=True, slots=True)
class ListedTurn:
    """A turn that is not done.

    Attributes:
        status: waiting, running, suspended (with calls that wait), set aside or owed: it is done, but its answer was
            not taken yet.
        messages: How many messages it answers.
        attempts: How often it was begun without getting further.
        due_at: Not before then.
        error: Why it was tried again, or set aside.
        waits_for: What it is suspended with: for whose word, or for which result, and until when.
    """

    id: int
    context_id: int
    context_keys: Mapping[str, str]
    transport: str
    status: str
    messages: int
    attempts: int
    created_at: datetime
    due_at: datetime
    error: str | None
    waits_for: tuple[str, ...] = ()

    def is_put_off(self, now: datetime) -> bool:
        """Return whether it, or its delivery, is tried again later."""
        return self.status in (_SHOWN[TurnStatus.QUEUED], OWED) and self.due_at > now

    def as_dict(self, now: datetime) -> dict[str, Any]:
        """Return it as JSON values, with its age in seconds."""
        return {
            "turn": self.id,
            "status": self.status,
            "age_seconds": round(max(0.0, (now - self.created_at).total_seconds()), 3),
            "due_at": self.due_at.isoformat(),
            "attempts": self.attempts,
            "messages": self.messages,
            "error": self.error,
            "transport": self.transport,
            "context": self.context_id,
            "context_keys": dict(self.context_keys),
            "waits_for": list(self.waits_for),
        }


async def list_turns(storage: Storage) -> list[ListedTurn]:
    """Return the turns that run, wait, were set aside, or whose answer is pending; of each kind the oldest first."""
    now = storage.now()

    def status(row: Any) -> str:
        """Return what a turn does; one that has failed waits for its next try."""
        if row.status == OWED:
            return OWED
        is_postponed = row.status == TurnStatus.RUNNING.value and row.due_at > now
        return _SHOWN[TurnStatus.QUEUED if is_postponed else TurnStatus(row.status)]

    def query(connection: Connection) -> list[ListedTurn]:
        rows = list_backlog(connection)
        waits_for = _read_waiting(connection)
        order = [*_SHOWN.values(), OWED]
        rows.sort(key=lambda row: (order.index(status(row)), row.id))
        return [
            ListedTurn(
                row.id,
                row.context_id,
                row.context_keys,
                row.transport,
                status(row),
                row.joined_events + 1,
                row.attempts,
                row.created_at,
                row.due_at,
                row.error,
                tuple(waits_for.get(row.id, ())),
            )
            for row in rows
        ]

    return await storage.read(query, is_long=True)


def _read_waiting(connection: Connection) -> dict[int, list[str]]:
    """Return what turns are suspended with, in a few words for each."""
    found: dict[int, list[str]] = {}
    for each in find_waiting(connection):
        found.setdefault(each.turn_id, []).append(say_wait(each))
    return found


async def retry_turn(storage: Storage, turn_id: int, now: datetime) -> None:
    """Try a turn now that was set aside, or that waits for its next try.

    Where the chat has gone on meanwhile, what was said is said again at its end.

    Raises:
        StorageError: there is no such turn.
        BotServiceError: it does not wait for that, or it cannot be tried again.
    """

    def operation(connection: Connection) -> None:
        row = _find(connection, turn_id)
        if row.status in OPEN:
            make_due(connection, turn_id, now)
        elif row.status == TurnStatus.WAITING.value:
            raise BotServiceError(f"turn {turn_id} waits for {'; '.join(_read_waiting(connection).get(turn_id, []))}")
        elif row.status != TurnStatus.SET_ASIDE.value:
            raise BotServiceError(f"turn {turn_id} is done")
        elif row.started_at is None:
            begin_anew(connection, turn_id, now)
        elif row.compacted_at is None and not has_gone_on(connection, row.context_id, turn_id, row.started_at):
            reopen_turn(connection, turn_id, now)
        elif row.steps_taken:
            raise BotServiceError(
                f"turn {turn_id} has run tools, and its chat has gone on since, or what they gave was forgotten: "
                "ask again there, or those tools would run twice"
            )
        elif not is_asked(connection, turn_id):
            raise BotServiceError(f"nobody's message asks for turn {turn_id} any more: ask again in its chat")
        else:
            delete_rows(connection, row.context_id, list_asked(connection, turn_id))
            begin_anew(connection, turn_id, now)
        notify_replicas(connection, [Wakeup(row.context_id, is_open=True)])

    await storage.write(operation)


async def retry_all(storage: Storage, now: datetime, since: datetime | None = None) -> tuple[list[int], dict[int, str]]:
    """Try every turn again that was set aside, such as after an outage or a revoked key.

    Args:
        since: Only those that were set aside from then on.

    Returns:
        The turns that are tried again, and why each of the others is not.
    """
    found = await storage.read(lambda connection: list_set_aside(connection, since), is_long=True)
    tried, refused = [], {}
    for turn_id in found:
        try:
            await retry_turn(storage, turn_id, now)
        except BotServiceError as error:
            refused[turn_id] = str(error)
        else:
            tried.append(turn_id)
    return tried, refused


async def drop_turn(storage: Storage, turn_id: int, now: datetime) -> None:
    """End a turn without an answer. One that is being answered is stopped, with what was said until then.

    Raises:
        StorageError: there is no such turn.
        BotServiceError: it is done.
    """

    def operation(connection: Connection) -> None:
        row = _find(connection, turn_id)
        if row.status == TurnStatus.SET_ASIDE.value:
            drop_set_aside(connection, turn_id, now)
        elif row.status == TurnStatus.DONE.value:
            raise BotServiceError(f"turn {turn_id} is done")
        elif row.status == TurnStatus.WAITING.value:
            _withdraw(connection, row, now)
        elif row.started_at is None:
            finish_turn(connection, turn_id, now, Outcome.STOPPED, error=row.error)
        else:
            make_due(connection, turn_id, now)
            keys = ContextKeys.of(read_context_keys(connection, row.context_id))
            key, order = f"command-line:stop:{turn_id}:{uuid.uuid4()}", row.order_key + 1
            stop = InboundEvent(key, keys.values, order, b"", EventKind.STOP)
            insert_event(connection, row.transport, keys, stop, now)
            notify_replicas(connection, [Wakeup(row.context_id, EventKind.STOP, is_open=True)])

    await storage.write(operation)


def _withdraw(connection: Connection, row: Any, now: datetime) -> None:
    """Store a stop for a suspended turn: the worker of its conversation obeys it."""
    if any(each.is_open for each in find_of_turn(connection, row.id)):
        withdraw_turn(connection, row.id, now)
        notify_replicas(connection, [Wakeup(row.context_id, EventKind.DECISION, is_open=True)])
    else:  # what it had done was forgotten
        finish_turn(connection, row.id, now, Outcome.STOPPED, error=row.error)


def _find(connection: Connection, turn_id: int) -> Any:
    row = find_locked(connection, turn_id)
    if row is None:
        raise StorageError(f"there is no turn {turn_id}: `botservice turns` lists them")
    return row
