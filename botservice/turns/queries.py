"""Every statement that changes a turn: its beginning, steps, figures and end; and the conditions on when it is due."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Table,
    Text,
    Update,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    not_,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy.types import TypeEngine

from botservice.conversation.queries import delete_steps_of_turn
from botservice.core.errors import ClaimLost, TurnGrew
from botservice.core.states import Outcome, TurnStatus
from botservice.storage.database import Connection
from botservice.storage.statements import execute_each, of_each_database
from botservice.storage.tables.conditions import (
    TURN_IS_ANSWERED,
    TURN_IS_OPEN,
    TURN_IS_QUEUED,
    TURN_IS_RUNNING,
    TURN_IS_SET_ASIDE,
    TURN_IS_SUSPENDED,
    TURN_IS_UNFINISHED,
)
from botservice.storage.tables.conversations import events, messages, steps, turn_figures, turns
from botservice.turns.call_queries import select_person_wait
from botservice.turns.turn import AT_ONCE, Figures, Turn, set_due

IS_COMMAND: Final = and_(
    turns.c.outcome.is_not(None),  # or "not a command" would be unknown of what has not ended
    TURN_IS_ANSWERED,
    not_(exists().where(steps.c.turn_id == turns.c.id)),
    not_(exists().where(messages.c.answers_turn_id == turns.c.id)),
)
"""Whether a turn was for the service itself, such as /help: the agent took no step, and nothing was answered."""


def when_due_was_set(table: Table) -> ColumnElement[datetime]:
    """Return the column to select as due_set_at."""
    return _was_set(table).label("due_set_at")


def due_in(table: Table) -> ColumnElement[bool]:
    """Return the condition that something is due at its time, of the parameters of `due_by`: an index finds it."""
    is_past: ColumnElement[bool] = table.c.due_at <= bindparam("due_by")
    return is_past


def due_by_a_wrong_clock_in(table: Table) -> ColumnElement[bool]:
    """Return the condition that its time was set while the clock was ahead: whatever is open has to be looked at."""
    return _was_set(table) > bindparam("due_ahead")


def due_by(now: datetime) -> dict[str, datetime]:
    """Return the parameters of these conditions, which together are what `is_due` says of rows that are read."""
    return {"due_by": now, "due_ahead": now + AT_ONCE}


def _was_set(table: Table) -> ColumnElement[datetime]:
    return func.coalesce(table.c.due_set_at, table.c.created_at)


# Statements are made once: making one again for every call takes SQLAlchemy longer than running it.
_TURN = update(turns).where(turns.c.id == bindparam("turn"))
_UPDATE_TURN = _TURN.where(TURN_IS_UNFINISHED)
_REOPEN = _TURN.where(or_(TURN_IS_SUSPENDED, TURN_IS_SET_ASIDE)).values(outcome=None, error=None, finished_at=None)
_DROP_SET_ASIDE = _TURN.where(TURN_IS_SET_ASIDE).values(status=TurnStatus.DONE.value)
_COUNT_BEGINNING = _UPDATE_TURN.values(attempts=turns.c.attempts + 1)
_COUNT_FAILURE = _UPDATE_TURN.values(failures=turns.c.failures + 1)
_DEFER = _COUNT_BEGINNING.where(TURN_IS_QUEUED)
_BEGIN_FIRST = _COUNT_BEGINNING.where(
    TURN_IS_OPEN, turns.c.started_at.is_(None), turns.c.joined_events == bindparam("joined")
)
# Each step, failure and beginning of a turn changes one of these: they say whether it is still as it was read.
_BEGIN_AGAIN = _COUNT_BEGINNING.where(
    TURN_IS_RUNNING,
    turns.c.attempts == bindparam("began"),
    turns.c.failures == bindparam("failed"),
    turns.c.last_step_number.is_not_distinct_from(bindparam("last_step")),
)
_INSERT_TURN = insert(turns).returning(turns.c.id, sort_by_parameter_order=True)
_GROW_TURN = (
    update(turns)
    .where(TURN_IS_OPEN, turns.c.id == bindparam("turn"), turns.c.joined_events == bindparam("joined"))
    .values(joined_events=bindparam("joined") + bindparam("more"), attempts=0)
    .returning(turns.c.id)
)
_DROP_QUEUED = (
    delete(turns)
    .where(TURN_IS_QUEUED, turns.c.id == bindparam("turn"), turns.c.joined_events == bindparam("joined"))
    .returning(turns.c.id)
)
_MOVE_EVENTS = update(events).where(events.c.turn_id == bindparam("from_turn")).values(turn_id=bindparam("to_turn"))
_NAME_EVENTS = update(events).where(events.c.turn_id == bindparam("of_turn")).values(group_key=bindparam("name"))


def insert_turn(
    connection: Connection,
    context_id: int,
    transport: str,
    now: datetime,
    *,
    status: TurnStatus = TurnStatus.QUEUED,
    **columns: Any,
) -> int:
    """Store a turn and return its id (see `turn_row`)."""
    return insert_turns(connection, [turn_row(context_id, transport, now, status=status, **columns)])[0]


def insert_turns(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Store turns, whose rows have the same columns, and return their ids."""
    return list(connection.execute(_INSERT_TURN, rows).scalars()) if rows else []


