"""Calls that are made again: with a person's answers to what they asked, or with what they kept."""

import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Protocol, Self
from weakref import WeakValueDictionary

from botservice.agent.tool import Later
from botservice.llm.chat import ChatLLM

Value = str | int | float | bool | list[str]
"""What a person gives for a field."""


class FieldKind(StrEnum):
    """What a field takes."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"


class ReplyAction(StrEnum):
    """What a person does with a question, as MCP names it."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form.

    Attributes:
        options: What can be chosen: the value and the label of each.
        least: The smallest number, the shortest text or the fewest choices; None for no limit.
        most: The largest number, the longest text or the most choices; None for no limit.
        format: The format of a text, as JSON Schema names it: `email`, `uri`, `date` or `date-time`.
    """

    name: str
    kind: FieldKind
    title: str
    description: str = ""
    is_required: bool = True
    options: tuple[tuple[str, str], ...] = ()
    least: float | None = None
    most: float | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """A form, or an address that the person is to open.

    Attributes:
        message: What the asker says, unquoted.
        url: The address; None for a form.
    """

    message: str
    fields: tuple[Field, ...] = ()
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person gave for a question."""

    action: ReplyAction
    content: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolQuestions:
    """The questions of one call, with the replies so far.

    Attributes:
        asker: Who asks, such as the name of a server.
        state: What the tool needs to go on; nothing else reads it.
        given: What the person has given for the question that they are at.
        place: The field that they are at.
    """

    asker: str
    questions: tuple[ToolQuestion, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    replies: tuple[Reply, ...] = ()
    given: Mapping[str, Value] = field(default_factory=dict)
    place: int = 0

    @property
    def is_over(self) -> bool:
        """Whether every question has its reply."""
        return len(self.replies) >= len(self.questions)

    @property
    def question(self) -> ToolQuestion:
        """The question that the person is at."""
        return self.questions[min(len(self.replies), len(self.questions) - 1)]

    @property
    def field(self) -> Field | None:
        """The field that the person is at; None where they are only to agree."""
        fields = self.question.fields
        return fields[self.place] if self.place < len(fields) else None

    @property
    def step(self) -> int:
        """How many answers came before this one, by which a late press is told from a timely one."""
        return sum(max(1, len(each.fields)) for each in self.questions[: len(self.replies)]) + self.place

    def with_value(self, value: Value | None) -> Self:
        """Return the exchange with what the person gives for the field, or leaves out, or agrees to."""
        at, given = self.field, dict(self.given)
        if at is not None and value is not None:
            given[at.name] = value
        if self.place + 1 < len(self.question.fields):
            return replace(self, given=given, place=self.place + 1)
        return replace(self, replies=(*self.replies, Reply(ReplyAction.ACCEPT, given)), given={}, place=0)

    def ended(self, action: ReplyAction) -> Self:
        """Return the exchange with every open question declined or cancelled."""
        missing = len(self.questions) - len(self.replies)
        return replace(self, replies=(*self.replies, *[Reply(action)] * missing), given={}, place=0)

    def to_json(self) -> str:
        """Return it as it is stored."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        kept = json.loads(text)
        replies = tuple(Reply(ReplyAction(each["action"]), each["content"]) for each in kept["replies"])
        return cls(**{**kept, "questions": tuple(map(_read_question, kept["questions"])), "replies": replies})


def _read_question(kept: Mapping[str, Any]) -> ToolQuestion:
    fields = [
        Field(**{**each, "kind": FieldKind(each["kind"]), "options": tuple(map(tuple, each["options"]))})
        for each in kept["fields"]
    ]
    return ToolQuestion(kept["message"], tuple(fields), kept["url"])


class QuestionsAsked(Later):
    """Raised by a tool that needs answers: the turn waits for them, and the call is made again with them.

    Attributes:
        exchange: The questions, none of which has a reply yet.
    """

    is_told = False

    def __init__(self, asker: str, questions: Sequence[ToolQuestion], state: Mapping[str, Any]) -> None:
        super().__init__(asker)
        self.exchange = ToolQuestions(asker, tuple(questions), state)


class Paused(Later):
    """Raised by a tool that has kept what it needs: the turn waits, and the call is made again after a pause.

    Attributes:
        is_told: Whether the person is told that it takes longer.
    """

    def __init__(self, seconds: float, *, is_told: bool) -> None:
        super().__init__("pause", hours=seconds / 3_600)
        self.is_told = is_told


@dataclass(frozen=True, slots=True)
class CallQuestions:
    """What a tool may know of its call.

    Attributes:
        can_ask: Whether there is a person who can be asked.
        llm: The model of the turn's agent, for tools that may ask it.
        replied: The exchange before, once it is over.
        kept: What the call has kept when it was made before.
        keep: Stores JSON values with which the call is made again if it is cut off or pauses; None where nothing can
            be stored. A `kept` in the state of its questions takes the place of these.
        can_pause: Whether it may raise `Paused`.
    """

    can_ask: bool = False
    replied: ToolQuestions | None = None
    llm: ChatLLM | None = None
    kept: Mapping[str, Any] | None = None
    keep: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None
    can_pause: bool = False


class HeldCall(Protocol):
    """A call that is kept open in this process until the person has answered."""

    def drop(self) -> None:
        """End it."""


held_calls: Final[WeakValueDictionary[str, HeldCall]] = WeakValueDictionary()
"""The calls that are kept open here, by what the state of their questions names as `open`."""


def let_go(questions: ToolQuestions) -> None:
    """End the call that is kept open for questions, if it is: nobody answers them any more."""
    held = held_calls.pop(str(questions.state.get("open", "")), None)
    if held is not None:
        held.drop()


_NONE: Final = CallQuestions()
_call: ContextVar[CallQuestions] = ContextVar("questions", default=_NONE)


def questions_of_call() -> CallQuestions:
    """Return what is known of the questions of the call that is made now."""
    return _call.get()


@contextlib.contextmanager
def answering(questions: CallQuestions) -> Iterator[None]:
    """Make the replies of a person known to the tool that is called in the block."""
    token = _call.set(questions)
    try:
        yield
    finally:
        _call.reset(token)
