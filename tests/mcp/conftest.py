"""Toolsets of servers that are let go of at the end of a test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from botservice import AgentContext, MCPServers, Storage, ToolCall
from botservice.agent.tool_executor import ToolOutcome, execute
from botservice.agent.toolbox import Tools


@pytest.fixture
async def context(sqlite_storage: Storage) -> AgentContext:
    return await AgentContext.get_or_create(sqlite_storage, {"transport": "test", "chat_id": "1"})


@pytest.fixture
async def servers() -> AsyncIterator[Callable[..., MCPServers]]:
    """Make toolsets."""
    made: list[MCPServers] = []

    def make(wait_seconds: float = 60.0, **entries: Any) -> MCPServers:
        made.append(MCPServers(entries, wait_seconds=wait_seconds))
        return made[-1]

    yield make
    await asyncio.gather(*(each.close() for each in made))


@pytest.fixture
def call(context: AgentContext) -> Callable[..., Awaitable[ToolOutcome]]:
    """Call a tool of a toolset as a turn does."""

    async def run(toolset: MCPServers, name: str, **arguments: Any) -> ToolOutcome:
        return await execute(Tools(await toolset.tools(), [toolset]), ToolCall("1", name, arguments), context)

    return run
