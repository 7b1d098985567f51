"""Calls of tools as people type them to the demo: `add 2 3`, `add a=2 b=3`, `order large pizza 2`."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.core.messages import ToolCall
from botservice.llm.chat import ToolSchema

_QUOTED: Final = r"\"[^\"]*\"|'[^']*'(?!\w)|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」"
_WORD: Final = re.compile(rf"(?:(?P<name>\w+)=)?(?P<value>(?:{_QUOTED})(?=[\s,]|$)|\S*)\s*")
_NO_VALUE: Final = object()


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a message, or several in quotation marks.

    Attributes:
        begin: Where it begins in the text, its name included.
    """

    name: str | None
    value: str
    begin: int
    end: int


def read_call(text: str, tools: Sequence[ToolSchema]) -> ToolCall | None:
    """Return the call of a tool whose name a message begins with, or None where its arguments are not all there.

    Numbers and choices take one word each. A text takes all words that are left, as they stand.
    """
    name, _, rest = text.strip().partition(" ")
    found = next((tool["function"]["parameters"] for tool in tools if tool["function"]["name"] == name), None)
    if found is None:
        return None
    parameters: Mapping[str, Mapping[str, Any]] = found.get("properties", {})
    arguments = _read_arguments(rest.strip(), parameters, found.get("required", ()))
    if arguments is None or not arguments.keys() >= set(found.get("required", ())):
        return None
    return ToolCall("demo_call", name, arguments)


def describe_call(tool: ToolSchema) -> str:
    """Return how a call of a tool is typed, such as `order DISH [COUNT]`."""
    function = tool["function"]
    required = function["parameters"].get("required", ())
    parts = [
        each.upper() if each in required else f"[{each.upper()}]"
        for each in function["parameters"].get("properties", {})
    ]
    return " ".join((function["name"], *parts))


def _read_arguments(
    text: str, parameters: Mapping[str, Mapping[str, Any]], required: Sequence[str]
) -> dict[str, Any] | None:
    """Return the arguments that a text gives; None where something of it is left over."""
    words = _words(text, parameters)
    arguments = {each.name: _value(each.value, parameters[each.name]) for each in words if each.name is not None}
    left = [each for each in words if each.name is None]
    open_ = [name for name in parameters if name not in arguments]
    texts = [name for name in open_ if _is_text(parameters[name])]
    texts = [name for name in texts if name in required] or texts[:1]
    before = open_[: open_.index(texts[0])] if texts else open_
    after = open_[open_.index(texts[-1]) + 1 :] if texts else []
    for name in before:
        if left and (value := _typed(left[0].value, parameters[name])) is not _NO_VALUE:
            arguments[name] = value
            del left[0]
    needed = len(texts)
    for name in reversed([each for each in after if not _is_text(parameters[each])]):
        if len(left) > needed and (value := _typed(left[-1].value, parameters[name])) is not _NO_VALUE:
            arguments[name] = value
            del left[-1]
    for name in texts[:-1]:
        if left:
            arguments[name] = left.pop(0).value.rstrip(",;")
    if texts and left:
        is_followed = left[-1] is not next(each for each in reversed(words) if each.name is None)
        given = left[0].value if len(left) == 1 else text[left[0].begin : left[-1].end]
        arguments[texts[-1]] = given.rstrip(",; ") if is_followed else given
        left = []
    return None if left else {name: arguments[name] for name in parameters if name in arguments}


def _words(text: str, parameters: Mapping[str, Any]) -> list[_Word]:
    found: list[_Word] = []
    for match in _WORD.finditer(text):
        if not match.group().strip():
            continue
        name, value = match["name"], match["value"]
        if name is not None and name not in parameters:
            name, value = None, f"{name}={value}"
        elif re.fullmatch(_QUOTED, value):
            value = value[1:-1]
        found.append(_Word(name, value, match.start(), match.end("value")))
    return found


def _is_text(schema: Mapping[str, Any]) -> bool:
    return "string" in _types(schema) and "enum" not in schema


def _types(schema: Mapping[str, Any]) -> set[str]:
    kinds = schema.get("type", ())
    found = {kinds} if isinstance(kinds, str) else set(kinds)
    return found.union(*(_types(each) for each in schema.get("anyOf", ())))


def _value(word: str, schema: Mapping[str, Any]) -> Any:
    """Return what a word means as the value of a parameter; the word itself where it means nothing there."""
    found = word if _is_text(schema) else _typed(word, schema)
    return word if found is _NO_VALUE else found


def _typed(word: str, schema: Mapping[str, Any]) -> Any:
    """Return the value that a word is, or `_NO_VALUE` where the parameter takes no such thing."""
    if "enum" in schema:
        return next((each for each in schema["enum"] if str(each).casefold() == word.casefold()), _NO_VALUE)
    if _is_text(schema):
        return word
    for each in (word, word.rstrip(",;"), word.rstrip(",;.").casefold()):
        try:
            value = json.loads(each)
        except ValueError:
            continue
        if _fits(value, _types(schema)):
            return value
    return _NO_VALUE


def _fits(value: Any, types: set[str]) -> bool:
    if isinstance(value, bool):
        return not types or "boolean" in types
    kinds = {int: {"integer", "number"}, float: {"number"}, list: {"array"}, dict: {"object"}, type(None): {"null"}}
    return not types or bool(types & kinds.get(type(value), {"string"}))
