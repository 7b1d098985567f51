"""Every statement that finds turns of one conversation: the next one, one by its id, earlier ones, what they answer."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, exists, func, or_, select

from botservice.core.errors import StorageError
from botservice.core.states import Outcome, TurnStatus
from botservice.history.queries import select_messages
from botservice.people.names import HOOKS
from botservice.storage.database import Connection, Storage
from botservice.storage.statements import is_of
from botservice.storage.tables.conditions import (
    CALL_IS_OPEN,
    DELIVERY_IS_OWED,
    EVENT_IS_MESSAGE,
    EVENT_IS_UNHANDLED,
    TURN_HAS_FAILED,
    TURN_IS_OPEN,
    TURN_IS_QUEUED,
    TURN_IS_REFUSED,
    TURN_IS_RUNNING,
    TURN_IS_SET_ASIDE,
    is_one_of,
)
from botservice.storage.tables.conversations import deliveries, events, messages, steps, turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.queries import when_due_was_set
from botservice.turns.turn import StoredEvent, Turn

_TURNS = select(
    turns.c.id,
    turns.c.context_id,
    turns.c.status,
    turns.c.transport,
    turns.c.attempts,
    turns.c.due_at,
    turns.c.keeps_steps,
    turns.c.order_key,
    turns.c.started_at,
    turns.c.joined_events,
    turns.c.failures,
    turns.c.created_at,
    turns.c.last_step_number,
    when_due_was_set(turns),
).where(turns.c.context_id == bindparam("context"))
# In the order of the index of open turns: by their ids, SQLite goes through all the turns of a chat.
_RUNNING_TURN = _TURNS.where(TURN_IS_OPEN, TURN_IS_RUNNING).order_by(turns.c.order_key, turns.c.id).limit(1)
_next = (
    _TURNS.add_columns(func.count().over().label("number"))
    .where(TURN_IS_OPEN, or_(TURN_IS_RUNNING, turns.c.transport.in_(bindparam("transports", expanding=True))))
    .order_by(turns.c.status.desc(), turns.c.order_key, turns.c.id)  # running comes after queued in the alphabet
    .limit(1)
    .subquery("next")
)
_EVENT = [column.label(f"event_{column.name}") for column in events.c["id", "key", "raw", "received_at", "group_key"]]
_NEXT_TURN = (
    select(_next, *_EVENT)
    .outerjoin_from(_next, events, events.c.turn_id == _next.c.id)
    .order_by(events.c.order_key, events.c.id)
)
_QUEUED_TURNS = (
    _TURNS.where(TURN_IS_OPEN, TURN_IS_QUEUED, turns.c.transport == bindparam("transport"))
    .where(turns.c.id != bindparam("but"))
    .order_by(turns.c.order_key, turns.c.id)
    .limit(50)
)
_TURN = _TURNS.where(turns.c.id == bindparam("turn"))
_NEWEST_TURN = _TURNS.where(turns.c.started_at.is_not(None)).order_by(turns.c.id.desc()).limit(1)
_EVENTS_OF_TURN = select(*_EVENT).where(events.c.turn_id == bindparam("turn")).order_by(events.c.order_key, events.c.id)
_NEWEST_MESSAGES = (
    select(*_EVENT, events.c.transport)
    .where(events.c.context_id == bindparam("context"), EVENT_IS_MESSAGE, events.c.raw.is_not(None))
    .order_by(events.c.id.desc())
)
_CONTEXT: Any = bindparam("context")
_OWES = select(deliveries.c.id).where(DELIVERY_IS_OWED, is_of(deliveries, _CONTEXT))
_CONTROL = select(events.c.id).where(EVENT_IS_UNHANDLED, events.c.context_id == _CONTEXT)
_OPEN_TURN = select(turns.c.id).where(TURN_IS_OPEN, turns.c.context_id == _CONTEXT)
_OPEN_CALL = select(pending_calls.c.id).where(CALL_IS_OPEN, is_of(pending_calls, _CONTEXT))
_LOOK = select(
    _OWES.limit(1).scalar_subquery().label("owes"),
    _CONTROL.limit(1).scalar_subquery().label("control"),
    _OPEN_TURN.limit(1).scalar_subquery().label("turn"),
    _OPEN_CALL.limit(1).scalar_subquery().label("waiting"),
)


def find_running_turn(connection: Connection, context_id: int) -> Turn | None:
    """Return the running turn of a context, or None."""
    row = connection.execute(_RUNNING_TURN, {"context": context_id}).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_turn(connection: Connection, context_id: int, turn_id: int) -> Turn | None:
    """Return a turn of a context."""
    row = connection.execute(_TURN, {"context": context_id, "turn": turn_id}).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_next_turn(connection: Connection, context_id: int, transports: Collection[str]) -> Turn | None:
    """Return the turn of a context to work on next: the one that has begun, else the first in the platform's order.

    It may be due a moment later, while the parts of a message gather: those after it wait for that.
    """
    sought = {"context": context_id, "transports": list(transports)}
    rows = connection.execute(_NEXT_TURN, sought).all()
    if not rows:
        return None
    turn = _as_turn(rows[0], [row for row in rows if row.event_id is not None])
    return replace(turn, is_alone=rows[0].number == 1)


def find_queued_turns(connection: Connection, context_id: int, transport: str, *, but: int) -> Iterator[Turn]:
    """Yield the turns of a context that have not begun, except one, in the platform's order."""
    rows = connection.execute(_QUEUED_TURNS, {"context": context_id, "transport": transport, "but": but}).all()
    return (_read_turn(connection, row) for row in rows)


