"""Reading everything that a context holds at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, exists, select

from botservice.conversation.prompt_log import PromptLog, read_prompt_log
from botservice.conversation.step_records import (
    LAST_POSITION,
    StoredStep,
    find_last_position,
    find_next_position,
    read_steps,
)
from botservice.conversation.steps import TaskStep
from botservice.core.errors import StorageError
from botservice.core.messages import Author, Message
from botservice.history.queries import LAST_OF_A_PERSON, find_message
from botservice.history.rows import read_messages
from botservice.storage.blobs import read_blobs
from botservice.storage.database import Connection
from botservice.storage.tables.conditions import CALL_IS_OPEN, TURN_IS_OPEN, TURN_IS_RUNNING
from botservice.storage.tables.conversations import contexts, turns
from botservice.storage.tables.waiting import pending_calls

# Statements are made once: making one anew for every call takes SQLAlchemy longer than running it.
_OF_TURN = select(turns.c.steps_taken, turns.c.question_id).where(turns.c.id == bindparam("turn"))
_ASKED_BY = (
    select(pending_calls.c.author_platform, pending_calls.c.author_id, pending_calls.c.author_name)
    .where(pending_calls.c.turn_id == bindparam("turn"))
    .order_by(pending_calls.c.id)
    .limit(1)
)
_MOST_ID = 2**63 - 1
_TURNS_AT_ONCE = 64
_STEPS_BETWEEN = 2**20  # that find room between two neighbours, one after the other
# Not "equal", and ordered by both: Postgres would go through the turns of all contexts for the newest of one.
_IN_CONTEXT = turns.c.context_id.between(bindparam("context"), bindparam("context"))
_NEWEST_FIRST = (turns.c.context_id.desc(), turns.c.id.desc())
_NEWEST_TURNS = (
    select(turns.c.id, turns.c.keeps_steps)
    .where(_IN_CONTEXT, turns.c.started_at.is_not(None), turns.c.id < bindparam("before"))
    .order_by(*_NEWEST_FIRST)
    .limit(bindparam("most"))
)
_LAST_STEP_NUMBER = (
    select(turns.c.last_step_number)
    .where(_IN_CONTEXT, turns.c.last_step_number.is_not(None))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_STATE = select(
    contexts.c.context_keys,
    contexts.c.metadata,
    _LAST_STEP_NUMBER.scalar_subquery().label("last_step_number"),
    LAST_POSITION.scalar_subquery().label("last_position"),
    exists().where(CALL_IS_OPEN, pending_calls.c.context_id == bindparam("context")).label("has_open_calls"),
    exists().where(TURN_IS_OPEN, TURN_IS_RUNNING, turns.c.context_id == bindparam("context")).label("has_running_turn"),
).where(contexts.c.id == bindparam("context"))


@dataclass(frozen=True, slots=True)
class _OfTurn:
    """What is known of a turn.

    Attributes:
        question: What it answers, where others may have been asked since.
        stride: How far from each other its new steps stand: other turns' may follow, where it has waited.
        asked_by: On whose behalf it has waited.
    """

    steps_taken: int = 0
    question: Message | None = None
    stride: float = 1.0
    has_waited: bool = False
    asked_by: Author | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a context holds at one moment.

    Attributes:
        knows_last_message: Whether last_user_message was looked for.
    """

    context_keys: Mapping[str, str]
    metadata: dict[str, Any]
    last_user_message: Message | None
    turn_id: int | None
    system_prompt: str
    steps: list[StoredStep]
    logs: dict[int, PromptLog]
    floor: float
    steps_taken: int
    last_step_number: int
    has_open_calls: bool
    has_running_turn: bool
    stride: float = 1.0
    asked_by: Author | None = None
    knows_last_message: bool = True


