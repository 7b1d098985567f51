"""What the model server refuses of the items of a Responses request."""

from typing import Any

from standins.openai_checks import check_image
from standins.openai_models import rules_of
from standins.openai_refusals import RefusedError, check_name, refuse, wrong_type

_MARK = "prompt_cache_breakpoint"
_KEYS = {
    "message": {"type", "role", "content", "status", "id", "phase"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller", "async"},
    "function_call_output": {"type", "id", "call_id", "output", "status", "caller", "name", "namespace"},
    "item_reference": {"type", "id"},
    "web_search_call": {"type", "id", "status", "action"},
}
_REQUIRED = {
    "message": ("role", "content"),
    "reasoning": ("id", "summary"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "item_reference": ("id",),
    "web_search_call": ("id", "status", "action"),
}
_PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "web_search_call": "ws_"}
_ROLES = ("assistant", "system", "developer", "user")
_ACTION_KEYS = {
    "search": {"type", "query", "queries", "sources"},
    "open_page": {"type", "url"},
    "find_in_page": {"type", "url", "pattern"},
}
_PART_KEYS = {
    "input_text": {"type", "text", _MARK},
    "input_image": {"type", "image_url", "file_id", "detail", _MARK},
    "input_file": {"type", "file_data", "file_id", "file_url", "filename", "detail", _MARK},
    "output_text": {"type", "text", "annotations", "logprobs"},
    "refusal": {"type", "refusal"},
}
_IN = ("input_text", "input_image", "input_file")
_OUT = ("output_text", "refusal")


def missing(param: str) -> RefusedError:
    return refuse(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")


def unknown(param: str) -> RefusedError:
    return refuse(f"Unknown parameter: '{param}'.", param=param, code="unknown_parameter")


def check_items(items: Any, model: str) -> None:
    """Check the input of a Responses request, item by item, and that calls and their outputs pair up."""
    if not isinstance(items, list):
        raise wrong_type("input", "one of a string or array of objects", items)
    for place, item in enumerate(items):
        at = f"input[{place}]"
        if not isinstance(item, dict):
            raise wrong_type(at, "an object", item)
        _check_item(at, item, model)
    _check_pairs(items)


def _check_item(at: str, item: dict[str, Any], model: str) -> None:
    kind = item.get("type", "message")
    if kind not in _KEYS:
        allowed = ", ".join(f"'{name}'" for name in _KEYS)
        raise refuse(
            f"Invalid value: '{kind}'. Supported values are: {allowed}.", param=f"{at}.type", code="invalid_value"
        )
    for name in item:
        if name not in _KEYS[kind]:
            raise unknown(f"{at}.{name}")
    for name in _REQUIRED[kind]:
        if name not in item:
            raise missing(f"{at}.{name}")
    prefix = _PREFIXES.get(kind)
    if prefix and item.get("id") is not None and not str(item["id"]).startswith(prefix):
        raise refuse(
            f"Invalid '{at}.id': '{item['id']}'. Expected an ID that begins with '{prefix[:-1]}'.",
            param=f"{at}.id",
            code="invalid_value",
        )
    _CHECKS[kind](at, item, model)


def _check_message(at: str, item: dict[str, Any], model: str) -> None:
    if item["role"] not in _ROLES:
        allowed = ", ".join(f"'{name}'" for name in _ROLES[:-1])
        raise refuse(
            f"Invalid value: '{item['role']}'. Supported values are: {allowed}, and '{_ROLES[-1]}'.",
            param=f"{at}.role",
            code="invalid_value",
        )
    if item.get("phase") not in (None, "commentary", "final_answer"):
        raise refuse(f"Invalid value: '{item['phase']}'.", param=f"{at}.phase", code="invalid_value")
    _check_content(f"{at}.content", item["content"], _OUT if item["role"] == "assistant" else _IN, model)


def _check_content(at: str, content: Any, kinds: tuple[str, ...], model: str) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise wrong_type(at, "one of an array of objects or string", content)
    for number, part in enumerate(content):
        here = f"{at}[{number}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in kinds:
            allowed = " and ".join(f"'{name}'" for name in kinds)
            raise refuse(f"Invalid value: '{kind}'. Supported values are: {allowed}.", param=here, code="invalid_value")
        for name in part:
            if name not in _PART_KEYS[kind]:
                raise unknown(f"{here}.{name}")
        _check_part(here, part, model)


def _check_part(at: str, part: dict[str, Any], model: str) -> None:
    kind = part["type"]
    text_field = {"input_text": "text", "output_text": "text", "refusal": "refusal"}.get(kind)
    if text_field and not isinstance(part.get(text_field), str):
        raise wrong_type(f"{at}.{text_field}", "a string", part.get(text_field))
    if kind == "input_image" and part.get("file_id") is None:
        if not isinstance(part.get("image_url"), str):
            raise wrong_type(f"{at}.image_url", "an image URL string", part.get("image_url"))
        check_image(part["image_url"], f"{at}.image_url")
    if kind == "input_file" and not {"file_data", "file_id", "file_url"} & part.keys():
        raise missing(f"{at}.file_id")
    if _MARK in part and not rules_of(model).keeps_marks:
        raise refuse(f"Unsupported parameter: '{at}.{_MARK}' is not supported with this model.", param=f"{at}.{_MARK}")


def _check_reasoning(at: str, item: dict[str, Any], model: str) -> None:
    if not isinstance(item["summary"], list):
        raise wrong_type(f"{at}.summary", "an array of objects", item["summary"])


def _check_call(at: str, item: dict[str, Any], model: str) -> None:
    check_name(f"{at}.name", item["name"])
    if not isinstance(item["arguments"], str):
        raise wrong_type(f"{at}.arguments", "a string", item["arguments"])
    if not isinstance(item["call_id"], str) or not 1 <= len(item["call_id"]) <= 64:
        raise refuse(f"Invalid '{at}.call_id': expected a string of 1 to 64 characters.", param=f"{at}.call_id")


def _check_output(at: str, item: dict[str, Any], model: str) -> None:
    _check_content(f"{at}.output", item["output"], _IN, model)


def _check_reference(at: str, item: dict[str, Any], model: str) -> None:
    raise refuse(f"Item with id '{item['id']}' not found.", param="input", status=404)


def _check_search(at: str, item: dict[str, Any], model: str) -> None:
    """Check a search that was made: what belongs to another kind of it is unknown, also where it is null."""
    known = _ACTION_KEYS.get(item["action"].get("type"))
    if known is None:
        raise refuse("Invalid value.", param=f"{at}.action.type", code="invalid_value")
    for name in item["action"]:
        if name not in known:
            raise unknown(f"{at}.action.{name}")


_CHECKS = {
    "web_search_call": _check_search,
    "message": _check_message,
    "reasoning": _check_reasoning,
    "function_call": _check_call,
    "function_call_output": _check_output,
    "item_reference": _check_reference,
}


def _check_pairs(items: list[dict[str, Any]]) -> None:
    called: set[str] = set()
    waiting: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            if item["call_id"] in called:
                raise refuse(f"Duplicate function call with call_id {item['call_id']}.", param="input")
            called.add(item["call_id"])
            waiting.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                raise refuse(
                    f"No tool call found for function call output with call_id {item['call_id']}.", param="input"
                )
            waiting.discard(item["call_id"])
    if waiting:
        raise refuse(f"No tool output found for function call {min(waiting)}.", param="input")
