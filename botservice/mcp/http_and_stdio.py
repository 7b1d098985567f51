"""Transports to a server: those of the package, with limits, and a signal when they end."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from botservice.llm.proxies_and_tls import tls_context
from botservice.mcp.config import ServerConfig
from botservice.mcp.failures import ServerDown
from botservice.mcp.listing import pack_schema
from botservice.mcp.stdio import LARGEST_MESSAGE, Children, running

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport

_MOST_TOOLS: Final = 1_000
_LONGEST_PROGRESS: Final = 1_000
_LARGEST_NUMBER: Final = 1e15
_HTTP_SECONDS: Final = 30.0
_REMEMBERED: Final = 2_000  # bytes of what a server last said to its standard error
_HINTS: Final = ("readOnlyHint", "idempotentHint", "destructiveHint", "openWorldHint")


class ConnectionState:
    """The state of one connection.

    Attributes:
        is_lost: Set when nothing more comes.
        is_renewed: Whether it was left on purpose, to connect again at once.
        refused_with: The status with which an HTTP server refused the last request, or None if it did not.
        problem: What the server did for which it is not listened to any more, or None.
        wants_sign_in: Whether it refused because it wants a token, as OAuth has them.
    """

    def __init__(self) -> None:
        self.is_lost = asyncio.Event()
        self.is_renewed = False
        self.refused_with: int | None = None
        self.problem: str | None = None
        self.wants_sign_in = False
        self._said = b""

    @property
    def last_words(self) -> str:
        """The last line that the server wrote to its standard error."""
        lines = self._said.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def hear(self, data: bytes) -> None:
        """Take what a server writes to its standard error; all but its end is forgotten."""
        self._said = (self._said + data)[-_REMEMBERED:]


@contextlib.asynccontextmanager
async def connected(
    config: ServerConfig, children: Children, line: ConnectionState, auth: "httpx2.Auth | None" = None
) -> "AsyncIterator[Transport]":
    """Yield the transport to a server, not yet entered.

    Args:
        auth: What adds one person's token to each request.

    Raises:
        ServerDown: there is no such command.
    """
    if config.url is not None:
        from mcp.client.streamable_http import streamable_http_client

        async with http_client(config.headers, line, auth) as client:
            yield _watched(
                streamable_http_client(config.url, http_client=client, max_sse_event_size=LARGEST_MESSAGE), line
            )
        return
    assert config.command is not None  # noqa: S101 - it has either
    path = config.env.get("PATH", os.environ.get("PATH"))
    if config.cwd is None and shutil.which(config.command, path=path) is None:
        raise ServerDown(f"there is no command {config.command}: install it, or write its whole path")
    async with _standard_error(line) as errors, _started(config, config.command, children, errors, line) as transport:
        yield _watched(transport, line)


@contextlib.asynccontextmanager
async def _started(
    config: ServerConfig, command: str, children: Children, errors: Any, line: ConnectionState
) -> "AsyncIterator[Transport]":
    if os.name != "posix":  # the package knows how programs are found and ended there
        from mcp import StdioServerParameters, stdio_client

        parameters = StdioServerParameters(
            command=command,
            args=list(config.args),
            env=dict(config.env),
            cwd=config.cwd,
            encoding_error_handler="replace",
        )
        yield stdio_client(parameters, errlog=errors)
        return
    async with running(children, command, config.args, env=config.env, cwd=config.cwd, errors=errors) as program:
        try:
            yield program
        finally:
            line.problem = program.problem


@contextlib.asynccontextmanager
async def _standard_error(line: ConnectionState) -> AsyncIterator[Any]:
    """Yield a file for a server's standard error, of which the end is remembered."""

    class Hearing(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            line.hear(data)

    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as errors:  # noqa: ASYNC230, PTH123 - a pipe
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(Hearing, open(reading, "rb", 0))  # noqa: ASYNC230, PTH123, SIM115
        try:
            yield errors
        finally:
            transport.close()


def http_client(
    headers: Mapping[str, str], line: ConnectionState, auth: "httpx2.Auth | None" = None, *, largest: int | None = None
) -> "httpx2.AsyncClient":
    """Return an HTTP client that limits the size of answers, and records refusals.

    Args:
        largest: How many bytes any answer has at most; by default, those that are streams of messages have no end.
    """
    import httpx2

    async def look(response: httpx2.Response) -> None:
        line.refused_with = response.status_code if response.status_code >= 400 else None
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            line.wants_sign_in = response.headers.get("www-authenticate", "").lower().startswith("bearer")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ServerDown("it answers compressed, though it was not asked to")
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if largest is not None or not is_stream:
            response.stream = _bounded(response.stream, largest or LARGEST_MESSAGE)

    return httpx2.AsyncClient(
        headers={"accept-encoding": "identity", **headers},
        timeout=httpx2.Timeout(_HTTP_SECONDS, read=None),  # each request has its own limit
        verify=tls_context(),
        auth=auth,
        event_hooks={"response": [look]},
    )


def _bounded(stream: Any, most: int) -> "httpx2.AsyncByteStream":
    """Return the body of an answer that fails beyond a number of bytes."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            length = 0
            async for chunk in stream:
                length += len(chunk)
                if length > most:
                    raise httpx2.StreamError(f"an answer of more than {most // 1024 // 1024} MB")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


@contextlib.asynccontextmanager
async def _watched(transport: "Transport", line: ConnectionState) -> AsyncIterator[Any]:
    """Enter a transport; signal its end, and pass on only messages that the client can read."""
    async with transport as (read, write):
        yield _Reading(read, line.is_lost.set), write


class _Reading:
    """The messages of a server, as the client's stream of them."""

    def __init__(self, messages: Any, on_end: Callable[[], None]) -> None:
        self._messages = messages
        self._on_end = on_end

    async def receive(self) -> Any:
        try:
            return mended(await anext(self._messages))
        except BaseException:
            self._on_end()
            raise

    async def aclose(self) -> None:
        self._on_end()
        await self._messages.aclose()

    def __aiter__(self) -> Self:
        return self

    __anext__ = receive

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def last_context(self) -> Any:
        """The context of the sender of the last message, if it is known."""
        return getattr(self._messages, "last_context", None)


def mended(message: Any) -> Any:
    """Return a message without the parts for which the client would refuse all of it.

    One tool without a schema would fail a whole list, and a result that does not fit the schema that the server gave
    for it, or has no content, would be no result. A number that no float holds would end the connection.
    """
    said: Any = getattr(message, "message", None)
    if getattr(said, "method", None) == "notifications/progress" and isinstance(said.params, dict):
        said.params.update(_mended_progress(said.params))
    result = getattr(said, "result", None)
    if not isinstance(result, dict):
        return message
    if isinstance(result.get("tools"), list):
        read = (_mended_tool(tool) for tool in result["tools"][:_MOST_TOOLS])
        result["tools"] = [tool for tool in read if tool is not None]
    if ("structuredContent" in result or "isError" in result) and not isinstance(result.get("content"), list):
        result["content"] = []
    return message


def _mended_progress(params: Mapping[str, Any]) -> dict[str, Any]:
    progress, total, message = (params.get(name) for name in ("progress", "total", "message"))
    return {
        "progress": progress if _is_number(progress) else -1,  # which is not shown
        "total": total if _is_number(total) else None,
        "message": message[:_LONGEST_PROGRESS] if isinstance(message, str) else None,
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < _LARGEST_NUMBER  # which no NaN is


def _mended_tool(tool: Any) -> dict[str, Any] | None:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
        return None
    kept = {key: tool[key] for key in ("name", "title", "description") if isinstance(tool.get(key), str)}
    kept["inputSchema"] = pack_schema(tool.get("inputSchema", {}))
    hints = tool.get("annotations")
    if isinstance(hints, dict):
        kept["annotations"] = {hint: hints[hint] for hint in _HINTS if isinstance(hints.get(hint), bool)}
    return kept
