"""Every statement of decisions about messages that did not address the bot."""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import bindparam, func, select, update

from botservice.storage.database import Connection
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conditions import TURN_IS_OPEN, TURN_IS_QUEUED
from botservice.storage.tables.conversations import turns
from botservice.storage.tables.people import gate_decisions

_HOUR: Final = timedelta(hours=1)
_MINUTE: Final = timedelta(minutes=1)
_MOST_TRIES: Final = 2  # after a kill, a model is asked once more
_MOST_A_MINUTE: Final = 20  # decisions in a chat, with all of its threads: in one alone, there is no time for more
_YES_PER_ANSWER: Final = 3  # an agent that has nothing to say after a yes costs as much as one that has


class GateDecision(StrEnum):
    """What was decided about messages that did not address the bot."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"  # the model said something else than yes or no
    FAILED = "failed"  # the model did not answer, or its process ended twice
    OVER_BUDGET = "over_budget"
    LIMIT = "limit"  # there were enough unasked answers within the hour, or decisions within the minute
    SILENCED = "silenced"  # it was yes, and meanwhile a person said more, paused it, turned this off or lost access
    DECLINED = "declined"  # it was yes, and then the agent had nothing to say


_DECISION = select(gate_decisions.c.decision).where(gate_decisions.c.turn_id == bindparam("turn"))
_COUNT = (
    select(func.count())
    .select_from(gate_decisions)
    .where(gate_decisions.c.chat == bindparam("chat"), gate_decisions.c.decided_at > bindparam("after"))
)
_COUNT_OF = _COUNT.where(gate_decisions.c.decision.in_(bindparam("decisions", expanding=True)))
_COUNT_ASKED = _COUNT.where(gate_decisions.c.decision.is_distinct_from(GateDecision.LIMIT.value))
_WAITING_AFTER = select(turns.c.id).where(
    TURN_IS_OPEN, TURN_IS_QUEUED, turns.c.context_id == bindparam("context"), turns.c.id != bindparam("turn")
)
_DECIDE = update(gate_decisions).where(gate_decisions.c.turn_id == bindparam("turn"))


@of_each_database
def _try(insert: Callable[..., Any]) -> Any:
    new = insert(gate_decisions).on_conflict_do_update(
        index_elements=["turn_id"], set_={"tries": gate_decisions.c.tries + 1}
    )
    return new.returning(gate_decisions.c.tries)


def read_decision(connection: Connection, turn_id: int) -> GateDecision | None:
    """Return what was decided about the messages of a turn; None for nothing yet."""
    found = connection.execute(_DECISION, {"turn": turn_id}).scalar_one_or_none()
    return None if found is None else GateDecision(found)


def count_unasked(connection: Connection, chat: str, now: datetime) -> int:
    """Return how many unasked answers a chat was given within the hour."""
    return _count(connection, chat, now, GateDecision.YES)


def is_at_limit(connection: Connection, chat: str, now: datetime, *, per_hour: int) -> bool:
    """Return whether a chat got all of its unasked answers within the hour, or cost too much without getting any."""
    most = per_hour * _YES_PER_ANSWER
    return (
        count_unasked(connection, chat, now) >= per_hour
        or _count(connection, chat, now, GateDecision.YES, GateDecision.DECLINED) >= most
    )


def _count(connection: Connection, chat: str, now: datetime, *decisions: GateDecision) -> int:
    values = {"chat": chat, "after": now - _HOUR, "decisions": decisions}
    return int(connection.execute(_COUNT_OF, values).scalar_one())


def is_more_said(connection: Connection, context_id: int, turn_id: int) -> bool:
    """Return whether something else waits in the conversation of a turn: who spoke last is decided about."""
    return connection.execute(_WAITING_AFTER.limit(1), {"context": context_id, "turn": turn_id}).first() is not None


def begin_decision(
    connection: Connection, turn_id: int, chat: str, now: datetime, *, per_hour: int
) -> GateDecision | None:
    """Take note that a model is about to be asked about a turn; return what is decided without it, or None."""
    asked = connection.execute(_COUNT_ASKED, {"chat": chat, "after": now - _MINUTE}).scalar_one()
    values = {"turn_id": turn_id, "chat": chat, "tries": 1, "decided_at": now}
    tries = connection.execute(_try(connection), values).scalar_one()
    decided = GateDecision.FAILED if tries > _MOST_TRIES else None
    if asked >= _MOST_A_MINUTE or is_at_limit(connection, chat, now, per_hour=per_hour):
        decided = GateDecision.LIMIT
    if decided is not None:
        set_decision(connection, turn_id, decided, now)
    return decided


def set_decision(connection: Connection, turn_id: int, decision: GateDecision, now: datetime) -> None:
    """Store what is decided about the messages of a turn."""
    connection.execute(_DECIDE, {"turn": turn_id, "decision": decision.value, "decided_at": now})


def move_decisions(connection: Connection, old: str, new: str) -> None:
    """Have what was decided in a chat count under its new name."""
    connection.execute(update(gate_decisions).where(gate_decisions.c.chat == old).values(chat=new))
