"""Calls of a resumed step that nobody approved: not asked about, not decided, or asked about another tool."""

from collections.abc import Mapping
from typing import Final

from botservice.agent.tool import Tool
from botservice.agent.tool_executor import ToolOutcome
from botservice.conversation.context import AgentContext
from botservice.conversation.steps import ActionStep
from botservice.turns.approvals_needed import find_to_ask
from botservice.turns.call_queries import find_of_turn
from botservice.turns.waiting_calls import PendingKind, PendingStatus, WaitingCall

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
    ended: Mapping[int, ToolOutcome],
    context: AgentContext,
    *,
    turn_id: int,
    step_id: int,
    is_resumed: bool,
) -> dict[int, ToolOutcome]:
    """Return the outcomes of the calls that are not made because their approval is missing, by index.

    Args:
        tools: What can be called now; when the calls were judged that may have been something else.
        ended: What is known already.
        is_resumed: Whether calls may have run before.
    """
    calls = step.tool_calls or ()
    rows = await context.storage.read(lambda connection: find_of_turn(connection, turn_id))
    asked = [each for each in rows if each.step_id == step_id and each.kind is PendingKind.APPROVAL]
    outcomes = {
        each.call_index: ToolOutcome(_UNDECIDED, error_type="Denied")
        for each in asked
        if each.call_index not in ended and each.status is not PendingStatus.ALLOWED
    }
    settled = {*ended, *outcomes}
    if is_resumed:  # what may have run and cannot be repeated is not made anyway
        settled |= {index for index, call in enumerate(calls) if not _is_repeatable(tools.get(call.name))}
    for each in asked:
        if each.call_index not in settled and _has_changed(each, tools):
            outcomes[each.call_index] = ToolOutcome(_CHANGED, error_type="ApprovalNeeded")
    settled |= {each.call_index for each in asked}
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
