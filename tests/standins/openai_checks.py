"""What the model server refuses, in its own words: requests are checked as strictly as OpenAI checks them."""

import base64
import binascii
import json
import re
from collections.abc import Collection
from typing import Any

from standins.openai_models import check_effort, check_tools_by_chat, rules_of
from standins.openai_refusals import RefusedError, check_name, refuse, too_long, wrong_type
from standins.openai_tool_checks import check_tools


def words(words: str) -> frozenset[str]:
    return frozenset(words.split())


CHAT_FIELDS = words(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages "
    "metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed "
    "service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options"
)
EMBEDDING_FIELDS = words("dimensions encoding_format input model user")
TRANSCRIPTION_FIELDS = words(
    "chunking_strategy file include keywords known_speaker_names known_speaker_references language languages model "
    "prompt response_format stream temperature timestamp_granularities"
)
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PARTS = ("text", "image_url", "input_audio", "refusal", "audio", "file")


def read_json(raw: bytes) -> dict[str, Any]:
    """Return a request's body.

    Raises:
        RefusedError: It is no JSON object, or holds half a character.
    """
    hint = (
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
        "correctly.)"
    )
    try:
        body = json.loads(raw)
        json.dumps(body, ensure_ascii=False).encode()  # a lone surrogate is no text
    except ValueError as error:
        raise refuse(hint) from error
    if not isinstance(body, dict):
        raise refuse(hint)
    return body


def check_fields(body: dict[str, Any], known: frozenset[str]) -> None:
    unknown = [name for name in body if name not in known]
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        raise refuse(f"Unrecognized request argument{plural} supplied: {', '.join(unknown)}")


def check_known(body: dict[str, Any], unknown: Collection[str]) -> None:
    """Check a body as an older server does, which does not know some fields."""
    refused = [name for name in body if name in unknown]
    if refused:
        raise refuse(f"Unrecognized request argument supplied: {refused[0]}")


def check_chat(body: dict[str, Any]) -> None:
    """Check a chat.completions body.

    Raises:
        RefusedError: OpenAI would refuse it.
    """
    check_fields(body, CHAT_FIELDS)
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise refuse("you must provide a model parameter")
    _check_messages(body.get("messages"))
    check_tools(body)
    check_tools_by_chat(body)
    check_effort(body["model"], body.get("reasoning_effort"), "reasoning_effort")
    _check_options(body)


def _check_messages(messages: Any) -> None:
    if messages is None:
        raise refuse("Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter")
    if not isinstance(messages, list):
        raise wrong_type("messages", "an array of objects", messages)
    if not messages:
        raise refuse(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="messages",
            code="empty_array",
        )
    open_ids: list[str] = []
    known_ids: set[str] = set()
    asked_at = 0
    for index, message in enumerate(messages):
        _check_message(index, message)
        if message["role"] == "tool":
            _check_tool_answer(index, message, known_ids)
            if message["tool_call_id"] in open_ids:
                open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            raise _unanswered(asked_at, open_ids)
        asked_at, open_ids = index, [call["id"] for call in message.get("tool_calls") or ()]
        known_ids = set(open_ids)
        if len(known_ids) != len(open_ids):
            raise refuse(
                f"Duplicate value for 'tool_call_id' in message {index}", param=f"messages.[{index}].tool_calls"
            )
    if open_ids:
        raise _unanswered(asked_at, open_ids)


def _unanswered(index: int, ids: list[str]) -> RefusedError:
    return refuse(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}",
        param=f"messages.[{index}].role",
    )


