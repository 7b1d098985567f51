"""Where what a server says of its authorization may lead: into no network that only this machine may reach."""

import contextlib
import ipaddress
from collections.abc import Sequence
from typing import Final

import httpx2

from botservice.agent.page_connecting import Resolve, look_up
from botservice.agent.page_networks import is_public
from botservice.mcp.failures import ServerDown

_PEER: Final = "server_addr"


class Reach:
    """The addresses that may be asked for one server.

    Attributes:
        is_inside: Whether the server itself answered from a network of this machine's own: then its authorization may
            be there, too. What its name leads to is for its owner to say, at any moment; where it answers from is not.
    """

    def __init__(self, url: str, *, is_inside: bool = False, resolve: Resolve = look_up) -> None:
        self.is_inside = is_inside
        self._own = httpx2.URL(url)
        self._resolve = resolve

    async def look(self, request: httpx2.Request) -> None:
        """Return if a request may be made."""
        url = request.url
        if self._is_own(url) or self.is_inside:
            return
        if url.scheme != "https" or not await self._is_outside(url):
            raise ServerDown("its authorization is at an address that is not asked")

    async def note(self, response: httpx2.Response) -> None:
        """Note where the server itself answers from."""
        stream = response.extensions.get("network_stream")
        peer = None if stream is None else stream.get_extra_info(_PEER)
        url = response.request.url
        if self._is_own(url) and peer is not None:
            # Both: behind a proxy, it is the proxy that answers.
            self.is_inside = not is_public(str(peer[0])) and await self._is_within(url)

    def _is_own(self, url: httpx2.URL) -> bool:
        own = self._own
        return (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port)

    async def _is_outside(self, url: httpx2.URL) -> bool:
        """Return whether an address is certainly one of the public internet."""
        with contextlib.suppress(OSError, UnicodeError):
            return all(map(is_public, await self._numbers(url)))
        return False

    async def _is_within(self, url: httpx2.URL) -> bool:
        """Return whether an address is certainly none of the public internet."""
        with contextlib.suppress(OSError, UnicodeError):
            return not any(map(is_public, await self._numbers(url)))
        return False

    async def _numbers(self, url: httpx2.URL) -> Sequence[str]:
        try:
            return [str(ipaddress.ip_address(url.host))]
        except ValueError:
            return await self._resolve(url.host, url.port or 443)
