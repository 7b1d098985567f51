"""Which calls of a step a person has to be asked about, before any runs and when the step goes on."""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from botservice.agent.tool import Tool
from botservice.agent.tool_executor import ToolOutcome
from botservice.agent.tool_outputs import as_json_value
from botservice.agent.tool_rights import find_allowed
from botservice.agent.tool_signature import ArgumentsError
from botservice.conversation.context import AgentContext
from botservice.conversation.steps import ActionStep
from botservice.core.argument_checks import is_async
from botservice.core.messages import ToolCall
from botservice.core.states import PendingKind, PendingStatus
from botservice.core.threads import run_in_thread
from botservice.storage.database import Connection
from botservice.turns.approval_queries import find_grants, is_all_said_by
from botservice.turns.waiting_calls import WaitingCall

logger = logging.getLogger(__name__)

_JUDGING_SECONDS: Final = 30.0


async def find_to_ask(
    tools: Mapping[str, Tool], calls: Sequence[ToolCall], context: AgentContext, refused: Collection[int] = ()
) -> list[int]:
    """Return the indices of the calls that need approval and have no standing one.

    Args:
        refused: The places of calls that are not made in any case.
    """
    called = {call.name: tools[call.name] for call in calls if call.name in tools}
    allowed = await find_allowed(called, context)  # nobody is asked about what may not run
    wanted = [
        index
        for index, call in enumerate(calls)
        if index not in refused and call.name in allowed and await needs_approval(allowed[call.name], call, context)
    ]
    if not wanted:
        return []
    granted = await _granted_tools(context)
    return [index for index in wanted if granted.get(calls[index].name) != tools[calls[index].name].digest]


def gives_untrusted(tools: Mapping[str, Tool], calls: Sequence[ToolCall]) -> bool:
    """Return whether what calls give may be what strangers wrote; of a tool that is gone, that is not known."""
    return any(call.name not in tools or tools[call.name].reads_untrusted for call in calls)


async def needs_approval(tool: Tool, call: ToolCall, context: AgentContext) -> bool:
    """Return whether a call needs a person's approval. What cannot be made as the model wants it needs none.

    Where the tool's own judgement fails, a person is asked.
    """
    if tool.needs_approval is False or call.malformed_arguments is not None:
        return False
    try:
        tool.bind(call.arguments, context)
    except ArgumentsError:
        return False
    except Exception:  # noqa: BLE001 - types of tools are foreign code, and the call itself says what is wrong
        logger.info("tool.unbound", extra={"tool": tool.name})
    if tool.needs_approval is True:
        return True
    try:
        async with asyncio.timeout(_JUDGING_SECONDS):
            return await _judge(tool, call, context)
    except Exception as error:
        logger.warning("tool.approval_unclear", exc_info=error, extra={"tool": tool.name})
        return True


async def _judge(tool: Tool, call: ToolCall, context: AgentContext) -> bool:
    """Return whether the tool's own function says so of the arguments in any of their forms.

    One that knows one form may fail with another: it is unclear only where it fails with all.
    """
    judge = tool.needs_approval
    if not callable(judge):
        return bool(judge)
    forms, failures = _forms(tool, call), []
    for form in forms:
        try:
            if await _says_so(judge, deepcopy(form), tool.name, context):
                return True
        except Exception as error:  # noqa: BLE001 - it is foreign code
            failures.append(error)
    if len(failures) == len(forms):
        raise failures[0]
    return False


def _forms(tool: Tool, call: ToolCall) -> list[dict[str, Any]]:
    """Return arguments as the tool's function gets them, as JSON values, and as the model gave them: each form once."""
    given = dict(call.arguments)
    try:
        typed = tool.read_arguments(given)
    except ArgumentsError:  # it checks them by itself
        return [given]
    forms = [typed]
    with contextlib.suppress(ValueError):  # a default may be anything
        forms.append(as_json_value(typed))
    forms.append(given)
    return [form for place, form in enumerate(forms) if form not in forms[:place]]


async def _says_so(
    judge: Callable[[dict[str, Any], AgentContext], Any], arguments: dict[str, Any], name: str, context: AgentContext
) -> bool:
    """Return what a function says of arguments: a copy, for what was shown is what runs."""
    if is_async(judge):
        return bool(await judge(arguments, context))
    said = await run_in_thread(lambda: judge(arguments, context), name=f"approval-{name}")
    return bool(await said if inspect.isawaitable(said) else said)


async def _granted_tools(context: AgentContext) -> Mapping[str, str]:
    """Return the digests of the tools that the asker allowed for always; none where others have a say."""

    def find(connection: Connection) -> Mapping[str, str]:
        grants = find_grants(connection, context.id, context.asker)
        if not grants or not is_all_said_by(connection, context.id, context.turn_id, context.asker):
            return {}
        return {each.tool: each.digest for each in grants if each.digest is not None}

    return {} if context.has_read_untrusted else await context.storage.read(find)


_UNAPPROVED: Final = (
    "Not made: this tool needs the word of a person by now, and nobody was asked about this call. "
    "Make it again if the person still wants it: they are asked then."
)
_NOT_AGAIN: Final = (
    "Interrupted: whether this call took effect is not known. It is not made again: its tool needs the word of a "
    "person by now, and nobody was asked about this call."
)
_UNDECIDED: Final = "Not made: nobody allowed this call."
_CHANGED: Final = (
    "Not made: the description or the arguments of this tool have changed since the person was asked. "
    "Make the call again if the person still wants it: they are asked about the tool as it is now."
)


async def refuse_unapproved(
    tools: Mapping[str, Tool],
    step: ActionStep,
    begun: Collection[int],
    context: AgentContext,
    waited: Sequence[WaitingCall],
    *,
    is_resumed: bool,
) -> dict[int, ToolOutcome]:
    """Return the outcomes of the calls that are not made because their approval is missing, by index.

    Args:
        tools: What can be called now; when the calls were judged that may have been something else.
        begun: The calls that have ended, or go on with what they have begun.
        waited: The calls of the step that its turn has waited with.
        is_resumed: Whether calls may have run before.
    """
    calls = step.tool_calls or ()
    of_step = [each for each in waited if each.kind is not PendingKind.LATER]
    asked = [each for each in of_step if each.kind is PendingKind.APPROVAL]
    outcomes = {
        each.call_index: ToolOutcome(_UNDECIDED, error_type="Denied")
        for each in asked
        if each.call_index not in begun and each.status is not PendingStatus.ALLOWED
    }
    settled = {*begun, *outcomes}
    if is_resumed:  # what may have run and cannot be repeated is not made anyway
        settled |= {index for index, call in enumerate(calls) if not _is_repeatable(tools.get(call.name))}
    for each in of_step:
        if each.call_index not in settled and _has_changed(each, tools):
            outcomes[each.call_index] = ToolOutcome(_CHANGED, error_type="ApprovalNeeded")
    settled |= {each.call_index for each in of_step}  # one that asks something had begun with the approval it needed
    text = _NOT_AGAIN if is_resumed else _UNAPPROVED
    for index in await find_to_ask(tools, calls, context, settled):
        outcomes[index] = ToolOutcome(text, error_type="ApprovalNeeded")
    return outcomes


def _has_changed(asked: WaitingCall, tools: Mapping[str, Tool]) -> bool:
    """Return whether a tool is not the one that a person was asked about; of release 0.15.0, that is not known."""
    tool = tools.get(asked.tool)
    return tool is not None and asked.tool_digest not in (None, tool.digest)


def _is_repeatable(tool: Tool | None) -> bool:
    return tool is not None and tool.idempotent
