"""What the answers of both wires have in common: calls, usage, numbers that may be missing."""

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botservice.core.messages import TokenUsage, ToolCall

_DEEPEST: Final = 64  # levels of arguments
_MOST_DIGITS: Final = 300  # of a number; the largest float has 309
_FENCE: Final = "```"
_PREFIX: Final = re.compile(r"(?:functions?|tools?|default_api)[.:]|(?:functions?|tools?)__(?=\w)")
_AFTER_NAME: Final = re.compile(r"<\|.*|:\d+$", re.DOTALL)  # tokens of a template, or the number of the call
_EMPTY: Final = "{}"
_LONGEST_NUMBER: Final = 16  # digits
_OF_CALLS: Final = ("id", "index", "type", "function")


@dataclass(slots=True)
class PartialCall:
    """A call that arrives in pieces.

    Attributes:
        extras: What else came with it, which the model may want to read again.
    """

    id: str = ""
    name: str = ""
    arguments: str = ""
    extras: dict[str, Any] = field(default_factory=dict)

    def is_whole(self) -> bool:
        """Return whether its arguments are an object: a server may send a first, empty one, and then the real one."""
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


class CallAssembler:
    """Puts calls together from the parts in which they arrive, whatever their server calls them.

    A part belongs to the call with its index. Servers leave the index out, or give every call the index 0, with an
    empty id, with none, or with the same one: a part that brings a name begins a call of its own where the one before
    is whole, has another id or another name, or came in the same chunk.
    """

    def __init__(self) -> None:
        self.calls: list[PartialCall] = []
        self._by_index: dict[Any, PartialCall] = {}

    def add(self, parts: Iterable[Mapping[str, Any]]) -> None:
        """Take the parts of calls that one chunk brings."""
        begun: list[PartialCall] = []
        for part in parts:
            function = part.get("function")
            function = function if isinstance(function, Mapping) else {}
            name, call_id = _text(function.get("name")), _text(part.get("id"))
            call = self._by_index.get(part.get("index"))
            if call is None and part.get("index") is None and not name and self.calls:
                call = self.calls[-1]
            if call is None or (name and _is_other(call, name, call_id, begun)):
                call = PartialCall()
                self.calls.append(call)
                begun.append(call)
            self._by_index[part.get("index")] = call
            call.id = call.id or call_id
            call.name = call.name or name
            arguments = as_text(function.get("arguments"))
            call.arguments = (
                arguments if arguments.strip() and call.arguments.strip() == _EMPTY else (call.arguments + arguments)
            )
            for key, value in part.items():
                if key not in _OF_CALLS and value:
                    call.extras[key] = merge(call.extras.get(key), value)


def _is_other(call: PartialCall, name: str, call_id: str, begun: list[PartialCall]) -> bool:
    """Return whether a part with a name begins another call than the one that its index names."""
    if any(call is each for each in begun):
        return True
    if (call_id and call.id and call_id != call.id) or (call.name and name != call.name):
        return True
    return call.arguments.strip() != _EMPTY and call.is_whole()


_NAMED_ONCE: Final = ("type", "id", "index", "format", "signature", "role", "name")


def merge(before: Any, new: Any) -> Any:
    """Return what two pieces of a field make, of which nothing is known but that it arrives in pieces.

    Texts follow one another, but for what names a thing. Objects are merged by their fields, and lists by the index
    that their items have.
    """
    if before is None:
        return new
    if isinstance(before, str) and isinstance(new, str):
        return before + new
    if isinstance(before, Mapping) and isinstance(new, Mapping):
        merged = dict(before)
        for key, value in new.items():
            if value is not None:
                merged[key] = value if key in _NAMED_ONCE else merge(merged.get(key), value)
        return merged
    if isinstance(before, list) and isinstance(new, list):
        items = list(before)
        for item in new:
            last = items[-1] if items else None
            if _is_same_item(last, item):
                items[-1] = merge(last, item)
            else:
                items.append(item)
        return items
    return new


def _is_same_item(last: Any, item: Any) -> bool:
    if not isinstance(last, Mapping) or not isinstance(item, Mapping) or item.get("index") is None:
        return False
    return last.get("index") == item["index"] and last.get("type") == item.get("type")


