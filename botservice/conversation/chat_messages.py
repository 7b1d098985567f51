"""Steps as chat-completions messages."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from botservice.conversation.field_values import ToolResult
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import (
    error_text,
    image_url,
    images,
    listed,
    match_results,
    sendable,
    strict_json,
)
from botservice.conversation.steps import (
    ActionStep,
    FailedStep,
    FinalAnswerStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
)
from botservice.core.messages import SHOWN_TYPES, Attachment, ToolCall
from botservice.llm.chat import SaidMessage

INTERRUPTED: Final = "Interrupted: the outcome of this call is unknown. It may have taken effect, or not."
"""What stands for the result of a call that started and has none."""
_CARRY_OUT: Final = "Now go on, and carry out this plan."  # some servers refuse an assistant's message as the last one
_NOT_SHOWN: Final = "[A tool gave a picture here that cannot be shown to you.]"
_RESULT_OF_LAST: Final = "The result stands together with the one of the last call."
# Source: OpenAI API reference, chat completions, the name of a function. A model may invent a name that its own
# server refuses to read again.
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH: Final = 64


def step_messages(
    step: MemoryItem, *, summary_mode: bool = False, memory_keys: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Return the messages in which the model sees one step.

    Every tool call has exactly one result, right after the call, with an id that is unique within the step. A step of
    a class of the user's shows its memory_keys only.

    Args:
        summary_mode: Leave out what the model was told and what it thought: system prompts, plans and model outputs.
        memory_keys: Names of fields of the step to show as well.
    """
    messages = _messages(step, summary_mode=summary_mode)
    return [*(messages if summary_mode else _with_items(step, messages)), *_notes(step, memory_keys)]


def _messages(step: MemoryItem, *, summary_mode: bool) -> list[dict[str, Any]]:
    match step:
        case ActionStep() if not isinstance(step, FailedStep):
            return _action_messages(step, summary_mode=summary_mode)
        case TaskStep():
            return [{"role": "user", "content": _task_content(step)}]
        case PlanningStep() if not summary_mode:
            return [*_said("assistant", step.plan), *_said("user", step.plan and _CARRY_OUT)]
        case SystemPromptStep() if not summary_mode:
            return _said("system", step.system_prompt)
        case FinalAnswerStep():
            return _said("assistant", step.output)
        case _:
            return []


def _with_items(step: MemoryItem, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages, of which the first knows the items that the model said it with."""
    items = [item for item in listed(step.get_value("model_items")) if isinstance(item, Mapping)]
    if not items or not messages or messages[0]["role"] != "assistant":
        return messages
    return [SaidMessage(messages[0], items), *messages[1:]]


def _said(role: str, content: Any) -> list[dict[str, Any]]:
    return [] if content is None else [{"role": role, "content": sendable(content)}]


def _task_content(step: TaskStep) -> str | list[dict[str, Any]]:
    text = f"New task: {sendable(step.task)}"
    parts = _image_parts(step.task_images)
    return [{"type": "text", "text": text}, *parts] if parts else text


def _action_messages(step: ActionStep, *, summary_mode: bool) -> list[dict[str, Any]]:
    calls = [call for call in listed(step.tool_calls) if isinstance(call, ToolCall)]
    output = None if summary_mode else step.model_output
    parts = _image_parts(step.observations_images)
    seen = [{"role": "user", "content": parts}] if parts else []
    if calls:
        return [*_call_messages(step, calls, output), *seen]
    return [*_said("assistant", output), *_outcome(step), *seen]


def _outcome(step: ActionStep) -> list[dict[str, Any]]:
    if step.observations is not None:
        return _said("user", f"Observation: {sendable(step.observations)}")
    return [] if step.error is None else _said("user", f"Error: {error_text(step.error)}")


def _call_messages(step: ActionStep, calls: Sequence[ToolCall], output: str | None) -> list[dict[str, Any]]:
    ids = _unique_ids(calls)
    functions = [{"name": _name(call), "arguments": _arguments(call)} for call in calls]
    asked = [
        {"id": id_, "type": "function", "function": function} for id_, function in zip(ids, functions, strict=True)
    ]
    texts = _result_texts(step, calls)
    return [
        {"role": "assistant", "content": None if output is None else sendable(output), "tool_calls": asked},
        *({"role": "tool", "tool_call_id": i, "content": sendable(t)} for i, t in zip(ids, texts, strict=True)),
    ]


def _result_texts(step: ActionStep, calls: Sequence[ToolCall]) -> list[str]:
    """Return one text per call; where the observation was rewritten, it stands whole as the last one."""
    waiting = [result for result in listed(step.tool_results) if isinstance(result, ToolResult)]
    written = None if step.observations is None else sendable(step.observations)
    joined = "\n".join(sendable(result.text) for result in waiting)
    is_rewritten = written is not None and (not waiting or written != joined)
    missing = _RESULT_OF_LAST if is_rewritten and not waiting else INTERRUPTED
    texts = [missing if result is None else result.text for result in match_results(calls, waiting)]
    if written is not None and is_rewritten:
        texts[-1] = written
    elif texts[-1] is INTERRUPTED and step.error is not None:
        texts[-1] = f"Error: {error_text(step.error)}"
    return texts


def _unique_ids(calls: Sequence[ToolCall]) -> list[str]:
    own = [sendable(call.id) or "call" for call in calls]
    ids: list[str] = []
    for id_ in own:
        others = (f"{id_}-{number}" for number in count(2))
        ids.append(id_ if id_ not in ids else next(other for other in others if other not in own and other not in ids))
    return ids


def _name(call: ToolCall) -> str:
    return _NOT_IN_NAMES.sub("_", sendable(call.name))[:_NAME_LENGTH] or "_"


def _arguments(call: ToolCall) -> str:
    is_readable = call.malformed_arguments is None and isinstance(call.arguments, Mapping)
    return sendable(strict_json(dict(call.arguments))) if is_readable else "{}"


def _image_parts(value: Any) -> list[dict[str, Any]]:
    return [_image_part(image) for image in images(value)]


def _image_part(image: Attachment) -> dict[str, Any]:
    """Return a picture; what no provider takes is named."""
    if image.mime_type.lower() not in SHOWN_TYPES:
        return {"type": "text", "text": sendable(image)}
    return {"type": "image_url", "image_url": {"url": image_url(image)}}


def without_pictures(messages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return messages of steps with a note in the place of each picture."""
    return [_without_pictures(message) for message in messages]


def _without_pictures(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = (_NOT_SHOWN if part.get("type") == "image_url" else part.get("text", "") for part in content)
    return {**message, "content": "\n".join(parts)}


def _notes(step: MemoryItem, memory_keys: Iterable[str]) -> list[dict[str, Any]]:
    shown = {key: value for key, value in step.filter(memory_keys).items() if value is not None}
    return _said("user", f"Notes: {sendable(shown)}") if shown else []