def find_failed_turn(connection: Connection, context_id: int, transport: str) -> Turn | None:
    """Return the newest turn of a context if it was set aside, else None."""
    row = connection.execute(_NEWEST_TURN, {"context": context_id}).one_or_none()
    if row is None or row.status != TurnStatus.SET_ASIDE.value or row.transport != transport:
        return None
    return _read_turn(connection, row)


def find_newest_messages(connection: Connection, context_id: int, most: int) -> list[tuple[str, StoredEvent]]:
    """Find the newest messages that people wrote in a context, as they came, each with its transport."""
    found = connection.execute(_NEWEST_MESSAGES.limit(most), {"context": context_id}).all()
    return [(each.transport, _read_event(each)) for each in found]


def _read_event(row: Any) -> StoredEvent:
    return StoredEvent(row.event_id, row.event_key, row.event_raw or b"", row.event_received_at, row.event_group_key)


def _read_turn(connection: Connection, row: Any) -> Turn:
    return _as_turn(row, connection.execute(_EVENTS_OF_TURN, {"turn": row.id}).all())


def _as_turn(row: Any, found: Sequence[Any]) -> Turn:
    return Turn(
        row.id,
        row.context_id,
        TurnStatus(row.status),
        row.transport,
        row.attempts,
        row.due_at,
        row.keeps_steps,
        row.order_key,
        row.started_at is not None,
        tuple(map(_read_event, found)),
        row.joined_events,
        row.due_set_at,
        row.failures,
        row.created_at,
        last_step_number=row.last_step_number,
    )


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
        query = query.where(or_(TURN_HAS_FAILED, TURN_IS_SET_ASIDE))

    def read(connection: Connection) -> tuple[int, int] | None:
        row = connection.execute(query).one_or_none()
        return None if row is None else (row.context_id, row.id)

    found = await storage.read(read, is_long=True)
    if found is None:
        where = "" if context_id is None else f" in context {context_id}"
        raise StorageError(f"no turn has failed{where}" if is_failed else f"there is no turn{where}")
    return found


def find_kinds_of_work(connection: Connection, context_id: int) -> Any:
    """Return what there is to do in a context at all, in one look; most have one thing, which is read then.

    Returns:
        A row with `owes` (a delivery), `control`, `turn` and `waiting` (a call), each an id or None.
    """
    return connection.execute(_LOOK, {"context": context_id}).one()


# Earlier turns of a conversation, and what they answer

_ATTEMPTED = (Outcome.ANSWERED, Outcome.STOPPED, Outcome.FAILED)
_LAST_ASKED = (
    select(turns.c.id)
    .join(events, events.c.turn_id == turns.c.id)
    .join(messages, messages.c.event_id == events.c.id)
    .where(
        turns.c.context_id == bindparam("context"),
        turns.c.id < bindparam("before"),
        turns.c.transport.not_like(f"{HOOKS}%"),  # no person asked that
        is_one_of("turns.outcome", *_ATTEMPTED, Outcome.REFUSED),  # by a budget: what people say is not kept otherwise
        messages.c.position > bindparam("after"),
    )
    .order_by(turns.c.id.desc())
    .limit(1)
)

