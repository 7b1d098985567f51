"""Turns in a line each, with who asked what, how it ended and what it took."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botservice.conversation.items import MemoryItem
from botservice.conversation.replay import visible
from botservice.conversation.steps import ActionStep
from botservice.core.messages import Role
from botservice.devtools.queries import count_steps, list_answers, list_messages, list_questions, list_sent, list_tasks
from botservice.devtools.turn_queries import FoundTurn, find_with_failed_calls
from botservice.storage.database import Connection
from botservice.storage.references import written_text_of
from botservice.turns.person_waits import work_seconds
from botservice.turns.shown_arguments import readable
from botservice.turns.waiting_calls import WaitingCall
from botservice.turns.waiting_records import find_of_turns
from transports.web.chat_titles import ChatTitle, read_titles
from transports.web.inspector_previews import show_excerpt, show_preview
from transports.web.inspector_states import TurnState, state_of, state_of_call
from transports.web.inspector_steps import show_text


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn in a line.

    Attributes:
        row: As it was found.
        ratings: How many think well of it, and how many badly.
    """

    row: Any
    ratings: tuple[int, int]
    title: ChatTitle
    state: TurnState
    has_failed_call: bool
    question: str
    answer: str
    steps: int
    seconds: float | None
    model: str
    tools: Sequence[str]


def read_turn_lines(connection: Connection, found: Sequence[FoundTurn]) -> list[TurnLine]:
    """Return turns that were found, in their order, with what is shown of them."""
    turn_ids = [each.row.id for each in found]
    titles = read_titles(connection, list({each.row.context_id for each in found}))
    questions = read_questions(connection, turn_ids)
    answers = {row.answers_turn_id: show_preview(row.text) for row in list_answers(connection, turn_ids)}
    answers |= _read_sent(connection, [each.row.id for each in found if each.row.is_command])
    counts = count_steps(connection, turn_ids)
    failed = find_with_failed_calls(connection, turn_ids)
    waits = find_of_turns(connection, turn_ids)
    return [
        TurnLine(
            row=row,
            ratings=ratings,
            title=titles[row.context_id],
            state=state_of(row, waits.get(row.id, ())),
            has_failed_call=row.id in failed,
            question=questions.get(row.id, ""),
            answer=answers.get(row.id, ""),
            steps=counts.get(row.id, 0),
            seconds=work_seconds(row, waits.get(row.id, ())),
            model=visible(row.model or ""),
            tools=list(dict.fromkeys(visible(row.tools or "").split())),
        )
        for row, ratings in ((each.row, each.ratings) for each in found)
    ]


def read_last_messages(connection: Connection, message_ids: Sequence[int]) -> dict[int, str]:
    """Return the beginnings of messages, by their conversation."""
    return {
        row.context_id: show_excerpt(written_text_of(row)) if row.role == Role.USER.value else show_preview(row.text)
        for row in list_messages(connection, message_ids)
    }


def read_questions(connection: Connection, turn_ids: Sequence[int]) -> Mapping[int, str]:
    """Return the beginnings of what turns were asked, by the turn; of compacted ones, too."""
    written: dict[int, list[str]] = {}
    for row in list_questions(connection, turn_ids):
        written.setdefault(row.turn_id, []).append(written_text_of(row))
    unwritten = [each for each in turn_ids if each not in written]  # such as what a program asked
    for row in list_tasks(connection, unwritten):
        written[row.turn_id] = [show_text(MemoryItem.from_json(row.data).get_value("task"))]
    return {turn_id: show_excerpt("\n".join(texts)) for turn_id, texts in written.items()}


def _read_sent(connection: Connection, turn_ids: Sequence[int]) -> dict[int, str]:
    """Return the beginnings of what was first sent in turns that only the service itself had to do with."""
    rows = list_sent(connection, turn_ids)
    return {row.turn_id: show_preview(text) for row in rows for text in sent_texts([row])}


def sent_texts(sent: Iterable[Any]) -> list[str]:
    """Return what deliveries say, as far as it is text."""
    payloads = [each.payload for each in sent if isinstance(each.payload, Mapping)]
    named = ([each.get(name) for name in ("text", "markdown", "plain")] for each in payloads)
    found = (next((text for text in texts if isinstance(text, str) and text), None) for texts in named)
    return [text for text in found if text is not None]


def show_waiting(
    calls: Iterable[WaitingCall], steps: Sequence[MemoryItem] = ()
) -> list[tuple[WaitingCall, str, TurnState, str]]:
    """Return calls that wait or have waited, each with its tool, how it stands, and its arguments.

    Args:
        steps: Of their turn; without them, the arguments are left out.
    """
    return [(each, visible(each.tool), state_of_call(each), _arguments(each, steps)) for each in calls]


def _arguments(call: WaitingCall, steps: Sequence[MemoryItem]) -> str:
    step = next((each for each in steps if isinstance(each, ActionStep) and _holds(each, call)), None)
    return "" if step is None else readable((step.tool_calls or ())[call.call_index].arguments)[0]


def _holds(step: ActionStep, call: WaitingCall) -> bool:
    calls = step.tool_calls or ()
    return call.call_index < len(calls) and (calls[call.call_index].id, calls[call.call_index].name) == (
        call.call_id,
        call.tool,
    )
