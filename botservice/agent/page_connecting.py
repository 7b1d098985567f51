"""Connections to public machines: a name is looked up here, and what was looked at is what is connected to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import httpcore2

from botservice.agent.page_networks import is_public
from botservice.core.errors import PageRefused

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a name, as numbers."""

_MOST_TRIED: Final = 3
# Of their own: a name whose servers do not answer keeps a thread for long, and the loop's are needed for other things.
_THREADS: Final = ThreadPoolExecutor(4, thread_name_prefix="botservice-names")


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as the system looks them up: the name itself, without what it may be part of."""
    whole = host if is_public(host) else f"{host}."
    ask = partial(socket.getaddrinfo, whole, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_THREADS, ask)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class PublicNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to public machines alone. A name is connected to at one of the addresses that were checked.

    TLS is spoken with the name, not with the number: whose certificate it is, is checked as ever. Neither a proxy nor
    anything else of the environment has a part in it: a proxy would look the name up once more.
    """

    def __init__(self, resolve: Resolve = look_up, backend: httpcore2.AsyncNetworkBackend | None = None) -> None:
        self._resolve = resolve
        self._backend = backend or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - httpcore2's own
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a connection to a machine of this name.

        Raises:
            PageRefused: one of its addresses is not public, whatever the others are.
            httpcore2.ConnectError: none of them answers.
        """
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(type(error).__name__) from error
        if not all(map(is_public, addresses)):
            raise PageRefused("this address leads to no machine of the public internet")
        failure: httpcore2.ConnectError | httpcore2.ConnectTimeout | None = None
        for address in addresses[:_MOST_TRIED]:
            try:
                return await self._connect(address, port, timeout, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError("no address")

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        """Refuse."""
        raise PageRefused("a page is nothing of this machine")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._backend.sleep(seconds)

    async def _connect(
        self, address: str, port: int, timeout: float | None, socket_options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._backend.connect_tcp(address, port, timeout, None, socket_options)
        own = stream.get_extra_info("client_addr")
        if own is not None and own[0] == address:  # a public address of this machine itself
            await stream.aclose()
            raise PageRefused("this address leads to no machine of the public internet")
        return stream
