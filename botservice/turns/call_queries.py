"""Every statement of calls: those of an open step, and those that wait for a person or a result."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)

from botservice.agent.tool_executor import ToolOutcome
from botservice.agent.tool_questions import ToolQuestions
from botservice.conversation.chat_messages import INTERRUPTED
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.field_codec import decode, dumps, encode, freeze, loads
from botservice.conversation.queries import find_context
from botservice.core.messages import Author
from botservice.core.states import PendingKind, PendingStatus, TurnStatus
from botservice.storage.database import Connection
from botservice.storage.tables.conditions import CALL_IS_OPEN, CALL_IS_UNDECIDED, TURN_IS_SUSPENDED
from botservice.storage.tables.conversations import deliveries, messages, tool_calls, turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns import approval_queries
from botservice.turns.approval_queries import CallResult
from botservice.turns.buttons import read_buttons, write_buttons
from botservice.turns.turn import AT_ONCE, set_due
from botservice.turns.waiting_calls import WaitingCall

_LOCK_TURN = select(turns.c.status).where(turns.c.id == bindparam("turn")).with_for_update()


def insert_pending(connection: Connection, values: dict[str, Any]) -> int:
    """Store a call that waits and return its number."""
    return int(connection.execute(insert(pending_calls).returning(pending_calls.c.id), values).scalar_one())


def delete_pauses(connection: Connection, step_id: int, index: int) -> None:
    """Drop the earlier pauses of a call: it may pause often."""
    of_call = pending_calls.c.step_id == step_id, pending_calls.c.call_index == index, ~pending_calls.c.is_open
    is_pause = pending_calls.c.kind == PendingKind.LATER.value, pending_calls.c.question.is_(None)
    connection.execute(delete(pending_calls).where(*of_call, *is_pause))


def close_pending(connection: Connection, turn_id: int) -> None:
    """Take note that a turn waits no more with its calls."""
    _update_open(connection, turn_id, is_open=False, due_at=None)


def put_off_waiting(connection: Connection, turn_id: int, until: datetime, now: datetime) -> None:
    """Put a waiting turn off until a moment, unless one of its calls is decided before."""
    _update_open(connection, turn_id, **set_due(until, now))


def lock_turn(connection: Connection, turn_id: int) -> bool:
    """Lock a turn against other decisions, and return whether it waits."""
    status = connection.execute(_LOCK_TURN, {"turn": turn_id}).scalar_one_or_none()
    return bool(status == TurnStatus.WAITING.value)


def decide_call(
    connection: Connection, call: WaitingCall, status: PendingStatus, now: datetime, decided_by: int | None = None
) -> bool:
    """Store the decision about a call and make its turn due; return False if it or its turn does not wait any more."""
    if not _change(connection, call, now, status=status.value, decided_at=now, decided_by=decided_by):
        return False
    if call.kind is PendingKind.APPROVAL:
        approval_queries.record(connection, call, status, now, decided_by)
    return True


def store_exchange(connection: Connection, call: WaitingCall, exchange: ToolQuestions, now: datetime) -> bool:
    """Store what a person has answered so far and make the turn due; return False if the call does not wait any more.

    The answer to the last question decides the call. Until its turn goes on, it counts as interrupted: so a release
    before 1.2.0, which knows no questions, does not make it again without the answers.
    """
    decided = {"status": PendingStatus.HANDED_IN.value, "decided_at": now} if exchange.is_over else {}
    if not _change(connection, call, now, question=exchange.to_json(), **decided):
        return False
    if exchange.is_over:
        write_ended(connection, call.step_id, call.call_index, ToolOutcome(INTERRUPTED, error_type="Interrupted"))
    return True


def expire_calls(connection: Connection, turn_id: int, now: datetime) -> None:
    """Take note of the calls of a turn whose time is over."""
    for each in find_of_turn(connection, turn_id):
        if each.is_waiting and each.expires_at <= now:
            decide_call(connection, each, PendingStatus.EXPIRED, now)


def withdraw_turn(connection: Connection, turn_id: int, now: datetime) -> bool:
    """Withdraw all open calls of a waiting turn, also the allowed ones; return whether it still waits."""
    if not lock_turn(connection, turn_id):
        return False
    for each in find_of_turn(connection, turn_id):
        if each.is_waiting and each.kind is PendingKind.APPROVAL:
            approval_queries.record(connection, each, PendingStatus.WITHDRAWN, now)
        elif each.is_open:  # allowed, and not run yet
            approval_queries.complete(connection, each.id, CallResult.NOT_RUN, now)
    status = PendingStatus.WITHDRAWN.value
    _update_open(connection, turn_id, status=status, decided_at=now, told_at=None, **set_due(now, now))
    return True


def withdraw_question(connection: Connection, context_id: int, external_id: str, now: datetime) -> None:
    """Withdraw the open calls of the waiting turn that answers a deleted message."""
    asked = select(messages.c.id).where(messages.c.context_id == context_id, messages.c.external_id == external_id)
    answering = select(turns.c.id).where(turns.c.context_id == context_id, turns.c.question_id.in_(asked))
    for turn_id in connection.execute(answering.where(TURN_IS_SUSPENDED)).scalars().all():
        withdraw_turn(connection, turn_id, now)


def note_told(connection: Connection, ids: Collection[int], now: datetime) -> None:
    """Take note that the message that asks about calls says what has become of them."""
    connection.execute(update(pending_calls).where(pending_calls.c.id.in_(ids)).values(told_at=now))


def put_back(connection: Connection, calls: Collection[WaitingCall], now: datetime) -> None:
    """Make the calls of a turn due again when they expire: until then only a decision makes them due."""
    for each in calls:
        due_at = each.expires_at if each.is_waiting else None
        connection.execute(update(pending_calls).where(pending_calls.c.id == each.id).values(set_due(due_at, now)))


def set_delivery(connection: Connection, ids: Collection[int], delivery_id: int) -> None:
    """Take note of the message that asks about calls."""
    connection.execute(update(pending_calls).where(pending_calls.c.id.in_(ids)).values(delivery_id=delivery_id))


def find_open(connection: Connection, context_id: int) -> list[WaitingCall]:
    """Return the calls of a context that its turns wait with, oldest first, also those that were decided."""
    return _find(connection, pending_calls.c.context_id == context_id, CALL_IS_OPEN)


def find_kinds_awaited(connection: Connection, keys: ContextKeys) -> set[PendingKind]:
    """Return what the calls of a conversation that are undecided wait for."""
    context_id = find_context(connection, keys)
    pending = [] if context_id is None else find_open(connection, context_id)
    return {each.kind for each in pending if each.is_waiting}


def find_of_context(connection: Connection, context_id: int) -> list[WaitingCall]:
    """Return every call of a context that waits or has waited, oldest first."""
    return _find(connection, pending_calls.c.context_id == context_id)


def find_of_turns(connection: Connection, turn_ids: Collection[int]) -> dict[int, list[WaitingCall]]:
    """Return every call that some turns have waited with, oldest first, by the turn."""
    found: dict[int, list[WaitingCall]] = {}
    for each in _find(connection, pending_calls.c.turn_id.in_(turn_ids)):
        found.setdefault(each.turn_id, []).append(each)
    return found


def find_of_turn(connection: Connection, turn_id: int) -> list[WaitingCall]:
    """Return every call that a turn has waited with, oldest first."""
    return _find(connection, pending_calls.c.turn_id == turn_id)


def find_call(connection: Connection, context_id: int, number: int) -> WaitingCall | None:
    """Return a call of a context by its number, also one that was decided long ago."""
    found = _find(connection, pending_calls.c.context_id == context_id, pending_calls.c.id == number)
    return next(iter(found), None)


def find_sent_as(connection: Connection, call: WaitingCall) -> str | None:
    """Return the platform's id of the message that asks about a call, once it is sent."""
    query = select(deliveries.c.external_id).where(deliveries.c.id == call.delivery_id)
    found: str | None = connection.execute(query).scalar_one_or_none()
    return found