# What the agent, or a reminder, did last: commands alone take no steps.
_LAST_ATTEMPT = (
    select(turns.c.id, turns.c.outcome, turns.c.transport)
    .where(
        turns.c.context_id == bindparam("context"),
        turns.c.id < bindparam("before"),
        is_one_of("turns.outcome", *_ATTEMPTED),
        exists().where(steps.c.turn_id == turns.c.id),
    )
    .order_by(turns.c.id.desc())
    .limit(1)
)
_OF_ANSWER = (
    select(turns.c.id, turns.c.outcome, turns.c.transport)
    .join(messages, messages.c.answers_turn_id == turns.c.id)
    .where(
        turns.c.context_id == bindparam("context"), messages.c.id == bindparam("message"), turns.c.outcome.is_not(None)
    )
)
_IS_OF_TURN = or_(
    messages.c.answers_turn_id == bindparam("turn"),
    messages.c.event_id.in_(select(events.c.id).where(events.c.turn_id == bindparam("turn"))),
)
_LAST_POSITION = select(func.max(messages.c.position)).where(messages.c.context_id == bindparam("context"), _IS_OF_TURN)
_REFUSED_SINCE = select(
    exists().where(
        turns.c.context_id == bindparam("context"),
        turns.c.id > bindparam("after"),
        turns.c.id < bindparam("before"),
        TURN_IS_REFUSED,
    )
)
_LATER = (
    select(turns.c.id)
    .where(
        turns.c.context_id == bindparam("context"),
        turns.c.id != bindparam("turn"),
        turns.c.started_at > bindparam("started_at"),
    )
    .limit(1)
)
_ASKED = (
    select(messages.c.id).join(events, events.c.id == messages.c.event_id).where(events.c.turn_id == bindparam("turn"))
)
_ANY_EVENT = select(events.c.id).where(events.c.turn_id == bindparam("turn")).limit(1)


def find_locked(connection: Connection, turn_id: int) -> Any | None:
    """Return the row of a turn, locked: of this and a process that begins the turn now, one waits for the other."""
    return connection.execute(select(turns).where(turns.c.id == turn_id).with_for_update()).one_or_none()


def has_gone_on(connection: Connection, context_id: int, turn_id: int, started_at: datetime) -> bool:
    """Return whether another turn of a context has begun since one did."""
    sought = {"context": context_id, "turn": turn_id, "started_at": started_at}
    return connection.execute(_LATER, sought).first() is not None


def is_asked(connection: Connection, turn_id: int) -> bool:
    """Return whether there are events which a turn answers."""
    return connection.execute(_ANY_EVENT, {"turn": turn_id}).first() is not None


def list_asked(connection: Connection, turn_id: int) -> list[int]:
    """Return the messages of the history which a turn answers."""
    return list(connection.execute(_ASKED, {"turn": turn_id}).scalars())


def list_questions(connection: Connection, context_id: int, turn_id: int) -> Sequence[Any]:
    """Return the rows of the messages which a turn answers, oldest first; what was written there as `own_text`."""
    of_turn = select(events.c.id).where(events.c.turn_id == turn_id)
    query = select_messages(context_id).add_columns(messages.c.own_text).where(messages.c.event_id.in_(of_turn))
    return connection.execute(query.order_by(messages.c.position)).all()


def list_answers(connection: Connection, context_id: int, turn_id: int) -> list[int]:
    """Return the messages that answer in a turn."""
    answers = select(messages.c.id).where(messages.c.answers_turn_id == turn_id, messages.c.context_id == context_id)
    return list(connection.execute(answers).scalars())


def find_last_asked(connection: Connection, context_id: int, before_turn: int, after: int) -> int | None:
    """Return the last turn of a context before one in which a person asked the agent something.

    Args:
        after: The position in the history behind which the question stands.
    """
    sought = {"context": context_id, "before": before_turn, "after": after}
    found: int | None = connection.execute(_LAST_ASKED, sought).scalar_one_or_none()
    return found


def find_last_attempted(connection: Connection, context_id: int, before_turn: int) -> Any | None:
    """Return the id, outcome and transport of the last turn of a context before one in which the agent took a step."""
    return connection.execute(_LAST_ATTEMPT, {"context": context_id, "before": before_turn}).one_or_none()


def find_turn_of_answer(connection: Connection, context_id: int, message_id: int) -> Any | None:
    """Return the id, outcome and transport of the ended turn that a message answers."""
    return connection.execute(_OF_ANSWER, {"context": context_id, "message": message_id}).one_or_none()


def find_last_position(connection: Connection, context_id: int, turn_id: int) -> int | None:
    """Return the position of the last message of a turn in the history; None if none is kept."""
    found: int | None = connection.execute(_LAST_POSITION, {"context": context_id, "turn": turn_id}).scalar_one()
    return found


def is_any_refused(connection: Connection, context_id: int, after_turn: int, before_turn: int) -> bool:
    """Return whether a question between two turns of a context was refused."""
    sought = {"context": context_id, "after": after_turn, "before": before_turn}
    return bool(connection.execute(_REFUSED_SINCE, sought).scalar_one())
