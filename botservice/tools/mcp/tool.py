"""A tool of a server as a `Tool`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from botservice.contexts.context import AgentContext
from botservice.tools.mcp.config import Approval
from botservice.tools.mcp.connection import Connection
from botservice.tools.mcp.listing import ListedTool
from botservice.tools.mcp.results import read_result
from botservice.tools.tool import Tool


async def _call_server() -> None:
    """Take what the server's own schema says."""


class MCPTool(Tool):
    """A tool whose calls go to a server. Its arguments are the server's to check, and it says what is wrong."""

    def __init__(self, connection: Connection, listed: ListedTool, name: str) -> None:
        config = connection.config
        super().__init__(
            _call_server,
            name=name,
            description=listed.description,
            idempotent=listed.is_idempotent,
            timeout_seconds=config.timeout_seconds,
        )
        is_asked = config.approval is Approval.WRITES and not listed.is_read_only
        self.needs_approval = is_asked or config.approval is Approval.ALWAYS
        self.schema = {
            "type": "function",
            "function": {"name": name, "description": self.description, "parameters": listed.parameters},
        }
        self._connection = connection
        self._name_there = listed.name

    def bind(self, arguments: Mapping[str, Any], context: AgentContext) -> Callable[[], Awaitable[Any] | Any]:  # noqa: ARG002
        """Return a call of the server's tool."""

        async def call() -> Any:
            return read_result(await self._connection.call(self._name_there, arguments, may_repeat=self.idempotent))

        return call
