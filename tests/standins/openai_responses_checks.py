"""What the model server refuses of a Responses request, besides its items."""

import re
from typing import Any

from standins.openai_checks import check_temperature, words
from standins.openai_items import check_items, missing, unknown
from standins.openai_models import check_effort, rules_of
from standins.openai_refusals import check_name, refuse, too_long, wrong_type
from standins.openai_tool_checks import check_choice, check_function

FIELDS = words(
    "background context_management conversation include input instructions max_output_tokens max_tool_calls metadata "
    "model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options "
    "prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text "
    "tool_choice tools top_logprobs top_p truncation user"
)
MOVED = {
    "reasoning_effort": "reasoning.effort",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "messages": "input",
    "response_format": "text.format",
}
INCLUDED = {
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "web_search_call.action.sources",
    "web_search_call.results",
}
_TOOL_KEYS = {"type", "name", "description", "parameters", "strict", "defer_loading", "output_schema"}
_SEARCH_KEYS = {"type", "filters", "user_location", "search_context_size", "external_web_access"}
_FEWEST_TOKENS = 16


def check_responses(body: dict[str, Any]) -> None:
    """Check a body of /v1/responses.

    Raises:
        RefusedError: OpenAI would refuse it.
    """
    for name in body:
        if name in MOVED:
            message = (
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{MOVED[name]}'."
            )
            raise refuse(message, param=name, code="unsupported_parameter")
        if name not in FIELDS:
            raise unknown(name)
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise missing("model")
    if "input" not in body:
        raise missing("input")
    if not isinstance(body["input"], str):
        check_items(body["input"], body["model"])
    _check_tools(body)
    _check_reasoning(body)
    _check_options(body)


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise wrong_type("tools", "an array of objects", tools)
    for number, tool in enumerate(tools):
        if isinstance(tool, dict) and tool.get("type") in ("web_search", "web_search_2025_08_26"):
            _check_search(number, tool, body)
            continue
        if not isinstance(tool, dict) or tool.get("type") != "function":
            raise refuse(f"Invalid value: {tool!r}.", param=f"tools[{number}].type", code="invalid_value")
        for name in ("name", "parameters", "strict"):
            if name not in tool:
                raise missing(f"tools[{number}].{name}")
        for name in tool:
            if name not in _TOOL_KEYS:
                raise unknown(f"tools[{number}].{name}")
        if not isinstance(tool["strict"], bool | None):
            raise wrong_type(f"tools[{number}].strict", "a boolean", tool["strict"])
        check_name(f"tools[{number}].name", tool["name"])
        check_function(number, tool)
    check_choice(body.get("tool_choice"), [tool["name"] for tool in tools if "name" in tool])


def _check_search(number: int, tool: dict[str, Any], body: dict[str, Any]) -> None:
    """Check the tool by which the server searches the web."""
    for name in tool:
        if name not in _SEARCH_KEYS:
            raise unknown(f"tools[{number}].{name}")
    place = tool.get("user_location")
    if place is not None:
        if place.get("type") != "approximate":
            raise refuse("Invalid value.", param=f"tools[{number}].user_location.type", code="invalid_value")
        for name in place:
            if name not in {"type", "city", "country", "region", "timezone"}:
                raise unknown(f"tools[{number}].user_location.{name}")
    if (body.get("reasoning") or {}).get("effort") == "minimal":
        message = "The following tools cannot be used with reasoning.effort 'minimal': web_search."
        raise refuse(message, param="tools")


def _check_reasoning(body: dict[str, Any]) -> None:
    reasoning, rules = body.get("reasoning") or {}, rules_of(body["model"])
    for name in reasoning:
        if name not in {"effort", "summary", "generate_summary", "context", "mode"}:
            raise unknown(f"reasoning.{name}")
    check_effort(body["model"], reasoning.get("effort"), "reasoning.effort")
    if reasoning.get("summary") not in (None, "auto", "concise", "detailed"):
        raise refuse(f"Invalid value: '{reasoning['summary']}'.", param="reasoning.summary", code="invalid_value")
    check_temperature(body["model"], body.get("temperature"), reasoning.get("effort"))
    for number, name in enumerate(body.get("include") or ()):
        if name not in INCLUDED:
            raise refuse(f"Invalid value: '{name}'.", param=f"include[{number}]", code="invalid_value")
        if name == "reasoning.encrypted_content" and re.match("gpt-[34]", body["model"]) and not rules.reasons:
            raise refuse("Encrypted content is not supported with this model.", param="include")


def _check_options(body: dict[str, Any]) -> None:
    most = body.get("max_output_tokens")
    if most is not None and most < _FEWEST_TOKENS:
        raise refuse(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_FEWEST_TOKENS}, but got "
            f"{most} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    for name in body.get("stream_options") or {}:
        if name != "include_obfuscation":
            raise unknown(f"stream_options.{name}")
    if body.get("previous_response_id") is not None:
        given = body["previous_response_id"]
        message = f"Previous response with id '{given}' not found."
        raise refuse(message, param="previous_response_id", code="previous_response_not_found")
    if len(body.get("prompt_cache_key") or "") > 64:
        raise too_long("prompt_cache_key", 64, len(body["prompt_cache_key"]))
