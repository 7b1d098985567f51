"""Conversations and turns in a line each: their titles, who asked what, how a turn stands or ended, what it took."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.conversation.field_values import ToolResult
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import listed
from botservice.conversation.replay import visible
from botservice.conversation.steps import ActionStep
from botservice.conversation.tool_calls import state_of_unmade
from botservice.core.formatted_text import Block, Blocks, FormattedText, List, Quote, Rule, Table, plain_text
from botservice.core.messages import Role
from botservice.core.personas import TITLE
from botservice.core.states import Outcome, PendingKind, PendingStatus, TurnStatus
from botservice.core.visible_text import shown_beginning
from botservice.devtools.queries import (
    count_steps,
    find_first_words,
    list_answers,
    list_messages,
    list_named,
    list_questions,
    list_sent,
    list_speakers,
    list_tasks,
)
from botservice.devtools.turn_queries import FoundTurn, find_with_failed_calls
from botservice.people.names import key_text
from botservice.storage.database import Connection
from botservice.storage.message_references import written_text_of
from botservice.transport_plugins import platform_label
from botservice.turns.call_queries import find_of_turns
from botservice.turns.readable_arguments import readable_arguments
from botservice.turns.waiting_calls import WaitingCall, work_seconds
from transports.markdown.reading import read_markdown
from transports.web.inbound_events import NAME
from transports.web.inspector_steps import show_text

_LAST_MESSAGES: Final = 20
_MOST_NAMES: Final = 3
_LONGEST: Final = 120  # characters
_FIRST_WORDS: Final = 60  # characters


@dataclass(frozen=True, slots=True)
class ChatTitle:
    """The title of a conversation, with its platform.

    Attributes:
        text: What it was called, or else the names of the people in it, or its first words; where none of that is
            known, its platform and a number.
        people: Their names, where it was called something else.
        keys: What it is found by on its platform; without what is secret or says nothing.
    """

    text: str
    platform: str
    keys: Mapping[str, str]
    people: str = ""

    @property
    def platform_label(self) -> str:
        """The platform as people call it."""
        return platform_label(self.platform)


def read_titles(connection: Connection, context_ids: Sequence[int]) -> dict[int, ChatTitle]:
    """Return the titles of conversations, by their id."""
    return {row.id: _title(connection, row) for row in list_named(connection, context_ids)}


def _title(connection: Connection, row: Any) -> ChatTitle:
    keys = {_shown(name): _shown(key_text(value)) for name, value in row.context_keys.items()}
    platform = keys.pop("transport", "api")
    keys.pop("session_id", None)
    if platform == NAME:
        keys.pop("thread_id", None)  # made up, and says nothing
    people = _shown(row.name if row.name and not row.is_shared else _speakers(connection, row.id))
    given = row.metadata.get(TITLE)
    title = _shown(given) if isinstance(given, str) else ""
    if title:
        return ChatTitle(title, platform, keys, people)
    title = people or _shown(_first_words(connection, row.id)) or f"{platform_label(platform)} chat {row.id}"
    return ChatTitle(title, platform, keys)


def _first_words(connection: Connection, context_id: int) -> str:
    """Return the beginning of what a person said first, as the list of the chat in the browser has it."""
    words = find_first_words(connection, context_id, _FIRST_WORDS + 1)
    return f"{words[:_FIRST_WORDS].rstrip()}…" if len(words) > _FIRST_WORDS else words


def _shown(text: str) -> str:
    """Return the beginning of a text in one line, without invisible characters."""
    line = " ".join(visible(text[:_LONGEST]).split())
    return f"{line}…" if len(text) > _LONGEST else line


def _speakers(connection: Connection, context_id: int) -> str:
    """Return the names of those who spoke last."""
    names = list_speakers(connection, context_id, _LAST_MESSAGES)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


_STATUSES: Final = {TurnStatus.QUEUED: "Queued", TurnStatus.RUNNING: "Running", TurnStatus.WAITING: "Waiting"}
_OUTCOMES: Final = {
    Outcome.ANSWERED: "Answered",
    Outcome.LISTENED: "Listened",
    Outcome.REFUSED: "Refused",
    Outcome.STOPPED: "Stopped",
    Outcome.FAILED: "Failed",
}
_DECIDED: Final = {
    PendingStatus.ALLOWED: "answered",
    PendingStatus.HANDED_IN: "answered",
    PendingStatus.DENIED: "refused",
}
AWAITING_APPROVAL: Final = "Awaiting approval"
AWAITING_RESULT: Final = "Awaiting a result"
AWAITING_ANSWER: Final = "Awaiting an answer"


@dataclass(frozen=True, slots=True)
class TurnState:
    """How a turn, or one of its calls, stands.

    Attributes:
        look: How it looks: as what it ended with, or "open".
    """

    words: str
    look: str


def state_of(turn: Any, waiting: Iterable[WaitingCall] = ()) -> TurnState:
    """Return how a turn stands.

    Args:
        turn: Its status and its outcome.
        waiting: The calls that it waits with.
    """
    if turn.outcome is None:
        words = _STATUSES.get(TurnStatus(turn.status), "Running")
        open_calls = [each for each in waiting if each.is_waiting]
        return TurnState(say_waiting(open_calls[0].kind) if open_calls else words, "open")
    outcome = Outcome(turn.outcome)
    words = _OUTCOMES[outcome]
    return TurnState(f"{words}, set aside" if turn.status == TurnStatus.SET_ASIDE else words, outcome.value)


_AWAITING: Final = {
    PendingKind.APPROVAL: AWAITING_APPROVAL,
    PendingKind.LATER: AWAITING_RESULT,
    PendingKind.QUESTION: AWAITING_ANSWER,
}


def say_waiting(kind: PendingKind) -> str:
    """Return what a turn waits for with a call of some kind."""
    return _AWAITING[kind]


def state_of_call(call: WaitingCall) -> TurnState:
    """Return how a call stands that waits, or has waited."""
    if call.is_waiting:
        return TurnState(say_waiting(call.kind), "open")
    return TurnState(call.status.value.replace("_", " ").capitalize(), _DECIDED.get(call.status, "stopped"))


def count_failed_calls(steps: Iterable[MemoryItem]) -> int:
    """Return how many calls of tools failed in the steps of a turn; those that were not made are none of them."""
    results = (each for step in steps for each in listed(step.get_value("tool_results")))
    return sum(1 for each in results if isinstance(each, ToolResult) and has_failed(each))


def has_failed(result: ToolResult) -> bool:
    """Return whether a call was made, and failed."""
    return result.is_error and state_of_unmade(result.text) is None


_EXCERPT: Final = 300  # characters
_MARKUP: Final = re.compile(r"[|*_#`~\[\]<>\\$&]|^ *(?:[-+]|\d+[.)]) |^ *-{3,}", re.MULTILINE)


def show_excerpt(text: str) -> str:
    """Return the beginning of a text in one line, as it was written."""
    return _one_line(text[: 2 * _EXCERPT])


def show_preview(markdown: str) -> str:
    """Return the words that an answer begins with, in one line: without the signs of its Markdown."""
    begun = markdown[: 2 * _EXCERPT]
    return _one_line(_words(read_markdown(begun)) if _MARKUP.search(begun) else begun)


def _one_line(text: str) -> str:
    line = " ".join(visible(text).split())
    return line if len(line) <= _EXCERPT else f"{shown_beginning(line, _EXCERPT)}…"


def _words(blocks: Blocks) -> str:
    return " ".join(filter(None, map(_words_of, blocks)))


def _words_of(block: Block) -> str:
    match block:
        case Table(rows):
            lines = (", ".join(filter(None, (plain_text(cell).strip() for cell in row))) for row in rows)
            return "; ".join(filter(None, lines))
        case List(items):
            return ", ".join(f"{item.number or ''} {_words(item.blocks)}".strip() for item in items)
        case Quote(blocks):
            return _words(blocks)
        case Rule():
            return ""
        case _:
            return FormattedText((block,)).plain


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
    return "" if step is None else readable_arguments((step.tool_calls or ())[call.call_index].arguments)[0]


def _holds(step: ActionStep, call: WaitingCall) -> bool:
    calls = step.tool_calls or ()
    return call.call_index < len(calls) and (calls[call.call_index].id, calls[call.call_index].name) == (
        call.call_id,
        call.tool,
    )
