"""The file of cases: past turns and questions of one's own, with what is expected of their answers."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from botservice.again.answers import CallMade, Origin
from botservice.errors import BotServiceError
from botservice.evaluation.languages import LANGUAGES
from botservice.evaluation.yaml_lines import Place
from botservice.llm.chat import ChatMessage

_SUITE: Final = ("cases", "model", "prompt", "judge")
_CASE: Final = (
    *("name", "question", "author", "history", "facts", "messages"),
    *("context", "turn", "turns", "call", "tools", "expect"),
)
_ROLES: Final = ("system", "user", "assistant", "tool")


class Pattern:
    """A regular expression as the Rust library `regex` reads it: without look-around and back-references."""

    __slots__ = ("_validator", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._validator = SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex"))
        except SchemaError as error:
            reason = " ".join(str(error).partition("regex parse error:")[2].split()) or "it cannot be read"
            raise BotServiceError(
                f"{text!r} is no pattern that is safe to look for: {reason[-160:]}. "
                "Leave out look-around and back-references"
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def is_in(self, text: str) -> bool:
        """Return whether it is found anywhere in a text."""
        try:
            self._validator.validate_python(text)
        except ValidationError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Expectations:
    """What an answer has to be; whatever is not said here does not matter.

    Attributes:
        contains: Texts that are in it, in small letters or capitals.
        calls: Tools that the model calls on its way.
        max_tokens: How many tokens its model may write, on the way too.
        max_cost: In the currency.
        language: Two letters.
        judge: What a model that judges has to find true of it.
    """

    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    regex: tuple[Pattern, ...] = ()
    not_regex: tuple[Pattern, ...] = ()
    calls: tuple[str, ...] = ()
    not_calls: tuple[str, ...] = ()
    max_tokens: int | None = None
    max_cost: float | None = None
    language: str | None = None
    judge: str | None = None


_EXPECT: Final = tuple(each.name for each in fields(Expectations))


@dataclass(frozen=True, slots=True)
class Case:
    """A question: a past turn where turn is set, chat messages where there are some, or else what is written here.

    Attributes:
        history: Who spoke, user or assistant, and what they said, oldest first.
        facts: What is known of the person who asks.
        context: Which conversation the turn is in, as the command line names it.
        tools: What calls give; one with no arguments here gives its result whatever they are.
    """

    name: str
    expect: Expectations = Expectations()
    question: str = ""
    author: str | None = None
    history: tuple[tuple[str, str], ...] = ()
    facts: tuple[str, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    context: str = ""
    turn: int | None = None
    call: int = 1
    tools: tuple[tuple[CallMade, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """The cases of a file.

    Attributes:
        model: Which one is asked; None for the agent's own. prompt likewise.
        judge: Which one judges; None for the one that is configured.
    """

    cases: tuple[Case, ...]
    model: str | None = None
    prompt: str | None = None
    judge: str | None = None

    @property
    def needs_judge(self) -> bool:
        """Whether a case asks for a model that judges."""
        return any(each.expect.judge is not None for each in self.cases)

    @property
    def needs_record(self) -> bool:
        """Whether a case is a past turn."""
        return any(each.turn is not None for each in self.cases)


def read_suite(text: str, file: str = "the file") -> Suite:
    """Return the cases that a YAML text holds.

    Raises:
        BotServiceError: something in it is wrong; it says where, and what to do.
    """
    place = Place.of_text(text, file)
    fields = place.fields(_SUITE)
    if "cases" not in fields:
        place.refuse("there are no cases: the file has a list cases:")
    cases = tuple(case for each in fields["cases"].items() for case in _cases(each))
    if not cases:
        fields["cases"].refuse("there are no cases")
    model, prompt, judge = (fields[name].text() if name in fields else None for name in ("model", "prompt", "judge"))
    return Suite(cases, model, prompt, judge)


def _cases(place: Place) -> list[Case]:
    fields = place.fields(_CASE)
    kinds = [name for name in ("question", "messages", "turn", "turns") if name in fields]
    if len(kinds) != 1:
        place.refuse("a case has one of question, messages, turn and turns")
    expect = _expectations(fields["expect"]) if "expect" in fields else Expectations()
    if kinds[0] in ("turn", "turns"):
        return _past(place, fields, expect)
    for name in ("context", "call"):
        if name in fields:
            fields[name].refuse(f"{name} goes with turn")
    tools = tuple(_tool(each) for each in fields["tools"].items()) if "tools" in fields else ()
    if kinds[0] == "messages":
        return [_given(fields, expect, tools)]
    question = fields["question"].text()
    return [
        Case(
            fields["name"].text() if "name" in fields else question,
            expect,
            question,
            fields["author"].text() if "author" in fields else None,
            tuple(_said(each) for each in fields["history"].items()) if "history" in fields else (),
            fields["facts"].texts() if "facts" in fields else (),
            tools=tools,
        )
    ]


def _past(place: Place, fields: Mapping[str, Place], expect: Expectations) -> list[Case]:
    for name in ("author", "history", "facts", "tools"):
        if name in fields:
            fields[name].refuse(f"{name} is in the record of a past turn: leave it out")
    if "context" not in fields:
        place.refuse("a past turn needs its context, as `botservice contexts` lists it")
    context = fields["context"].text()
    call = fields["call"].whole() if "call" in fields else 1
    numbers = [fields["turn"].whole()] if "turn" in fields else [each.whole() for each in fields["turns"].items()]
    own = fields["name"].text() if "name" in fields else None
    return [
        Case(own or f"turn {number} of {context}", expect, context=context, turn=number, call=call)
        for number in numbers
    ]


def _given(fields: Mapping[str, Place], expect: Expectations, tools: tuple[tuple[CallMade, bool], ...]) -> Case:
    for name in ("author", "history", "facts"):
        if name in fields:
            fields[name].refuse(f"{name} goes with question; messages are the whole prompt")
    messages = tuple(_message(each) for each in fields["messages"].items())
    if not messages:
        fields["messages"].refuse("there are no messages")
    name = fields["name"].text() if "name" in fields else str(messages[-1].get("content"))
    return Case(name, expect, messages=messages, tools=tools)


def _message(place: Place) -> ChatMessage:
    message: Any = place.value()
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        place.refuse(f"a message has a role: {', '.join(_ROLES)}")
    if not isinstance(message.get("content"), str | list) and not message.get("tool_calls"):
        place.refuse("a message has a content: give it a text")
    return dict(message)


def _said(place: Place) -> tuple[str, str]:
    fields = place.fields(("user", "assistant"))
    if len(fields) != 1:
        place.refuse("each line of a history is what one said: user: … or assistant: …")
    ((role, said),) = fields.items()
    return role, said.text()


def _tool(place: Place) -> tuple[CallMade, bool]:
    fields = place.fields(("name", "arguments", "result", "error"))
    if "name" not in fields or ("result" in fields) == ("error" in fields):
        place.refuse("a tool has a name, and a result or an error; arguments where the result is for them alone")
    arguments = fields["arguments"].value() if "arguments" in fields else {}
    if not isinstance(arguments, dict):
        fields["arguments"].refuse("arguments must be a mapping")
    is_error = "error" in fields
    result = fields["error" if is_error else "result"].text()
    call = CallMade(fields["name"].text(), arguments, result, Origin.RECORD, is_error)
    return call, "arguments" not in fields


def _expectations(place: Place) -> Expectations:
    fields = place.fields(_EXPECT)
    texts = {name: fields[name].texts() if name in fields else () for name in _EXPECT[:6]}
    patterns = {name: tuple(_pattern(fields[name], each) for each in texts[name]) for name in ("regex", "not_regex")}
    language = fields["language"].text().casefold() if "language" in fields else None
    if language is not None and language not in LANGUAGES:
        fields["language"].refuse(f"the language must be one of {', '.join(LANGUAGES)}")
    return Expectations(
        texts["contains"],
        texts["not_contains"],
        patterns["regex"],
        patterns["not_regex"],
        texts["calls"],
        texts["not_calls"],
        fields["max_tokens"].whole() if "max_tokens" in fields else None,
        fields["max_cost"].number() if "max_cost" in fields else None,
        language,
        fields["judge"].text() if "judge" in fields else None,
    )


def _pattern(place: Place, text: str) -> Pattern:
    try:
        return Pattern(text)
    except BotServiceError as error:
        place.refuse(str(error))
