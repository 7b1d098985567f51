"""Running the tool calls of a model. Every failure becomes an observation that the model sees."""

import asyncio
import inspect
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Protocol, runtime_checkable

from botservice.agent.tool import Later, Tool
from botservice.agent.tool_outputs import OutputError, cut, read_output
from botservice.agent.tool_rights import explain_refusal, find_allowed
from botservice.agent.tool_signature import ArgumentsError
from botservice.agent.toolbox import Tools
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import StepError
from botservice.conversation.steps import ActionStep
from botservice.core.messages import Attachment, Button, ToolCall, storable
from botservice.core.threads import run_in_thread
from botservice.telemetry.instrumentation import ToolRun, measured
from botservice.telemetry.logs import redact

logger = logging.getLogger(__name__)

_LONGEST: Final = 2_000  # characters; some libraries put a whole answer into an error
_SECRET: Final = "[secret]"  # noqa: S105 - stands for one
_IN_ADDRESSES: Final = re.compile(r"(?<=://)[^\s/@:]{0,200}:[^\s/@]{1,500}@")
_NAMED: Final = re.compile(
    r"\b((?:api|access|auth|client|secret|private)?[_-]?(?:key|token|secret|password|passwd|pwd|signature|sig))"
    r"(\"?'?\s{0,3}[=:]\s{0,3}\"?'?)[^\s&\"',;)}]{4,500}",
    re.IGNORECASE,
)
_BY_LOOK: Final = re.compile(
    r"\b(?:sk-[\w-]{16,500}|gh[pousr]_\w{20,500}|xox[abeprs]-[\w-]{10,500}|AKIA[A-Z0-9]{12,500}"
    r"|eyJ[\w-]{8,2000}\.[\w-]{8,2000}\.[\w-]{1,2000}|(?:Bearer|Basic)\s{1,3}[\w.~+/-]{8,2000}=*)"
)

_MOST_NAMED = 128
_MOST_YIELDED: Final = 10_000
_TOO_MANY: Final = f"the tool yields more than {_MOST_YIELDED} values"


def describe_failure(error: BaseException) -> str:
    """Return the kind and the message of an error, with a mark in the place of what looks like a secret."""
    text = redact(storable(str(StepError.of(error))))
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… (cut: it has {len(text)} characters)"
    text = _IN_ADDRESSES.sub(f"{_SECRET}@", text)
    return _NAMED.sub(rf"\1\2{_SECRET}", _BY_LOOK.sub(_SECRET, text))


