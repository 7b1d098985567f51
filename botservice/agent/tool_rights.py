"""Which tools may run for the people who ask, by their roles: judged where tools are offered, and where a call runs."""

from collections.abc import Iterable, Mapping

from botservice.agent.tool import Tool
from botservice.conversation.context import AgentContext
from botservice.conversation.tool_calls import NOT_ALLOWED
from botservice.core.policies import OWNER_ROLE


async def find_allowed(tools: Mapping[str, Tool], context: AgentContext) -> Mapping[str, Tool]:
    """Return the tools that may run in a turn now; the roles of who asks are read only where one is wanted."""
    limited = [each for each in tools.values() if _is_limited(each, context)]
    if not limited:
        return tools
    askers = () if context.find_roles is None else await context.find_roles()
    refused = {each.name for each in limited if not askers or not all(_is_right(each, roles) for roles in askers)}
    return {name: each for name, each in tools.items() if each.name not in refused}


async def note_withheld(tools: Iterable[Tool], context: AgentContext) -> list[Tool]:
    """Return the tools that may be offered in a turn, and note in the context which may not."""
    known = {each.name: each for each in tools}
    allowed = await find_allowed(known, context)
    context.withheld_tools = {name: sorted(each.roles or ()) for name, each in known.items() if name not in allowed}
    return list(allowed.values())


async def explain_refusal(tool: Tool, context: AgentContext) -> str | None:
    """Return why a tool may not run for the people who ask; None if it may."""
    if await find_allowed({tool.name: tool}, context):
        return None
    wanted = " or ".join(sorted(tool.roles or ()))
    told = f"{NOT_ALLOWED}{tool.name} runs only for people with the role {wanted}"
    return f"{told}. Say so; an owner can give roles with /role"


def _is_right(tool: Tool, roles: frozenset[str]) -> bool:
    return OWNER_ROLE in roles or not roles.isdisjoint(tool.roles or ())


def _is_limited(tool: Tool, context: AgentContext) -> bool:
    return tool.roles is not None and tool.name not in context.unlimited_tools