def _check_tool_answer(index: int, message: dict[str, Any], known_ids: set[str]) -> None:
    if not known_ids:
        raise refuse(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "  # codespell:ignore
            "message with 'tool_calls'.",
            param=f"messages.[{index}].role",
        )
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        param = f"messages[{index}].tool_call_id"
        raise refuse(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")
    if call_id not in known_ids:
        raise refuse(
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message.",
            param=f"messages.[{index}].tool_call_id",
        )


def _check_message(index: int, message: Any) -> None:
    at = f"messages[{index}]"
    if not isinstance(message, dict):
        raise wrong_type(at, "an object", message)
    role = message.get("role")
    if role not in ROLES:
        allowed = ", ".join(f"'{name}'" for name in ROLES[:-1])
        raise refuse(
            f"Invalid value: '{role}'. Supported values are: {allowed}, and '{ROLES[-1]}'.",
            param=f"{at}.role",
            code="invalid_value",
        )
    name = message.get("name")
    if name is not None and (not isinstance(name, str) or not re.fullmatch(r"[^\s<|\\/>]{1,64}", name)):
        raise refuse(
            f"Invalid '{at}.name': string does not match pattern. "
            "Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.",
            param=f"{at}.name",
            code="invalid_value",
        )
    if "tool_calls" in message:
        _check_calls(at, role, message["tool_calls"])
    _check_content(at, role, message)


def _check_content(at: str, role: str, message: dict[str, Any]) -> None:
    content = message.get("content")
    may_be_null = role == "assistant" and (message.get("tool_calls") or message.get("refusal"))
    if content is None and not may_be_null:
        raise refuse(
            "Invalid value for 'content': expected a string, got null.", param=f"{at.replace('[', '.[')}.content"
        )
    if isinstance(content, list):
        if not content:
            raise refuse(f"Invalid '{at}.content': empty array.", param=f"{at}.content", code="empty_array")
        for number, part in enumerate(content):
            _check_part(f"{at}.content[{number}]", at, role, part)
    elif content is not None and not isinstance(content, str):
        raise wrong_type(f"{at}.content", "one of a string or array of objects", content)


def _check_part(at: str, message_at: str, role: str, part: Any) -> None:
    if not isinstance(part, dict):
        raise wrong_type(at, "an object", part)
    kind = part.get("type")
    if kind not in PARTS:
        allowed = ", ".join(f"'{name}'" for name in PARTS[:-1])
        message = f"Invalid value: '{kind}'. Supported values are: {allowed}, and '{PARTS[-1]}'."
        raise refuse(message, param=f"{at}.type", code="invalid_value")
    if kind == "text" and not isinstance(part.get("text"), str):
        raise wrong_type(f"{at}.text", "a string", part.get("text"))
    if kind != "image_url":
        return
    if role != "user":
        raise refuse(
            f"Invalid '{message_at}'. Image URLs are only allowed for messages with role 'user', but this message "
            f"with role '{role}' contains an image URL.",
            param=message_at,
            code="invalid_value",
        )
    image = part.get("image_url")
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        raise wrong_type(f"{at}.image_url", "an object", image)
    check_image(image["url"], f"{at}.image_url.url")


def check_image(url: str, param: str) -> None:
    if re.match(r"https?://", url):
        return
    found = re.fullmatch(r"data:([\w/+.-]+);base64,(.*)", url, re.DOTALL)
    if found is None:
        raise refuse(f"Invalid image URL: '{url[:60]}'.", param=param, code="invalid_image_url")
    if found[1] not in {"image/png", "image/jpeg", "image/gif", "image/webp"}:
        raise refuse(
            f"Invalid MIME type: '{found[1]}'. Only image types are supported.",
            param=param,
            code="invalid_image_format",
        )
    try:
        data = base64.b64decode(found[2], validate=True)
    except binascii.Error as error:
        raise refuse("Invalid base64 image_url.", param=param, code="invalid_base64") from error
    if not data:
        raise refuse(
            "You uploaded an unsupported image. Please make sure your image is valid.", code="image_parse_error"
        )


def _check_calls(at: str, role: str, calls: Any) -> None:
    if role != "assistant":
        raise refuse(
            f"Invalid parameter: 'tool_calls' is only allowed for messages with role 'assistant', not '{role}'.",
            param=f"{at}.tool_calls",
        )
    if not isinstance(calls, list):
        raise wrong_type(f"{at}.tool_calls", "an array of objects", calls)
    if not calls:
        raise refuse(
            f"Invalid '{at}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array "
            "instead.",
            param=f"{at}.tool_calls",
            code="empty_array",
        )
    for number, call in enumerate(calls):
        here = f"{at}.tool_calls[{number}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type") != "function" or not isinstance(call.get("id"), str):
            raise refuse(f"Missing required parameter: '{here}'.", param=here, code="missing_required_parameter")
        if len(call["id"]) > 40:
            raise too_long(f"{here}.id", 40, len(call["id"]))
        check_name(f"{here}.function.name", function.get("name"))
        if not isinstance(function.get("arguments"), str):
            raise wrong_type(f"{here}.function.arguments", "a string", function.get("arguments"))


def _check_options(body: dict[str, Any]) -> None:
    if body.get("stream_options") is not None and not body.get("stream"):
        raise refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options")
    if "stream" in body and not isinstance(body["stream"], bool | None):
        raise wrong_type("stream", "a boolean", body["stream"])
    if rules_of(body["model"]).reasons and body.get("max_tokens") is not None:
        raise refuse(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    check_temperature(body["model"], body.get("temperature"), body.get("reasoning_effort"))


def check_temperature(model: str, temperature: Any, effort: Any) -> None:
    if temperature is None:
        return
    if not isinstance(temperature, int | float):
        raise wrong_type("temperature", "a decimal", temperature)
    if not 0 <= temperature <= 2:
        raise refuse(f"Invalid 'temperature': {temperature} is not between 0 and 2.", param="temperature")
    if rules_of(model).reasons and temperature != 1 and effort != "none":
        raise refuse(
            f"Unsupported value: 'temperature' does not support {temperature} with this model. Only the default (1) "
            "value is supported.",
            param="temperature",
            code="unsupported_value",
        )