def read_snapshot(
    connection: Connection,
    context_id: int,
    turn_id: int | None = None,
    *,
    with_steps: bool = True,
    with_last_message: bool = True,
) -> Snapshot:
    """Return what a context holds, with the steps in view of a turn, of the newest by default.

    Args:
        with_last_message: Whether to look for a person's last message, which is the one that the steps answer.
    """
    state, last_user_message = _read_state(connection, context_id, with_last_message=with_last_message)
    in_view = turns_in_view(connection, context_id, turn_id) if with_steps else []
    logs: dict[int, PromptLog] = {}
    stored = read_steps(connection, context_id, turn_ids=in_view, logs=logs) if in_view else []
    current = in_view[0] if in_view else None
    if current is not None and current not in logs:
        logs[current] = read_prompt_log(connection, context_id, current)
    floor = state.last_position or 0.0
    if in_view:
        floor = find_last_position(connection, context_id, without_turns=in_view)
    of_turn = _OfTurn() if current is None else _read_turn(connection, context_id, current, stored)
    if turn_id is not None and of_turn.has_waited:
        last_user_message = of_turn.question
    return Snapshot(
        state.context_keys,
        state.metadata,
        last_user_message,
        current,
        read_system_prompt(connection, context_id, current) if in_view else "",
        stored,
        logs,
        floor,
        of_turn.steps_taken,
        state.last_step_number or 0,
        state.has_open_calls,
        state.has_running_turn,
        of_turn.stride,
        of_turn.asked_by if turn_id is not None else None,
        with_last_message,
    )


def _read_state(connection: Connection, context_id: int, *, with_last_message: bool) -> tuple[Any, Message | None]:
    """Return the row of a context's state, and a person's last message there, if it is to be looked for."""
    found = connection.execute(_STATE, {"context": context_id})
    last_of_a_person = connection.execute(LAST_OF_A_PERSON, {"context": context_id}) if with_last_message else None
    state = found.one_or_none()
    if state is None:
        known = f"there is no context {context_id}"
        raise StorageError(f"{known}; where it was deleted: get it anew with AgentContext.get_or_create")
    rows = [] if last_of_a_person is None else last_of_a_person.all()  # it has travelled with the other
    last = next(iter(read_messages(connection, context_id, rows)), None) if rows else None
    return state, last


def find_task(stored: list[StoredStep], turn_id: int | None) -> TaskStep | None:
    """Return the task that a turn began with: the first that was stored; others were put in later."""
    own = [each for each in stored if each.turn_id == turn_id and isinstance(each.item, TaskStep)]
    first = min(own, key=lambda each: each.row_id, default=None)
    return first.item if first is not None and isinstance(first.item, TaskStep) else None


def _read_turn(connection: Connection, context_id: int, turn_id: int, stored: list[StoredStep]) -> _OfTurn:
    row = connection.execute(_OF_TURN, {"turn": turn_id}).one_or_none()
    if row is None or row.question_id is None:
        return _OfTurn(0 if row is None else row.steps_taken)
    question = find_message(connection, context_id, row.question_id)
    last = max((each.position for each in stored if each.turn_id == turn_id), default=None)
    following = None if last is None else find_next_position(connection, context_id, last)
    is_last = last is None or following is None
    stride = 1.0 if is_last else (following - last) / _STEPS_BETWEEN  # type: ignore[operator]  # both are there
    of_calls = connection.execute(_ASKED_BY, {"turn": turn_id}).one_or_none()
    asked_by = None if of_calls is None else Author(*of_calls)
    return _OfTurn(row.steps_taken, question, stride, has_waited=True, asked_by=asked_by)


def turns_in_view(connection: Connection, context_id: int, turn_id: int | None = None) -> list[int]:
    """Return the turns whose steps are in view, the newest first: back to the last one that began anew."""
    in_view: list[int] = []
    sought = {"context": context_id, "before": _MOST_ID if turn_id is None else turn_id + 1, "most": 1}
    while rows := connection.execute(_NEWEST_TURNS, sought).all():  # nearly always one round: most begin again
        for row in rows:
            in_view.append(row.id)
            if not row.keeps_steps:
                return in_view
        sought |= {"before": in_view[-1], "most": _TURNS_AT_ONCE}
    return in_view


def read_system_prompt(connection: Connection, context_id: int, turn_id: int | None = None) -> str:
    """Return the system prompt of a turn, of the newest one by default; an empty text if none is stored."""
    query = (
        select(turns.c.system_prompt)
        .where(_IN_CONTEXT, turns.c.system_prompt.is_not(None))
        .order_by(*_NEWEST_FIRST)
        .limit(1)
    )
    if turn_id is not None:
        query = query.where(turns.c.id == turn_id)
    digest = connection.execute(query, {"context": context_id}).scalar_one_or_none()
    if digest is None:
        return ""
    return read_blobs(connection, context_id, [digest]).get(digest, b"").decode()