def turn_row(
    context_id: int, transport: str, now: datetime, *, status: TurnStatus = TurnStatus.QUEUED, **columns: Any
) -> dict[str, Any]:
    """Return the row of a new turn; one that is running counts as begun now.

    Args:
        columns: What the row has besides: order_key, due_at, keeps_steps, system_prompt.
    """
    is_running = status is TurnStatus.RUNNING
    return {
        "context_id": context_id,
        "transport": transport,
        "status": status.value,
        "order_key": 0,
        "due_at": now,
        "created_at": now,
        "started_at": now if is_running else None,
        "attempts": int(is_running),
        "keeps_steps": False,
        **columns,
    }


def _change(connection: Connection, statement: Update, rows: Sequence[Mapping[str, Any]]) -> None:
    """Change turns, each of them on the statement's condition: what was read of one may be over.

    Raises:
        ClaimLost: one has gone on, has ended or was forgotten since it was read.
    """
    if rows and execute_each(connection, statement, rows).rowcount != len(rows):
        raise ClaimLost(f"turn {', '.join(str(each['turn']) for each in rows)} is not any more what was read")


def begin_again(connection: Connection, turn: Turn) -> None:
    """Count one more beginning of a running turn, which goes on from where it was read."""
    read = {"began": turn.attempts, "failed": turn.failures, "last_step": turn.last_step_number}
    _change(connection, _BEGIN_AGAIN, [{"turn": turn.id, **read}])


def begin_turns(connection: Connection, read: Sequence[tuple[int, int, str | None, datetime]]) -> None:
    """Mark turns running that begin for the first time.

    Args:
        read: Of each its id, how many events it had after the first, the digest of its system prompt, and the moment.

    Raises:
        TurnGrew: one has other messages now, has begun, or was dropped.
    """
    running = {"status": TurnStatus.RUNNING.value}
    rows = [
        {**running, "turn": turn_id, "joined": joined, "system_prompt": prompt, "started_at": now}
        for turn_id, joined, prompt, now in read
    ]
    if rows and execute_each(connection, _BEGIN_FIRST, rows).rowcount != len(rows):
        raise TurnGrew(f"turn {', '.join(str(turn_id) for turn_id, *_ in read)} is not any more what was read")


def defer_turn(connection: Connection, turn_id: int, until: datetime, now: datetime) -> None:
    """Put a turn off that has not begun: it waits for what else is said (see `Turn.is_deferred`)."""
    connection.execute(_DEFER, {"turn": turn_id, **set_due(until, now)})


