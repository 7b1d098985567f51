"""Which calls of a step a person has to be asked about before any of them runs."""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from pydantic_core import to_jsonable_python

from botservice.agent.tool import Tool
from botservice.agent.tool_signature import ArgumentsError
from botservice.agent.tool_threads import run_in_thread
from botservice.conversation.context import AgentContext
from botservice.core.arguments import is_async
from botservice.core.messages import ToolCall
from botservice.storage.database import Connection
from botservice.turns.grant_queries import find_grants, is_all_said_by

logger = logging.getLogger(__name__)

_JUDGING_SECONDS: Final = 30.0


async def find_to_ask(
    tools: Mapping[str, Tool], calls: Sequence[ToolCall], context: AgentContext, refused: Collection[int] = ()
) -> list[int]:
    """Return the indices of the calls that need approval and have no standing one.

    Args:
        refused: The places of calls that are not made in any case.
    """
    wanted = [
        index
        for index, call in enumerate(calls)
        if index not in refused and call.name in tools and await needs_word(tools[call.name], call, context)
    ]
    if not wanted:
        return []
    granted = await _granted_tools(context)
    return [index for index in wanted if granted.get(calls[index].name) != tools[calls[index].name].digest]


def gives_untrusted(tools: Mapping[str, Tool], calls: Sequence[ToolCall]) -> bool:
    """Return whether what calls give may be what strangers wrote; of a tool that is gone, that is not known."""
    return any(call.name not in tools or tools[call.name].reads_untrusted for call in calls)


async def needs_word(tool: Tool, call: ToolCall, context: AgentContext) -> bool:
    """Return whether a call needs a person's word. What cannot be made as the model wants it needs none.

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
    with contextlib.suppress(ValueError):  # a default may go round in a circle
        forms.append(to_jsonable_python(typed, fallback=lambda value: value))
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