def read_tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """Return the call that a model wrote; arguments that are no JSON object are kept as malformed.

    So are those that JSON does not have, such as NaN, and those that no program expects: nested too deep, or with a
    number of hundreds of digits.
    """
    parsed = _arguments(arguments)
    if not isinstance(parsed, dict) or _is_deeper(parsed, _DEEPEST):
        return ToolCall(call_id, name, {}, malformed_arguments=arguments)
    return ToolCall(call_id, name, parsed)


def _arguments(arguments: str) -> Any:
    """Return the arguments of a call, in a code fence or encoded twice as well; None if unreadable."""
    inner = arguments.strip()
    if inner.startswith(_FENCE) and inner.endswith(_FENCE) and "\n" in inner:
        arguments = inner.partition("\n")[2].removesuffix(_FENCE)
    try:
        parsed = _parse(arguments) if arguments.strip() else {}
        if isinstance(parsed, str):
            parsed = _parse(parsed) if parsed.strip() else {}
    except (ValueError, RecursionError):
        return None
    return {} if parsed is None else parsed


def _parse(arguments: str) -> Any:
    return json.loads(arguments, parse_int=_integer, parse_float=_finite, parse_constant=_finite)


def _integer(written: str) -> int:
    if len(written) > _MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(written)


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written} is no number")
    return number


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether lists and objects stand in each other on more than so many levels."""
    inside: list[object] = [value]
    for _ in range(levels):
        inside = [
            each
            for held in inside
            if isinstance(held, dict | list)
            for each in (held.values() if isinstance(held, dict) else held)
            if isinstance(each, dict | list)
        ]
        if not inside:
            return False
    return True


def read_calls(calls: Iterable[tuple[str, str, str]], offered: Collection[str] = ()) -> tuple[ToolCall, ...]:
    """Return calls with ids that are there and differ, as the next prompt needs them to.

    Args:
        offered: The names of the tools that the model may call.
    """
    read: dict[str, ToolCall] = {}
    for number, (call_id, name, arguments) in enumerate(calls):
        unique = call_id if call_id and call_id not in read else f"{call_id or 'call'}_{number}"
        read[unique] = read_tool_call(unique, _name(name, offered), arguments)
    return tuple(read.values())


def _name(name: str, offered: Collection[str]) -> str:
    """Return the name of the tool that a model means: some write more than that, as their template has it."""
    if name in offered or not offered:
        return name
    plain = _AFTER_NAME.sub("", name.strip())
    return next((each for each in (plain.strip(), _PREFIX.sub("", plain.strip(), count=1)) if each in offered), name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_text(arguments: Any) -> str:
    """Return a call's arguments as they are read."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments)  # some servers parse them


def read_usage(usage: Any, *, given: str, made: str, tools: Any = None) -> TokenUsage | None:
    """Return what a call took.

    Args:
        given: What the wire calls tokens that go in, such as prompt.
        made: What it calls tokens that come out.
        tools: What it says of the tools that the server ran itself.
    """
    if not isinstance(usage, dict):
        return None
    details_in, details_out = usage.get(f"{given}_tokens_details"), usage.get(f"{made}_tokens_details")
    given_tokens, made_tokens = _count(usage.get(f"{given}_tokens")), _count(usage.get(f"{made}_tokens"))
    if given_tokens is None and made_tokens is None:
        return None
    return TokenUsage(
        given_tokens or 0,
        made_tokens or 0,
        cached_tokens=_number(details_in, "cached_tokens"),
        reasoning_tokens=_number(details_out, "reasoning_tokens"),
        cache_write_tokens=_number(details_in, "cache_write_tokens"),
        web_searches=_number(tools.get("web_search"), "num_requests") if isinstance(tools, dict) else None,
    )


def _number(details: Any, name: str) -> int | None:
    """Return a number above nothing: servers differ in what they send here, and only that says something."""
    return _count(details.get(name)) or None if isinstance(details, dict) else None


def _count(number: Any) -> int | None:
    """Return a number of tokens; some servers write it as a text, or as a fraction, and none can be below 0."""
    if isinstance(number, str) and number.isdecimal() and len(number) < _LONGEST_NUMBER:
        number = int(number)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
