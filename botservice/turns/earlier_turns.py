"""Questions with their answers, as they stand in the history: to be asked again."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Select, bindparam, exists, func, or_, select

from botservice.core.messages import Message
from botservice.core.states import API, Outcome
from botservice.history.edit_queries import delete_rows
from botservice.history.queries import find_window, select_messages
from botservice.history.rows import read_messages
from botservice.people.names import HOOKS
from botservice.storage.database import Connection
from botservice.storage.message_references import written_text_of
from botservice.storage.tables.conversations import events, messages, steps, turns
from botservice.turns.delivery_queries import take_back
from botservice.turns.turn import error_id

_ATTEMPTED = (Outcome.ANSWERED.value, Outcome.STOPPED.value, Outcome.FAILED.value)
_LAST_TURN = (
    select(turns.c.id)
    .join(events, events.c.turn_id == turns.c.id)
    .join(messages, messages.c.event_id == events.c.id)
    .where(
        turns.c.context_id == bindparam("context"),
        turns.c.id < bindparam("before"),
        turns.c.transport.not_like(f"{HOOKS}%"),  # no person asked that
        turns.c.outcome.in_([*_ATTEMPTED, Outcome.REFUSED.value]),  # by a budget: what people say is not kept otherwise
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
        turns.c.outcome.in_(_ATTEMPTED),
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
        turns.c.outcome == Outcome.REFUSED.value,
    )
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was asked in one turn, and what was answered.

    Attributes:
        questions: Oldest first; more than one where messages shared the turn.
        message_ids: Those of the questions and of the answer.
    """

    turn_id: int
    questions: tuple[Message, ...]
    message_ids: tuple[int, ...]

    def delete(self, connection: Connection, context_id: int) -> None:
        """Take it out of the history, with what was told of it."""
        delete_rows(connection, context_id, self.message_ids)
        take_back(connection, self.turn_id)


def find_last_exchange(connection: Connection, context_id: int, before_turn: int) -> Exchange | None:
    """Return what was last asked of the agent before a turn, in the conversation that goes on; None for nothing."""
    after, *_ = find_window(connection, context_id, None)
    sought = {"context": context_id, "before": before_turn, "after": after}
    turn_id = connection.execute(_LAST_TURN, sought).scalar_one_or_none()
    if turn_id is None:
        return None
    questions = _questions_of(connection, context_id, turn_id)
    answers = select(messages.c.id).where(messages.c.answers_turn_id == turn_id, messages.c.context_id == context_id)
    ids = [*(each.id for each in questions if each.id is not None), *connection.execute(answers).scalars()]
    return Exchange(turn_id, tuple(questions), tuple(ids))


@dataclass(frozen=True, slots=True)
class TurnAttempt:
    """What the agent did in one turn, or a reminder said, however that ended.

    Attributes:
        questions: Oldest first, as people wrote them, without the contents of files; none if no message asked, as for
            a reminder, or where they are forgotten.
        is_reminder: Whether nobody asked just then: it was due.
        is_refused_since: Whether a question was refused since.
    """

    turn_id: int
    outcome: Outcome
    questions: tuple[Message, ...]
    is_reminder: bool
    is_refused_since: bool

    @property
    def error_id(self) -> str:
        """What a person is told to ask about."""
        return error_id(self.turn_id)


def find_last_attempt(connection: Connection, context_id: int, before_turn: int) -> TurnAttempt | None:
    """Return what was last attempted in the conversation that goes on, before a turn; None if nothing is kept."""
    sought = {"context": context_id, "before": before_turn}
    row = connection.execute(_LAST_ATTEMPT, sought).one_or_none()
    if row is None:
        return None
    fresh_from, *_ = find_window(connection, context_id, None)
    position = connection.execute(_LAST_POSITION, {"context": context_id, "turn": row.id}).scalar_one()
    if position is not None and position <= fresh_from:
        return None
    is_refused_since = bool(connection.execute(_REFUSED_SINCE, {**sought, "after": row.id}).scalar_one())
    return _as_attempt(connection, context_id, row, is_refused_since=is_refused_since)


def find_attempt(connection: Connection, context_id: int, message_id: int) -> TurnAttempt | None:
    """Return what led to an answer, given by the number of its message; None if nothing of it is kept."""
    row = connection.execute(_OF_ANSWER, {"context": context_id, "message": message_id}).one_or_none()
    return None if row is None else _as_attempt(connection, context_id, row, is_refused_since=False)


def _as_attempt(connection: Connection, context_id: int, row: Any, *, is_refused_since: bool) -> TurnAttempt:
    asked = connection.execute(_asked_in(context_id, row.id).add_columns(messages.c.own_text)).all()
    read = read_messages(connection, context_id, asked)
    questions = tuple(
        replace(message, text=written_text_of(each), references=()) for message, each in zip(read, asked, strict=True)
    )
    return TurnAttempt(
        row.id, Outcome(row.outcome), questions, not questions and row.transport != API, is_refused_since
    )


def _questions_of(connection: Connection, context_id: int, turn_id: int) -> list[Message]:
    return read_messages(connection, context_id, connection.execute(_asked_in(context_id, turn_id)).all())


def _asked_in(context_id: int, turn_id: int) -> Select[Any]:
    of_turn = select(events.c.id).where(events.c.turn_id == turn_id)
    return select_messages(context_id).where(messages.c.event_id.in_(of_turn)).order_by(messages.c.position)
