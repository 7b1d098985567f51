"""Questions with their answers, as they stand in the history: to be asked anew."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from botservice.history.rows import delete_rows, find_window, read_messages, select_messages
from botservice.messages import Message
from botservice.storage.tables.conversations import events, messages, turns
from botservice.turns.turn import Outcome

_LAST_TURN = (
    select(turns.c.id)
    .join(events, events.c.turn_id == turns.c.id)
    .join(messages, messages.c.event_id == events.c.id)
    .where(
        turns.c.context_id == bindparam("context"),
        turns.c.id < bindparam("before"),
        turns.c.outcome.in_([Outcome.ANSWERED.value, Outcome.STOPPED.value, Outcome.FAILED.value]),
        messages.c.position > bindparam("after"),
    )
    .order_by(turns.c.id.desc())
    .limit(1)
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
        """Take it out of the history."""
        delete_rows(connection, context_id, self.message_ids)


def find_last_exchange(connection: Connection, context_id: int, before_turn: int) -> Exchange | None:
    """Return what was last asked of the agent before a turn, in the conversation that goes on; None for nothing."""
    after, _ = find_window(connection, context_id, None)
    sought = {"context": context_id, "before": before_turn, "after": after}
    turn_id = connection.execute(_LAST_TURN, sought).scalar_one_or_none()
    if turn_id is None:
        return None
    of_turn = select(events.c.id).where(events.c.turn_id == turn_id)
    asked = select_messages(context_id).where(messages.c.event_id.in_(of_turn)).order_by(messages.c.position)
    questions = read_messages(connection, context_id, connection.execute(asked).all())
    answers = select(messages.c.id).where(messages.c.answers_turn_id == turn_id, messages.c.context_id == context_id)
    ids = [*(each.id for each in questions if each.id is not None), *connection.execute(answers).scalars()]
    return Exchange(turn_id, tuple(questions), tuple(ids))