def note_step(connection: Connection, turn_id: int, *, steps_taken: int, last_step_number: int) -> None:
    """Store that a turn got one step further, and count its beginnings and failures from zero again."""
    values = {"attempts": 1, "failures": 0, "steps_taken": steps_taken, "last_step_number": last_step_number}
    _change(connection, _UPDATE_TURN, [{"turn": turn_id, **values}])


def note_failure(connection: Connection, turn_id: int, *, last_step_number: int) -> None:
    """Store the number of a step that failed; it does not count as one that was taken."""
    _change(connection, _UPDATE_TURN, [{"turn": turn_id, "last_step_number": last_step_number}])


def finish_turn(
    connection: Connection,
    turn_id: int,
    now: datetime,
    outcome: Outcome,
    *,
    status: TurnStatus = TurnStatus.DONE,
    error: str | None = None,
) -> None:
    """End a turn."""
    finish_turns(connection, [(turn_id, now)], outcome, status=status, error=error)


def finish_turns(
    connection: Connection,
    ended: Sequence[tuple[int, datetime]],
    outcome: Outcome,
    *,
    status: TurnStatus = TurnStatus.DONE,
    error: str | None = None,
) -> None:
    """End turns, each at its moment.

    Raises:
        ClaimLost: one has ended, or was forgotten.
    """
    end = {"status": status.value, "outcome": outcome.value, "error": error}
    _change(connection, _UPDATE_TURN, [{"turn": turn_id, **end, "finished_at": now} for turn_id, now in ended])


def postpone_turn(
    connection: Connection,
    turn_id: int,
    now: datetime,
    *,
    delay: timedelta,
    error: str,
    status: TurnStatus = TurnStatus.RUNNING,
) -> None:
    """Put a turn that failed off until its next try; a running one holds up those after it."""
    values = {"turn": turn_id, "status": status.value, "error": error, **set_due(now + delay, now)}
    _change(connection, _COUNT_FAILURE, [values])


def suspend_turn(connection: Connection, turn_id: int, question_id: int | None) -> None:
    """Mark a turn as waiting.

    Args:
        question_id: The message that it answers.
    """
    values = {"turn": turn_id, "status": TurnStatus.WAITING.value, "question_id": question_id, "failures": 0}
    _change(connection, _UPDATE_TURN, [values])


def reopen_turn(connection: Connection, turn_id: int, now: datetime) -> None:
    """Set a turn running again that was set aside, or has waited."""
    values = {"turn": turn_id, "status": TurnStatus.RUNNING.value, "attempts": 1, "failures": 0, **set_due(now, now)}
    _change(connection, _REOPEN, [values])


def drop_set_aside(connection: Connection, turn_id: int, now: datetime) -> None:
    """End a turn that was set aside: nobody tries it again."""
    _change(connection, _DROP_SET_ASIDE, [{"turn": turn_id, "finished_at": now}])


def begin_anew(connection: Connection, turn_id: int, now: datetime) -> None:
    """Have a turn that was set aside begin as if it had never begun, without the steps that it has taken."""
    delete_steps_of_turn(connection, turn_id)
    values = {"turn": turn_id, "status": TurnStatus.QUEUED.value, "attempts": 0, "failures": 0, **set_due(now, now)}
    _change(connection, _REOPEN, [{**values, "started_at": None}])


def make_due(connection: Connection, turn_id: int, now: datetime) -> None:
    """Let a turn be worked on now."""
    _change(connection, _UPDATE_TURN, [{"turn": turn_id, **set_due(now, now)}])


def join_turns(connection: Connection, turn: Turn, parts: Sequence[Turn]) -> None:
    """Give a turn the events of queued ones, which are gone then.

    Raises:
        TurnGrew: one of them is not what was read any more.
    """
    more = sum(each.joined_events + 1 for each in parts)
    grown = connection.execute(_GROW_TURN, {"turn": turn.id, "joined": turn.joined_events, "more": more})
    if grown.one_or_none() is None:
        raise TurnGrew(f"turn {turn.id} is not any more what was read")
    for each in parts:
        connection.execute(_MOVE_EVENTS, {"from_turn": each.id, "to_turn": turn.id})
        dropped = connection.execute(_DROP_QUEUED, {"turn": each.id, "joined": each.joined_events})
        if dropped.one_or_none() is None:
            raise TurnGrew(f"turn {each.id} is not any more what was read")
    connection.execute(_NAME_EVENTS, {"of_turn": turn.id, "name": _name_of([turn, *parts])})


