"""Running what a model wants to run. Whatever goes wrong becomes an observation that the model sees."""

import asyncio
import inspect
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from botservice.contexts import AgentContext
from botservice.messages import Attachment, ToolCall
from botservice.telemetry import redact
from botservice.tools.tool import Tool

logger = logging.getLogger(__name__)

LONGEST_OBSERVATION = 100_000  # characters; what is cut is said


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call.

    Attributes:
        text: What the model sees.
        output: What the tool returned, as JSON values; None where it failed.
        error_type: The kind of failure, where it failed.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    output: Any = None
    error_type: str | None = None
    duration_seconds: float | None = None

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.error_type is not None


class ToolError(Exception):
    """A call that cannot be made as the model wants it."""


async def execute(tools: Mapping[str, Tool], call: ToolCall, context: AgentContext) -> ToolOutcome:
    """Return what came of a call; only cancellation passes through."""
    started = time.monotonic()
    try:
        outcome = await _run(tools, call, context)
    except ToolError as error:
        outcome = ToolOutcome(str(error), error_type="ToolError")
    except TimeoutError as error:
        outcome = ToolOutcome(f"Error: {error}", error_type="TimeoutError")
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        outcome = ToolOutcome(f"Error: {call.name} was cancelled by itself", error_type="CancelledError")
    except Exception as error:  # noqa: BLE001 - tools are foreign code
        logger.warning("tool.failed", exc_info=True, extra={"tool": call.name})
        outcome = ToolOutcome(
            redact(f"Error: {type(error).__name__}: {error}")[:LONGEST_OBSERVATION], error_type=type(error).__name__
        )
    return ToolOutcome(
        outcome.text, outcome.attachments, outcome.output, outcome.error_type, time.monotonic() - started
    )


async def _run(tools: Mapping[str, Tool], call: ToolCall, context: AgentContext) -> ToolOutcome:
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(sorted(tools)) or "none"
        raise ToolError(f"Error: there is no tool {call.name!r}; there are: {known}")
    if call.malformed_arguments is not None:
        raise ToolError(f"Error: the arguments of {call.name} are not a JSON object")
    try:
        run = tool.bind(call.arguments, context)
    except ValueError as error:
        raise ToolError(f"Error: {error}") from None
    limit = asyncio.timeout(tool.timeout_seconds)
    try:
        async with limit:
            value = run() if tool.is_async else await asyncio.to_thread(run)
            if inspect.isawaitable(value):
                value = await value
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"{call.name} did not end within {tool.timeout_seconds:g} seconds") from None
        raise
    return _read_output(value)


def _read_output(value: Any) -> ToolOutcome:
    """Return a tool's return value as text and attachments."""
    parts: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    attachments = tuple(part for part in parts if isinstance(part, Attachment))
    if attachments:
        texts = [_as_text(part) for part in parts if not isinstance(part, Attachment)]
        named = [f"[{each.name or 'file'}: {each.mime_type}]" for each in attachments]
        return ToolOutcome(_cut("\n".join([*texts, *named])), attachments, "\n".join(texts))
    return ToolOutcome(_cut(_as_text(value)), (), _jsonable(value))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(_jsonable(value), ensure_ascii=False)


def _jsonable(value: Any) -> Any:
    try:
        return to_jsonable_python(value)
    except PydanticSerializationError:
        raise ToolError(f"Error: the tool returned {type(value).__name__}, which is no JSON value") from None


def _cut(text: str) -> str:
    if len(text) <= LONGEST_OBSERVATION:
        return text
    return f"{text[:LONGEST_OBSERVATION]}… (cut: it has {len(text)} characters)"
