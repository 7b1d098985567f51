"""Which messages stand where a turn was stopped: the answer as far as it was written, or else the question."""

from typing import Final

from sqlalchemy import Connection, bindparam, func, literal, or_, select

from botservice.storage.tables.conversations import events, messages, turns
from botservice.turns.turn import Outcome

_MOST_LOOKED_AT: Final = 50  # turns, for a page that has not looked at any yet

_answers = messages.alias("answers")
_asks = messages.alias("asks")
_STOPPED: Final = turns.c.outcome == Outcome.STOPPED.value
_HAS_ANSWER: Final = select(_answers.c.id).where(_answers.c.answers_turn_id == turns.c.id).exists()

TURN_OF_MESSAGE: Final = func.coalesce(
    messages.c.answers_turn_id,
    select(events.c.turn_id).where(events.c.id == messages.c.event_id).correlate(messages).scalar_subquery(),
)
"""The one turn that a message may be about."""
IS_STOPPED: Final = (
    select(literal(1))
    .where(turns.c.id == TURN_OF_MESSAGE, _STOPPED, or_(messages.c.answers_turn_id.is_not(None), ~_HAS_ANSWER))
    .correlate(messages)
    .exists()
    .label("is_stopped")
)
"""Whether a message is such a one."""

_RECENT: Final = (
    select(turns.c.id)
    .where(turns.c.context_id == bindparam("context"), turns.c.id >= bindparam("from_turn"))
    .order_by(turns.c.id.desc())
    .limit(_MOST_LOOKED_AT)
)
_UNANSWERED: Final = (
    select(turns.c.id.label("turn_id"), func.max(_asks.c.id).label("message_id"))
    .join(events, events.c.id == _asks.c.event_id)
    .join(turns, turns.c.id == events.c.turn_id)
    .where(turns.c.id.in_(_RECENT), _STOPPED, ~_HAS_ANSWER)
    .group_by(turns.c.id)
    .order_by(turns.c.id)
)


def find_unanswered(connection: Connection, context_id: int, from_turn: int) -> dict[int, int]:
    """Return the questions by their turns that were stopped before the first word, of the newest turns from one on."""
    rows = connection.execute(_UNANSWERED, {"context": context_id, "from_turn": from_turn}).all()
    return {row.turn_id: row.message_id for row in rows}
