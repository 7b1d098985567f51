"""The file of cases, read and written: past turns and questions, and what their answers have to be."""

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Final

import yaml
from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError

from botservice.conversation.replay import visible
from botservice.core.errors import BotServiceError
from botservice.core.policies import NANO
from botservice.devtools.recorded_turn import RecordedTurn
from botservice.devtools.replayed_answers import ReplayedAnswer, ReplayedCall, ResultOrigin, find_fault
from botservice.devtools.yaml_lines import YamlLocation
from botservice.llm.chat import ChatMessage
from botservice.llm.tokens import counter_for
from botservice.people.budgets import Budgets
from botservice.search.languages import CODES, guess
from botservice.search.tokens import tokenize

_SCRIPTS: Final = {"HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja", "THAI": "th", "CJK": "zh"}
LANGUAGES: Final = tuple(sorted({*CODES, *_SCRIPTS.values()}))
"""What can be told apart."""
_MOST: Final = 4_000  # characters that are looked at


def language_of(text: str) -> str | None:
    """Return the two letters of the language that a text is in, or None if that is not clear."""
    scripts = [unicodedata.name(each, "").partition(" ")[0] for each in text[:_MOST] if each.isalpha()]
    counts = Counter(_SCRIPTS[script] for script in scripts if script in _SCRIPTS)
    if counts.total() * 2 > len(scripts):
        return "ja" if counts["ja"] else max(_SCRIPTS.values(), key=lambda code: counts[code])
    found = guess(tokenize(text[:_MOST]))
    return None if found < 0 else CODES[found]


_IN_LINEAR_TIME: Final = ConfigDict(regex_engine="rust-regex")


class Pattern:
    """A regular expression as the Rust library `regex` reads it: without look-around and back-references."""

    __slots__ = ("_texts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._texts = TypeAdapter(Annotated[str, StringConstraints(pattern=text)], config=_IN_LINEAR_TIME)
        except Exception as error:  # noqa: BLE001 - pydantic offers no name for the error of a pattern
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
            self._texts.validate_python(text)
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


def find_failures(answer: ReplayedAnswer, expect: Expectations) -> list[str]:
    """Return the expectations that an answer does not meet, each in a line. It may block for a moment."""
    if answer.error is not None:
        return [f"no answer: {answer.error}"]
    return [*_of_text(answer.text, expect), *_of_calls(answer, expect), *_of_costs(answer, expect)]


def _of_text(text: str, expect: Expectations) -> Iterator[str]:
    small = text.casefold()
    yield from (f"does not contain {each!r}" for each in expect.contains if each.casefold() not in small)
    yield from (f"contains {each!r}" for each in expect.not_contains if each.casefold() in small)
    yield from (f"does not match {each.text!r}" for each in expect.regex if not each.is_in(text))
    yield from (f"matches {each.text!r}" for each in expect.not_regex if each.is_in(text))
    if expect.language is not None and (found := language_of(text)) != expect.language:
        yield f"is in {found or 'no language that can be told'}, not in {expect.language}"


def _of_calls(answer: ReplayedAnswer, expect: Expectations) -> Iterator[str]:
    called = {each.name for each in answer.tool_calls}
    yield from (f"does not call {each}" for each in expect.calls if each not in called)
    yield from (f"calls {each}" for each in expect.not_calls if each in called)


def _of_costs(answer: ReplayedAnswer, expect: Expectations) -> Iterator[str]:
    if expect.max_tokens is not None:
        tokens = count_said(answer)
        if tokens > expect.max_tokens:
            yield f"takes {tokens:,} tokens, not {expect.max_tokens:,} at most"
    if expect.max_cost is not None:
        if answer.cost is None:
            yield "costs nobody knows what: PRICES says what its model costs"
        elif answer.cost > expect.max_cost * NANO:
            yield f"costs {answer.cost / NANO:.6f}, not {expect.max_cost:g} at most"


def count_said(answer: ReplayedAnswer) -> int:
    """Return how many tokens were written for an answer; where no server says, about how many are in it."""
    if answer.usage is not None:
        return answer.usage.output_tokens
    return counter_for(answer.models[-1] if answer.models else None).count(answer.text)


_OF_PEOPLE: Final = ("author", "history", "facts")
_OF_TURNS: Final = dict.fromkeys(("context", "call"), "goes with turn")
_OF_QUESTIONS: Final = dict.fromkeys(_OF_PEOPLE, "goes with question; messages are the whole prompt")
_RECORDED: Final = dict.fromkeys((*_OF_PEOPLE, "tools"), "is in the record of a past turn: leave it out")
# What a case of each kind cannot have, and why.
_NOT_WITH: Final = {"question": _OF_TURNS, "messages": _OF_TURNS | _OF_QUESTIONS, "turn": _RECORDED, "turns": _RECORDED}

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
    tools: tuple[tuple[ReplayedCall, bool], ...] = ()


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
    if fault := find_fault(message):
        place.refuse(fault)
    return dict(message)


def _said(place: YamlLocation) -> tuple[str, str]:
    fields = place.fields(("user", "assistant"))
    if len(fields) != 1:
        place.refuse("each line of a history is what one said: user: … or assistant: …")
    ((role, said),) = fields.items()
    return role, said.text()


def _tool(place: YamlLocation) -> tuple[ReplayedCall, bool]:
    fields = place.fields(("name", "arguments", "result", "error"))
    if "name" not in fields or ("result" in fields) == ("error" in fields):
        place.refuse("a tool has a name, and a result or an error; arguments where the result is for them alone")
    arguments = fields["arguments"].value() if "arguments" in fields else {}
    if not isinstance(arguments, dict):
        fields["arguments"].refuse("arguments must be a mapping")
    is_error = "error" in fields
    result = fields["error" if is_error else "result"].text()
    call = ReplayedCall(fields["name"].text(), arguments, result, ResultOrigin.RECORD, is_error)
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
    tuple[tuple[ReplayedCall, bool], ...]: lambda place: tuple(map(_tool, place.items())),
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