@runtime_checkable
class RecordedCall(Protocol):
    """A call that keeps a record of what was done in it."""

    def record(self) -> Mapping[str, Any]:
        """Return the record as values for a field of a step."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of a call.

    Attributes:
        text: What the model sees.
        output: What the tool returned, as JSON values, or None if it failed.
        sub_run: What an agent did that was called as a tool.
        later: What is waited for, where the result comes later; there is no text then.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    output: Any = None
    error_type: str | None = None
    duration_seconds: float | None = None
    buttons: tuple[Button, ...] = ()
    sub_run: Mapping[str, Any] | None = None
    later: Later | None = None

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.error_type is not None


async def execute(tools: Mapping[str, Tool], call: ToolCall, context: AgentContext) -> ToolOutcome:
    """Run a call and return its outcome; only cancellation is raised."""
    started = time.monotonic()
    tool = tools.get(call.name)
    with measured(ToolRun(call, is_known=tool is not None)) as run:
        if tool is None:
            outcome = refused(_why_missing(tools, call.name, await find_allowed(tools, context)))
        elif (refusal := await explain_refusal(tool, context)) is not None:
            outcome = refused(refusal)
        elif call.malformed_arguments is not None:
            outcome = refused(
                f"the arguments of {call.name} are not a JSON object, or it is nested too deep, or one of its numbers "
                "is too long or not finite"
            )
        else:
            outcome = await _call(tool, call, context)
        run.error_type, run.result = outcome.error_type, outcome.text
    return replace(outcome, duration_seconds=time.monotonic() - started)


def _why_missing(tools: Mapping[str, Tool], name: str, allowed: Iterable[str]) -> str:
    reason = tools.explain_missing(name) if isinstance(tools, Tools) else None
    if reason is not None:
        return reason
    known = sorted(allowed)
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"there is no tool {name!r}; there are: {', '.join(known[:_MOST_NAMED]) or 'none'}{more}"


async def _call(tool: Tool, call: ToolCall, context: AgentContext) -> ToolOutcome:
    try:
        run = tool.bind(call.arguments, context)
    except ArgumentsError as error:
        return refused(str(error))
    except Exception as error:  # noqa: BLE001 - types of tools are foreign code
        return _failed(tool, error)
    outcome = await _outcome(tool, run)
    return replace(outcome, sub_run=run.record()) if isinstance(run, RecordedCall) else outcome


async def _outcome(tool: Tool, run: Callable[[], Awaitable[Any] | Any]) -> ToolOutcome:
    limit = asyncio.timeout(tool.timeout_seconds)
    try:
        async with limit:
            returned = run() if tool.is_async else await run_in_thread(lambda: _drawn(run()), name=f"tool-{tool.name}")
            if inspect.isawaitable(returned):
                returned = await returned
            if inspect.isasyncgen(returned):
                returned = await _drawn_async(returned)
        return ToolOutcome("", later=returned) if isinstance(returned, Later) else outcome_of(returned)
    except Later as later:
        return ToolOutcome("", later=later)
    except OutputError as error:
        return refused(str(error))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _failed(tool, error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - tools are foreign code, and some of it likes to exit
        if isinstance(error, TimeoutError) and limit.expired():
            text = f"Error: {tool.name} did not end within {tool.timeout_seconds:g} seconds"
            return ToolOutcome(text, error_type="TimeoutError")
        return _failed(tool, error)


def _drawn(returned: Any) -> Any:
    """Return what a generator yields as a list, and anything else as it is."""
    if not inspect.isgenerator(returned):
        return returned
    found = list(islice(returned, _MOST_YIELDED + 1))
    if len(found) > _MOST_YIELDED:
        raise OutputError(_TOO_MANY)
    return found


async def _drawn_async(returned: AsyncIterator[Any]) -> list[Any]:
    found = []
    async for each in returned:
        found.append(each)
        if len(found) > _MOST_YIELDED:
            raise OutputError(_TOO_MANY)
    return found


def outcome_of(returned: Any) -> ToolOutcome:
    """Return the outcome of a call with this result.

    Raises:
        OutputError: there is no JSON for it.
    """
    output = read_output(returned)
    return ToolOutcome(output.text, output.files, output.value, buttons=output.buttons)


def refused(reason: str) -> ToolOutcome:
    """Return the outcome of a call that cannot be made as the model wants it."""
    return ToolOutcome(cut(redact(storable(f"Error: {reason}"))), error_type="ToolError")


def _failed(tool: Tool, error: BaseException) -> ToolOutcome:
    logger.warning("tool.failed", exc_info=error, extra={"tool": tool.name})
    return ToolOutcome(f"Error: {describe_failure(error)}", error_type=type(error).__name__)


def find_too_many(
    tools: Mapping[str, Tool], calls: Sequence[ToolCall], done: Iterable[ActionStep]
) -> dict[int, ToolOutcome]:
    """Return the outcomes of the calls that exceed a limit, by their place among calls."""
    if all(tool.max_calls is None for tool in tools.values()):
        return {}
    counts = Counter(call.name for step in done for call in step.tool_calls or () if isinstance(call, ToolCall))
    outcomes = {}
    for index, call in enumerate(calls):
        counts[call.name] += 1
        limit = tools[call.name].max_calls if call.name in tools else None
        if limit is not None and counts[call.name] > limit:
            times = "once" if limit == 1 else f"{limit} times"
            outcomes[index] = refused(f"{call.name} may be called {times} for one prompt, and was; go on without it")
    return outcomes
