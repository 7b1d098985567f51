"""Turns in a line each, with who asked what, how it ended and what it took."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, func, select

from botservice.memory import ActionStep, FailedStep, MemoryItem, TaskStep
from botservice.memory.replay import visible
from botservice.overview.chat_titles import ChatTitle, read_titles
from botservice.overview.turn_search import FoundTurn
from botservice.storage.references import full_text_of
from botservice.storage.tables.conversations import events, messages, steps
from botservice.turns.waiting.arguments import readable
from botservice.turns.waiting.calls import PendingKind, WaitingCall
from transports.web.inspector.steps import show_text

_EXCERPT: Final = 300  # characters


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn in a line.

    Attributes:
        cost: In billionths of the currency; 0 where nothing is known of it.
    """

    id: int
    context_id: int
    title: ChatTitle
    state: str
    question: str
    answer: str
    steps: int
    created_at: datetime
    seconds: float | None
    cost: int
    model: str
    tools: tuple[str, ...]
    good: int
    bad: int
    is_command: bool


def read_turn_lines(connection: Connection, found: Sequence[FoundTurn]) -> list[TurnLine]:
    """Return turns that were found, in their order, with what is shown of them."""
    turn_ids = [each.row.id for each in found]
    titles = read_titles(connection, list({each.row.context_id for each in found}))
    questions = read_questions(connection, turn_ids)
    answers = _read_answers(connection, turn_ids)
    counts = _count_steps(connection, turn_ids)
    return [
        TurnLine(
            id=each.row.id,
            context_id=each.row.context_id,
            title=titles[each.row.context_id],
            state=show_state(each.row.status, each.row.outcome),
            question=questions.get(each.row.id, ""),
            answer=answers.get(each.row.id, ""),
            steps=counts.get(each.row.id, 0),
            created_at=each.row.created_at,
            seconds=turn_seconds(each.row),
            cost=each.row.cost or 0,
            model=visible(each.row.model or ""),
            tools=tuple(dict.fromkeys(visible(each.row.tools or "").split())),
            good=each.ratings[0],
            bad=each.ratings[1],
            is_command=each.is_command,
        )
        for each in found
    ]


def show_state(status: str, outcome: str | None) -> str:
    """Return how a turn stands, in words."""
    return status.replace("_", " ") if outcome is None else f"{status}, {outcome}".replace("_", " ")


def turn_seconds(turn: Any) -> float | None:
    """Return how long a turn took since it was accepted, or None if it has not ended."""
    return None if turn.finished_at is None else float((turn.finished_at - turn.created_at).total_seconds())


def show_excerpt(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(visible(text[: 2 * _EXCERPT]).split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"


def read_last_messages(connection: Connection, message_ids: Sequence[int]) -> dict[int, str]:
    """Return the beginnings of messages, by their conversation."""
    columns = (messages.c.context_id, messages.c.text, messages.c.said_by_others)
    query = select(*columns).where(messages.c.id.in_(message_ids))
    return {row.context_id: show_excerpt(full_text_of(row)) for row in connection.execute(query)}


def read_questions(connection: Connection, turn_ids: Sequence[int]) -> Mapping[int, str]:
    """Return the beginnings of what turns were asked, by the turn; of compacted ones, too."""
    said = (
        select(events.c.turn_id, messages.c.text, messages.c.said_by_others)
        .join(messages, messages.c.event_id == events.c.id)
        .where(events.c.turn_id.in_(turn_ids))
        .order_by(messages.c.id)
    )
    found = {row.turn_id: show_excerpt(full_text_of(row)) for row in connection.execute(said)}
    tasks = select(steps.c.turn_id, steps.c.data).where(
        steps.c.turn_id.in_(turn_ids), steps.c.kind == TaskStep.__name__
    )
    for row in connection.execute(tasks):
        found[row.turn_id] = show_excerpt(show_text(MemoryItem.from_json(row.data).get_value("task")))
    return found


def _read_answers(connection: Connection, turn_ids: Sequence[int]) -> Mapping[int, str]:
    query = select(messages.c.answers_turn_id, messages.c.text).where(messages.c.answers_turn_id.in_(turn_ids))
    return {row.answers_turn_id: show_excerpt(row.text) for row in connection.execute(query)}


def _count_steps(connection: Connection, turn_ids: Sequence[int]) -> Mapping[int, int]:
    query = (
        select(steps.c.turn_id, func.count().label("step_count"))
        .where(steps.c.turn_id.in_(turn_ids), steps.c.step_number.is_not(None), steps.c.kind != FailedStep.__name__)
        .group_by(steps.c.turn_id)
    )
    return {row.turn_id: row.step_count for row in connection.execute(query)}


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """A call that waits or has waited, in a few lines.

    Attributes:
        number: What people call it by, as in /allow 3.
        what: Whether it waits for a decision or for its result, or how it ended.
    """

    number: int
    context_id: int
    turn_id: int
    tool: str
    what: str
    since: datetime
    until: datetime
    decided_at: datetime | None
    arguments: str = ""


def show_waiting(calls: Iterable[WaitingCall], steps: Sequence[MemoryItem] = ()) -> list[WaitingLine]:
    """Return calls for a page; with what they would be made with, where their turn's steps are given."""
    return [
        WaitingLine(
            each.id,
            each.context_id,
            each.turn_id,
            visible(each.tool),
            _what(each),
            each.created_at,
            each.expires_at,
            each.decided_at,
            _arguments(each, steps),
        )
        for each in calls
    ]


def _what(call: WaitingCall) -> str:
    if not call.is_waiting:
        return call.status.value.replace("_", " ")
    return "waits for a word" if call.kind is PendingKind.APPROVAL else "waits for its result"


def _arguments(call: WaitingCall, steps: Sequence[MemoryItem]) -> str:
    step = next((each for each in steps if isinstance(each, ActionStep) and _holds(each, call)), None)
    return "" if step is None else readable((step.tool_calls or ())[call.call_index].arguments)[0]


def _holds(step: ActionStep, call: WaitingCall) -> bool:
    calls = step.tool_calls or ()
    return call.call_index < len(calls) and (calls[call.call_index].id, calls[call.call_index].name) == (
        call.call_id,
        call.tool,
    )