def find_due_turn(connection: Connection, context_id: int, transports: Collection[str], now: datetime) -> int | None:
    """Return the turn of a context that waits and is to be seen to now."""
    is_due = or_(pending_calls.c.due_at <= now, pending_calls.c.due_set_at > now + AT_ONCE)
    query = (
        select(pending_calls.c.turn_id)
        .join(turns, turns.c.id == pending_calls.c.turn_id)
        .where(CALL_IS_OPEN, TURN_IS_SUSPENDED, pending_calls.c.context_id == context_id, is_due)
        .where(pending_calls.c.transport.in_(list(transports)))
        .order_by(pending_calls.c.due_at, pending_calls.c.id)
    )
    found: int | None = connection.execute(query.limit(1)).scalar_one_or_none()
    return found


def find_waiting(connection: Connection) -> list[WaitingCall]:
    """Return every call of every context that waits, oldest first."""
    return _find(connection, CALL_IS_OPEN, CALL_IS_UNDECIDED)


def _update_open(connection: Connection, turn_id: int, **values: Any) -> None:
    """Change all calls that a turn waits with."""
    connection.execute(update(pending_calls).where(pending_calls.c.turn_id == turn_id, CALL_IS_OPEN).values(values))


def _change(connection: Connection, call: WaitingCall, now: datetime, **values: Any) -> bool:
    """Change a call, and make its turn due; return False if it or its turn does not wait any more."""
    if not lock_turn(connection, call.turn_id):
        return False
    changing = update(pending_calls).where(pending_calls.c.id == call.id, CALL_IS_UNDECIDED, CALL_IS_OPEN)
    # The message that asks about it has to say so, at once.
    return bool(connection.execute(changing.values({**values, "told_at": None, **set_due(now, now)})).rowcount)


