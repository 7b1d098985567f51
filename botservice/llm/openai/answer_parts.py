"""What the answers of both wires have in common: calls, usage, numbers that may be missing."""

import json
from collections.abc import Iterable
from typing import Any

from botservice.messages import TokenUsage, ToolCall


def read_tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """Return the call that a model wrote; arguments that are no JSON object are kept as malformed."""
    try:
        parsed = json.loads(arguments) if arguments.strip() else {}
    except (json.JSONDecodeError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        return ToolCall(call_id, name, {}, malformed_arguments=arguments)
    return ToolCall(call_id, name, parsed)


def read_calls(calls: Iterable[tuple[str, str, str]]) -> tuple[ToolCall, ...]:
    """Return calls with ids that are there and differ, as the next prompt needs them to."""
    read: dict[str, ToolCall] = {}
    for number, (call_id, name, arguments) in enumerate(calls):
        unique = call_id if call_id and call_id not in read else f"{call_id or 'call'}_{number}"
        read[unique] = read_tool_call(unique, name, arguments)
    return tuple(read.values())


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
    return TokenUsage(
        usage.get(f"{given}_tokens") or 0,
        usage.get(f"{made}_tokens") or 0,
        cached_tokens=_number(details_in, "cached_tokens"),
        reasoning_tokens=_number(details_out, "reasoning_tokens"),
        cache_write_tokens=_number(details_in, "cache_write_tokens"),
        web_searches=_number(tools.get("web_search"), "num_requests") if isinstance(tools, dict) else None,
    )


def _number(details: Any, name: str) -> int | None:
    """Return a number above nothing: servers differ in what they send here, and only that says something."""
    number = details.get(name) if isinstance(details, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None
