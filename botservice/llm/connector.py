"""The connections of aiohttp's clients: what breaks off is said at once, and no answer is taken for another one."""

import select
import sys
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

LONGEST_HEADER = 100 * 1024  # as httpx takes them; aiohttp by itself refuses more than 8 kB


class Connector(aiohttp.TCPConnector):
    """Uses no connection again on which a server has said something since: it would be taken for the next answer."""

    def __init__(self, **options: Any) -> None:
        """Make one with the options of aiohttp's own."""
        super().__init__(**options)
        self._factory: Any = partial(_Protocol, loop=self._loop)

    async def _get(self, *wanted: Any) -> aiohttp.connector.Connection | None:
        while (found := await super()._get(*wanted)) is not None:
            protocol = found.protocol
            if protocol is not None and not protocol.should_close and not _is_readable(found.transport):
                return found
            found.close()
        return None

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        """Cut a connection that is not used again: closed, it stays for as long as its server does not read."""
        transport = protocol.transport
        super()._release(key, protocol, should_close=should_close)
        if transport is not None and protocol.transport is None:
            transport.abort()

    def __del__(self, *_: object) -> None:
        """Close what a program has left open, without a word."""
        self._close()


class _Protocol(ResponseHandler):
    """Tells who reads an answer that it broke off where it goes on with what is no HTTP: aiohttp tells only who asks.

    Source: aiohttp 3.14, `ResponseHandler.data_received`; the reader would wait for its time limit, if it has one.
    """

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """Note what ends the connection."""
        if isinstance(exc, HttpProcessingError) and self._payload is not None and not self._payload.is_eof():
            self._payload.set_exception(aiohttp.ClientPayloadError("the answer goes on with what is no HTTP"), *cause)
        super().set_exception(exc, *cause)


def _is_readable(transport: Any) -> bool:
    """Return whether something has arrived that the event loop has not seen yet."""
    socket = transport.get_extra_info("socket")
    if sys.platform == "win32":  # which has no poll; the bound of select elsewhere is none there
        return bool(select.select([socket], [], [], 0)[0])
    polling = select.poll()
    polling.register(socket, select.POLLIN)
    return bool(polling.poll(0))
