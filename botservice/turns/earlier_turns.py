"""Questions with their answers, as they stand in the history: to be asked again."""

from dataclasses import dataclass, replace
from typing import Any

from botservice.core.messages import Message
from botservice.core.states import API, Outcome
from botservice.history.edit_queries import delete_rows
from botservice.history.queries import find_window
from botservice.history.rows import read_messages
from botservice.storage.database import Connection
from botservice.storage.message_references import written_text_of
from botservice.turns.delivery_queries import take_back
from botservice.turns.finding_queries import (
    find_last_asked,
    find_last_attempted,
    find_last_position,
    find_turn_of_answer,
    is_any_refused,
    list_answers,
    list_questions,
)
from botservice.turns.turn import error_id


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
    turn_id = find_last_asked(connection, context_id, before_turn, after)
    if turn_id is None:
        return None
    questions = read_messages(connection, context_id, list_questions(connection, context_id, turn_id))
    answers = list_answers(connection, context_id, turn_id)
    ids = [*(each.id for each in questions if each.id is not None), *answers]
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
    row = find_last_attempted(connection, context_id, before_turn)
    if row is None:
        return None
    fresh_from, *_ = find_window(connection, context_id, None)
    position = find_last_position(connection, context_id, row.id)
    if position is not None and position <= fresh_from:
        return None
    is_refused_since = is_any_refused(connection, context_id, row.id, before_turn)
    return _as_attempt(connection, context_id, row, is_refused_since=is_refused_since)


def find_attempt(connection: Connection, context_id: int, message_id: int) -> TurnAttempt | None:
    """Return what led to an answer, given by the number of its message; None if nothing of it is kept."""
    row = find_turn_of_answer(connection, context_id, message_id)
    return None if row is None else _as_attempt(connection, context_id, row, is_refused_since=False)


def _as_attempt(connection: Connection, context_id: int, row: Any, *, is_refused_since: bool) -> TurnAttempt:
    asked = list_questions(connection, context_id, row.id)
    read = read_messages(connection, context_id, asked)
    questions = tuple(
        replace(message, text=written_text_of(each), references=()) for message, each in zip(read, asked, strict=True)
    )
    return TurnAttempt(
        row.id, Outcome(row.outcome), questions, not questions and row.transport != API, is_refused_since
    )
