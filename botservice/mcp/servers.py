"""The tools of MCP servers: one connection for each server in this process, made when the tools are first wanted."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from botservice.agent.tool import Tool
from botservice.agent.toolbox import Toolset, in_turn
from botservice.conversation.context import AgentContext
from botservice.mcp.config import ServerConfig, read_file, read_servers
from botservice.mcp.connection import ServerConnection
from botservice.mcp.listing import ListedTool
from botservice.mcp.personal import PersonalServers, Returned
from botservice.mcp.stdio import Children
from botservice.mcp.tool import make_tools
from botservice.storage.database import Storage

_WAIT_SECONDS: Final = 10.0


class MCPServers(Toolset):
    """A toolset of MCP servers. One that is down loses only its own tools, and is reconnected in the background."""

    def __init__(
        self,
        servers: Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        wait_seconds: float = _WAIT_SECONDS,
        public_url: str | None = None,
        encryption_key: str | None = None,
    ) -> None:
        """Make a toolset; nothing is connected yet.

        Args:
            servers: What stands below `mcpServers` in such a file: by name, with a command or a url.
            environment: What `${NAME}` in them means; by default the environment of this process.
            wait_seconds: How long a turn waits for servers that are being connected.
            public_url: Where people's browsers reach this service; people can sign in to servers where this and the
                next are given.
            encryption_key: What the tokens of people are encrypted with.

        Raises:
            SettingsError: something in it is wrong; the message names the server and the key.
        """
        self._configs: tuple[ServerConfig, ...] = tuple(read_servers(servers, environment))
        self._wait_seconds = wait_seconds
        self._children = Children()
        self._connections: list[ServerConnection] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made: tuple[list[tuple[ListedTool, ...]], list[Tool]] = ([], [])
        self._personal: PersonalServers | None = None
        if public_url is not None and encryption_key is not None:
            self._personal = PersonalServers(public_url, encryption_key, wait_seconds)

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        environment: Mapping[str, str] | None = None,
        wait_seconds: float = _WAIT_SECONDS,
        public_url: str | None = None,
        encryption_key: str | None = None,
    ) -> Self:
        """Load the servers from a file such as mcp.json, without connecting yet.

        Raises:
            SettingsError: the file cannot be read or is invalid.
        """
        made = cls({}, wait_seconds=wait_seconds, public_url=public_url, encryption_key=encryption_key)
        made._configs = tuple(read_file(path, environment))
        return made

    @property
    def names(self) -> list[str]:
        """The names of the servers in the file."""
        return [config.name for config in self._configs]

    async def tools(self) -> Sequence[Tool]:
        """List the tools of all servers in turn, including servers that were up before and are down now.

        Servers to which people sign in are left out.
        """
        self._open()
        await self.wait(self._wait_seconds)
        shared = [each for each in self._connections if not _is_personal(each)]
        listings = [each.listing for each in shared]
        if listings != self._made[0]:
            self._made = listings, [*in_turn(map(make_tools, shared))]
        return self._made[1]

    async def tools_for(self, context: AgentContext) -> Sequence[Tool]:
        """List the tools of all servers, and in a private chat also of those to which the person has signed in."""
        tools, configs = await self.tools(), self._with_sign_in()
        if self._personal is None or not configs:
            return tools
        return [*in_turn([*await self._personal.tools_for(context, configs), tools])]

    async def finish_sign_in(self, storage: Storage, server: str, query: Mapping[str, str]) -> Returned:
        """Finish the sign-in of a person who returns from a server; return the server and the code for the chat.

        Args:
            server: The server's address of return, which is the prefix of its tools.
            query: The query parameters of that address.
        """
        if self._personal is None:
            return Returned()
        return await self._personal.finish(storage, self._configs, server, query)

    async def wait(self, seconds: float) -> None:
        """Wait until each server has been tried once, or until the time limit."""
        self._open()
        untried = [each for each in self._connections if not each.is_tried.is_set()]
        await asyncio.gather(*(each.wait(seconds) for each in untried))

    def problems(self) -> Mapping[str, str | None]:
        """Map each server to the reason why it does not work, or to None."""
        return {
            each.config.name: self._problem(each) if each.is_tried.is_set() else "it is still being connected"
            for each in self._connections
        }

    def sign_in_names(self) -> list[str]:
        """List the servers to which people sign in, if known."""
        return [config.name for config in self._with_sign_in()]

    def explain_missing(self, name: str) -> str | None:
        """Explain why a tool of that name cannot be called now; None if no server knows it."""
        prefix, separator, _ = name.partition("__")
        server = next((each for each in self._connections if separator and each.config.prefix == prefix), None)
        if server is None:
            return None
        if _is_personal(server) and self._personal is not None:
            return f"the person has not signed in to server {server.config.name}, which they do in private chats alone"
        is_away = server.problem is not None or not server.is_tried.is_set()
        return server.explain_absence() if is_away else None

    async def close(self) -> None:
        """Close the connections to all servers at once, and end those that run on this machine."""
        connections, self._connections = self._connections, []
        children, self._children = self._children, Children()
        self._made = ([], [])
        personal = [] if self._personal is None else [self._personal.close()]
        await asyncio.gather(*(each.close() for each in connections), *personal)
        await children.close()

    def _problem(self, connection: ServerConnection) -> str | None:
        return None if connection.wants_sign_in and self._personal is not None else connection.problem

    def _with_sign_in(self) -> list[ServerConfig]:
        return [each.config for each in self._connections if _is_personal(each)]

    def _open(self) -> None:
        """Begin to connect, once in an event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the tasks of another one have ended with it
            self._loop, self._connections = loop, []
        if not self._connections:
            self._connections = [ServerConnection(each, self._children, self._wait_seconds) for each in self._configs]


def _is_personal(connection: ServerConnection) -> bool:
    """Return whether each person signs in: the file says so, or the server takes no other person."""
    return connection.config.has_sign_in or connection.wants_sign_in
