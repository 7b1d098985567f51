"""The conditions on states, and those of partial indexes: each written once, for indexes and for queries.

A planner uses such an index where a query says the very same, with literals: it does not know the values of parameters.
SQLite even plans a query again for each value of a parameter that is compared with what an index has a literal for.
"""

import re
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Index, TextClause, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex

from botservice.core.messages import Role
from botservice.core.states import (
    OPEN,
    UNANSWERED,
    UNFINISHED,
    DeliveryKind,
    DeliveryStatus,
    EventKind,
    Outcome,
    PendingStatus,
    ReminderStatus,
    TurnStatus,
)


def is_one_of(column: str, *values: StrEnum) -> TextClause:
    """Build the condition that a column has one of these values, as literals."""
    literals = ", ".join(f"'{value}'" for value in values)
    return text(f"{column} IN ({literals})" if len(values) > 1 else f"{column} = {literals}")


def of_alias(condition: TextClause, alias: str) -> TextClause:
    """Build the same condition on another name of its table."""
    return text(re.sub(r"\b\w+\.", f"{alias}.", condition.text))


def is_not(column: str, value: StrEnum) -> TextClause:
    """Build the condition that a column has another value than this one, as a literal."""
    return text(f"{column} <> '{value}'")


TURN_IS_OPEN: Final = is_one_of("turns.status", *OPEN)
TURN_IS_UNFINISHED: Final = is_one_of("turns.status", *UNFINISHED)
TURN_IS_QUEUED: Final = is_one_of("turns.status", TurnStatus.QUEUED)
TURN_IS_RUNNING: Final = is_one_of("turns.status", TurnStatus.RUNNING)
TURN_IS_SUSPENDED: Final = is_one_of("turns.status", TurnStatus.WAITING)
TURN_IS_NOT_SUSPENDED: Final = is_not("turns.status", TurnStatus.WAITING)
TURN_IS_DONE: Final = is_one_of("turns.status", TurnStatus.DONE)
TURN_IS_NOT_DONE: Final = is_not("turns.status", TurnStatus.DONE)
TURN_IS_ANSWERED: Final = is_one_of("turns.outcome", Outcome.ANSWERED)
TURN_HAS_FAILED: Final = is_one_of("turns.outcome", Outcome.FAILED)
TURN_IS_STOPPED: Final = is_one_of("turns.outcome", Outcome.STOPPED)
TURN_IS_REFUSED: Final = is_one_of("turns.outcome", Outcome.REFUSED)
TURN_IS_ASKED: Final = text(f"(turns.outcome IS NULL OR turns.outcome <> '{Outcome.LISTENED}')")
TURN_IS_UNANSWERED: Final = is_one_of("turns.outcome", *UNANSWERED)
TURN_IS_NUMBERED: Final = text("turns.last_step_number IS NOT NULL")
TURN_IS_SET_ASIDE: Final = is_one_of("turns.status", TurnStatus.SET_ASIDE)
TURN_IS_WHOLE: Final = text("turns.compacted_at IS NULL")
TURN_IS_COMPACTED: Final = text("turns.compacted_at IS NOT NULL")
EVENT_IS_UNHANDLED: Final = text("events.turn_id IS NULL AND events.handled_at IS NULL")
EVENT_IS_MESSAGE: Final = is_one_of("events.kind", EventKind.MESSAGE)
EVENT_IS_CHANGE: Final = is_one_of("events.kind", EventKind.EDIT, EventKind.DELETE)
CHANGE_IS_UNHANDLED: Final = text(f"events.handled_at IS NULL AND {EVENT_IS_CHANGE.text}")
EVENT_IS_EXTERNAL: Final = text("events.external_id IS NOT NULL")
DELIVERY_IS_OWED: Final = is_one_of("deliveries.status", DeliveryStatus.PENDING, DeliveryStatus.ATTEMPTING)
DELIVERY_IS_PENDING: Final = is_one_of("deliveries.status", DeliveryStatus.PENDING)
DELIVERY_IS_ATTEMPTED: Final = is_one_of("deliveries.status", DeliveryStatus.ATTEMPTING)
DELIVERY_IS_OVER: Final = is_one_of("deliveries.status", DeliveryStatus.DELIVERED, DeliveryStatus.FAILED)
DELIVERY_IS_MESSAGE: Final = is_one_of("deliveries.kind", DeliveryKind.MESSAGE, DeliveryKind.UNPLANNED)
DELIVERY_HAS_BUTTONS: Final = text("deliveries.buttons IS NOT NULL")
CALL_IS_OPEN: Final = text("pending_calls.is_open")
CALL_IS_UNDECIDED: Final = is_one_of("pending_calls.status", PendingStatus.WAITING)
REMINDER_IS_WAITING: Final = is_one_of("reminders.status", ReminderStatus.WAITING)
REMINDER_IS_KEPT: Final = is_one_of("reminders.status", ReminderStatus.WAITING, ReminderStatus.PAUSED)
REMINDER_IS_OVER: Final = is_one_of(
    "reminders.status", ReminderStatus.DONE, ReminderStatus.CANCELLED, ReminderStatus.FAILED
)
MESSAGE_IS_OF_A_PERSON: Final = is_one_of("messages.role", Role.USER)
MESSAGE_IS_NOT_OF_A_PERSON: Final = is_not("messages.role", Role.USER)
MESSAGE_IS_SAID: Final = is_one_of("messages.role", Role.USER, Role.ASSISTANT)
MESSAGE_IS_EXTERNAL: Final = text("messages.external_id IS NOT NULL")
MESSAGE_HAS_AUTHOR: Final = text("messages.author_id IS NOT NULL")
MESSAGE_IS_EDITED: Final = text("messages.edited_at IS NOT NULL")
CONTEXT_HAS_METADATA: Final = text("contexts.metadata <> '{}'")
CONTEXT_IS_OF_ONE: Final = text("contexts.only_identity_id IS NOT NULL")
CONTEXT_IS_REMEMBERED: Final = text("contexts.forgotten_at IS NULL")
CONTEXT_IS_FORGOTTEN: Final = text("contexts.forgotten_at IS NOT NULL")
FACT_IS_ENDED: Final = text("facts.ended_by IS NOT NULL")
READING_IS_DUE: Final = text("observed.due_at IS NOT NULL")
VERDICT_IS_BAD: Final = text("feedback.verdict = 'bad'")

_WHERE: Final = "where"


def index_where(name: str, *columns: str, where: TextClause) -> Index:
    """Return a partial index on both databases: over the rows for which a condition holds."""
    within = text(re.sub(r"\b\w+\.", "", where.text))  # the condition of an index names no table
    return Index(name, *columns, sqlite_where=within, info={_WHERE: within})


@compiles(CreateIndex, "postgresql")
def _create(create: CreateIndex, compiler: Any, **options: Any) -> str:
    """Return the statement with the condition: to be told before, an index loads SQLAlchemy's part for Postgres."""
    index = create.element
    if _WHERE in index.info:
        index.dialect_options["postgresql"]["where"] = index.info[_WHERE]
    return str(compiler.visit_create_index(create, **options))
