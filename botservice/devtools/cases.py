"""The file of cases, read and written: past turns and questions, with what is expected of their answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

import yaml

from botservice.conversation.replay import visible
from botservice.core.errors import BotServiceError
from botservice.devtools.expectations import LANGUAGES, Expectations, Pattern
from botservice.devtools.recorded_turn import RecordedTurn
from botservice.devtools.replayed_answers import CallMade, ResultOrigin
from botservice.devtools.yaml_lines import YamlLocation
from botservice.llm.chat import ChatMessage
from botservice.people.budgets import Budgets

_OF_PEOPLE: Final = ("author", "history", "facts")
_OF_TURNS: Final = dict.fromkeys(("context", "call"), "goes with turn")
_OF_QUESTIONS: Final = dict.fromkeys(_OF_PEOPLE, "goes with question; messages are the whole prompt")
_RECORDED: Final = dict.fromkeys((*_OF_PEOPLE, "tools"), "is in the record of a past turn: leave it out")
# What a case of each kind cannot have, and why.
_NOT_WITH: Final = {"question": _OF_TURNS, "messages": _OF_TURNS | _OF_QUESTIONS, "turn": _RECORDED, "turns": _RECORDED}
_ROLES: Final = ("system", "user", "assistant", "tool")

_Readers = Mapping[str, Callable[[YamlLocation], Any]]


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
    expect: Expectations = field(default_factory=Expectations)
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
    place = YamlLocation.of_text(text, file)
    fields = place.fields(_SUITE)
    if "cases" not in fields:
        place.refuse("there are no cases: the file has a list cases:")
    suite = Suite(**_read(fields, _SUITE))
    if not suite.cases:
        fields["cases"].refuse("there are no cases")
    return suite


def _read(fields: Mapping[str, YamlLocation], readers: _Readers) -> dict[str, Any]:
    return {name: readers[name](place) for name, place in fields.items()}


def _cases(place: YamlLocation) -> list[Case]:
    fields = place.fields(_CASE)
    kinds = [kind for kind in _NOT_WITH if kind in fields]
    if len(kinds) != 1:
        place.refuse("a case has one of question, messages, turn and turns")
    for name, why in _NOT_WITH[kinds[0]].items():
        if name in fields:
            fields[name].refuse(f"{name} {why}")
    values = _read(fields, _CASE)
    if kinds[0] == "question":
        return [Case(**{"name": values["question"], **values})]
    if kinds[0] == "messages":
        return [Case(**{"name": str(values["messages"][-1].get("content")), **values})]
    if "context" not in fields:
        place.refuse("a past turn needs its context, as `botservice contexts` lists it")
    turns = values.pop("turns") if kinds[0] == "turns" else [values["turn"]]
    own = values.pop("name", None)
    return [Case(own or f"turn {turn} of {values['context']}", **{**values, "turn": turn}) for turn in turns]


def _patterns(place: YamlLocation) -> tuple[Pattern, ...]:
    try:
        return tuple(map(Pattern, place.texts()))
    except BotServiceError as error:
        place.refuse(str(error))


def _language(place: YamlLocation) -> str:
    language = place.text().casefold()
    if language not in LANGUAGES:
        place.refuse(f"the language must be one of {', '.join(LANGUAGES)}")
    return language


def _messages(place: YamlLocation) -> tuple[ChatMessage, ...]:
    return tuple(map(_message, place.items())) or place.refuse("there are no messages")


def _message(place: YamlLocation) -> ChatMessage:
    message: Any = place.value()
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        place.refuse(f"a message has a role: {', '.join(_ROLES)}")
    if not isinstance(message.get("content"), str | list) and not message.get("tool_calls"):
        place.refuse("a message has a content: give it a text")
    return dict(message)


def _said(place: YamlLocation) -> tuple[str, str]:
    fields = place.fields(("user", "assistant"))
    if len(fields) != 1:
        place.refuse("each line of a history is what one said: user: … or assistant: …")
    ((role, said),) = fields.items()
    return role, said.text()


def _tool(place: YamlLocation) -> tuple[CallMade, bool]:
    fields = place.fields(("name", "arguments", "result", "error"))
    if "name" not in fields or ("result" in fields) == ("error" in fields):
        place.refuse("a tool has a name, and a result or an error; arguments where the result is for them alone")
    arguments = fields["arguments"].value() if "arguments" in fields else {}
    if not isinstance(arguments, dict):
        fields["arguments"].refuse("arguments must be a mapping")
    is_error = "error" in fields
    result = fields["error" if is_error else "result"].text()
    call = CallMade(fields["name"].text(), arguments, result, ResultOrigin.RECORD, is_error)
    return call, "arguments" not in fields


_BY_TYPE: Final[Mapping[object, Callable[[YamlLocation], Any]]] = {
    str: YamlLocation.text,
    str | None: YamlLocation.text,
    tuple[str, ...]: YamlLocation.texts,
    int: YamlLocation.whole,
    int | None: YamlLocation.whole,
    float | None: YamlLocation.number,
    tuple[Pattern, ...]: _patterns,
    tuple[ChatMessage, ...]: _messages,
    tuple[tuple[str, str], ...]: lambda place: tuple(map(_said, place.items())),
    tuple[tuple[CallMade, bool], ...]: lambda place: tuple(map(_tool, place.items())),
    tuple[Case, ...]: lambda place: tuple(case for each in place.items() for case in _cases(each)),
    Expectations: lambda place: Expectations(**_read(place.fields(_EXPECT), _EXPECT)),
}


def _readers(of: type[Expectations | Case | Suite]) -> _Readers:
    """Return what reads each field of a part of the file."""
    return {each.name: _BY_TYPE[each.type] for each in fields(of)}


_EXPECT: Final[_Readers] = {**_readers(Expectations), "language": _language}
_CASE: Final = {**_readers(Case), "turns": lambda place: [each.whole() for each in place.items()]}
_SUITE: Final = _readers(Suite)


def write_case(record: RecordedTurn) -> str:
    """Return a file with one case: what the model read below the agent's prompt, and what its tools gave."""
    first, end = record.sections.get("system", (0, 0))
    messages = [each for place, each in enumerate(record.prompt) if not first <= place < end]
    case: dict[str, Any] = {"name": f"turn {record.turn_id}", "messages": messages}
    if record.tool_calls:
        case["tools"] = [
            {
                "name": each.name,
                "arguments": json.loads(json.dumps(each.arguments)),
                "error" if each.is_error else "result": each.result,
            }
            for each in record.tool_calls
        ]
    called = list(dict.fromkeys(each.name for each in record.tool_calls))
    case["expect"] = {"calls": called} if called else {}
    then = record.answer(Budgets())
    heading = [
        "It holds what people said: keep it as you keep the database.",
        "Say below expect what a good answer is, such as  contains: Rex  or  max_tokens: 200",
        "It was answered then:",
        *(f"  {line}" for line in visible(then.text or (then.error or "")).split("\n")),
    ]
    text = yaml.dump({"cases": [case]}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return "".join(f"# {line}".rstrip() + "\n" for line in heading) + str(text)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are read."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _write_text)