def _find(connection: Connection, *which: Any) -> list[WaitingCall]:
    query = select(pending_calls).where(*which).order_by(pending_calls.c.id)
    return [_read(row) for row in connection.execute(query)]


def _read(row: Any) -> WaitingCall:
    is_known = row.author_platform is not None or row.author_name is not None or row.author_id is not None
    return WaitingCall(
        row.id,
        row.context_id,
        row.turn_id,
        row.step_id,
        row.call_index,
        row.call_id,
        row.tool,
        row.name,
        PendingKind(row.kind) if row.question is None else PendingKind.QUESTION,
        PendingStatus(row.status),
        row.is_open,
        row.transport,
        Author(row.author_platform, row.author_id, row.author_name) if is_known else None,
        row.delivery_id,
        row.created_at,
        row.expires_at,
        row.decided_at,
        row.decided_by,
        row.tool_digest,
        None if row.question is None else ToolQuestions.of_json(row.question),
        row.told_at,
    )


# The calls of an open step: started before they run, ended with their result
_STARTED = "started"
_ENDED = "ended"

_OF_STEP = tool_calls.c.step_id == bindparam("step")
_INSERT_STARTED = insert(tool_calls)
_UPDATE_STARTED = update(tool_calls).where(_OF_STEP, tool_calls.c.call_index == bindparam("index"))
_DELETE_STARTED = delete(tool_calls).where(_OF_STEP)


def write_started(connection: Connection, context_id: int, step_id: int, indices: Sequence[int]) -> None:
    """Take note that calls are about to run."""
    rows = [
        {"context_id": context_id, "step_id": step_id, "call_index": index, "status": _STARTED} for index in indices
    ]
    if rows:
        connection.execute(_INSERT_STARTED, rows)


def write_ended(connection: Connection, step_id: int, index: int, outcome: ToolOutcome) -> None:
    """Take note of a call's result."""
    values = {"step": step_id, "index": index, "status": _ENDED, "result": _write_outcome(outcome)}
    connection.execute(_UPDATE_STARTED, values)


def write_kept(connection: Connection, step_id: int, index: int, kept: Mapping[str, Any] | None) -> None:
    """Take note that a call has started, or is about to run again, and of what it needs to go on."""
    result = None if kept is None else dumps(encode(freeze(kept)))
    connection.execute(_UPDATE_STARTED, {"step": step_id, "index": index, "status": _STARTED, "result": result})


def has_started(connection: Connection, step_id: int) -> bool:
    """Return whether any call of a step was about to run."""
    started = select(tool_calls.c.call_index).where(tool_calls.c.step_id == step_id)
    return connection.execute(started).first() is not None


def delete_calls(connection: Connection, step_id: int) -> None:
    """Drop the calls of a step that is closed: it has their results."""
    connection.execute(_DELETE_STARTED, {"step": step_id})


def read_ended(connection: Connection, step_id: int) -> Mapping[int, ToolOutcome]:
    """Return the results of the calls that ended, by their place in the step."""
    query = select(tool_calls.c.call_index, tool_calls.c.result).where(
        tool_calls.c.step_id == step_id, tool_calls.c.status == _ENDED
    )
    return {row.call_index: _read_outcome(row.result) for row in connection.execute(query)}


def read_kept(connection: Connection, step_id: int) -> dict[int, Mapping[str, Any]]:
    """Return what calls that have not ended have kept, by their place in the step."""
    query = select(tool_calls.c.call_index, tool_calls.c.result).where(
        tool_calls.c.step_id == step_id, tool_calls.c.status == _STARTED, tool_calls.c.result.is_not(None)
    )
    return {row.call_index: decode(loads(row.result)) for row in connection.execute(query)}


def _write_outcome(outcome: ToolOutcome) -> str:
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
    return dumps(encode(freeze(fields)))


def _read_outcome(text: str) -> ToolOutcome:
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


def select_person_wait(turn_id: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the expression for how many microseconds a turn has waited for people.

    The calls with which it is suspended are asked about at once, and it goes on when the last of them is decided.
    """
    later = pending_calls.alias("later")
    ended, ended_later = pending_calls.c.decided_at, later.c.decided_at
    is_last = ~(
        select(later.c.id)
        .where(later.c.turn_id == turn_id, later.c.created_at == pending_calls.c.created_at, _is_of_person(later))
        .where(or_(ended_later > ended, (ended_later == ended) & (later.c.id > pending_calls.c.id)))
        .exists()
    )
    waited = type_coerce(ended, BigInteger) - type_coerce(pending_calls.c.created_at, BigInteger)
    is_decided = pending_calls.c.turn_id == turn_id, _is_of_person(pending_calls), ended.is_not(None)
    return select(func.coalesce(func.sum(waited), 0)).where(*is_decided, is_last).scalar_subquery()


def _is_of_person(calls: FromClause) -> ColumnElement[bool]:
    """Return the condition that a person is asked about a call."""
    return or_(calls.c.kind == PendingKind.APPROVAL.value, calls.c.question.is_not(None))