def _name_of(joined: Sequence[Turn]) -> str:
    """Return what the parts of one question are called: the platform's name for an album, if all are of one."""
    members = [event for each in joined for event in each.events]
    names = {event.group_key for event in members}
    name = names.pop() if len(names) == 1 else None
    return name or f"together:{min(event.id for event in members)}"


_LOCK_TURNS = (
    select(turns.c.id)
    .where(turns.c.id.in_(bindparam("turns", expanding=True)))
    .with_for_update(read=True, key_share=True)
)


def lock_turns(connection: Connection, turn_ids: Collection[int]) -> Sequence[int]:
    """Return which of some turns there are, locked: forgetting one waits, since the turn goes before what it wrote."""
    return connection.execute(_LOCK_TURNS, {"turns": list(turn_ids)}).scalars().all() if turn_ids else ()


_LAST_OPEN = select(func.max(turns.c.order_key)).where(TURN_IS_OPEN, turns.c.context_id == bindparam("context"))


def place_in_line(connection: Connection, context_id: int) -> int:
    """Return an order key behind everything that waits in a context, and before what is asked later."""
    return connection.execute(_LAST_OPEN, {"context": context_id}).scalar_one() or 0


# The figures of a turn: what its calls of models took

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SUMS = ("calls", "failed_calls", "input_tokens", "output_tokens", "cached_tokens", "cost", "model_ms")
_TYPES: dict[str, TypeEngine[Any]] = {"model": Text(), "tools": Text(), "first_token_ms": Integer()}
_COLUMNS = (*_SUMS, *_TYPES)


@of_each_database
def _add_figures(insert: Callable[..., Any]) -> Any:
    given = [bindparam(name, type_=_TYPES.get(name, BigInteger())).label(name) for name in _COLUMNS]
    # Nothing is added to a turn that was forgotten meanwhile.
    lasted = bindparam("now", type_=BigInteger()) - type_coerce(turns.c.created_at, BigInteger)
    lasted = (lasted - select_person_wait(turns.c.id)) // 1_000
    of_turn = select(turns.c.id, *given, lasted.label("lasted_ms")).where(turns.c.id == bindparam("turn"))
    new = insert(turn_figures).from_select(["turn_id", *_COLUMNS, "lasted_ms"], of_turn)
    changed: dict[str, Any] = {name: turn_figures.c[name] + new.excluded[name] for name in _SUMS}
    mine, theirs = turn_figures.c, new.excluded
    changed["first_token_ms"] = func.coalesce(mine.first_token_ms, theirs.first_token_ms)
    # The first that answered; as long as none did, the one that was asked.
    changed["model"] = case((mine.calls == 0, theirs.model), else_=mine.model)
    changed["tools"] = turn_figures.c.tools + new.excluded.tools
    changed["lasted_ms"] = new.excluded.lasted_ms
    return new.on_conflict_do_update(index_elements=["turn_id"], set_=changed)


def add_figures(connection: Connection, given: Sequence[tuple[int, Figures, datetime]]) -> None:
    """Add to the figures of turns, each of which has worked until a moment; nothing happens where it was forgotten."""
    rows = [
        {
            **{name: getattr(figures, name) for name in _COLUMNS},
            "tools": "".join(f" {name} " for name in figures.tools),
            "turn": turn_id,
            "now": (now - _EPOCH) // _MICROSECOND,
        }
        for turn_id, figures, now in given
    ]
    if rows:
        execute_each(connection, _add_figures(connection), rows)
