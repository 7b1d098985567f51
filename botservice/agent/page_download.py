"""Asking for a page: few redirects, each looked at like the first address, and all of it within bounds.

A name is looked up here, and what was looked at is what is connected to.
"""

import asyncio
import codecs
import contextlib
import re
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import Message as Headers
from functools import partial
from itertools import count
from typing import Any, Final

import httpx2

from botservice.agent.page_addresses import PageAddress, is_public
from botservice.core.errors import PageRefused
from botservice.llm.proxies_and_tls import tls_context

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


def is_of_this_machine(address: str, port: int) -> bool:
    """Return whether an address is one that this machine has itself. Nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            if family == socket.AF_INET:  # an interface speaks to all its own addresses of version 4 from its first one
                asking.bind((address, 0))
            asking.connect((address, port))
            return str(asking.getsockname()[0]) == address
    except OSError:  # it is another machine's, there is no way to it, or no IPv6
        return False


def alternate(numbers: Sequence[str]) -> Sequence[str]:
    """Return addresses of IPv6 and IPv4 in turn, the family of the first one first: one family may lead nowhere."""
    families = {True: count(), False: count()}
    places = {number: next(families[":" in number]) for number in numbers}
    return sorted(numbers, key=places.__getitem__)


_PIECE: Final = 65_536
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE)
_HEAD: Final = 4_096
# Python knows encodings that are programs, or no encodings at all: these are those of pages.
_KNOWN: Final = re.compile(
    r"utf-?(8|16(-?[lb]e)?)|(us-)?ascii|latin-?1|iso-?8859-\d{1,2}|(windows|cp)-?125\d|koi8-[ru]|macintosh|tis-620"
    r"|shift[_-]jis|sjis|euc-(jp|kr)|iso-2022-jp|ks_c_5601-1987|gb2312|gbk|gb18030|big5(-hkscs)?",
    re.IGNORECASE,
)

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_MOST_REDIRECTS: Final = 5
_MOST_HEADERS: Final = 200
_HEADERS: Final = {
    "User-Agent": "botservice (reads one page for a person who asked)",
    "Accept": "text/html, application/xhtml+xml, text/plain, application/json, application/xml;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
}
_PLAIN: Final = frozenset(("application/json", "application/xml", "application/ld+json", "application/x-ndjson"))
_HTML: Final = frozenset(("text/html", "application/xhtml+xml"))
_PDF: Final = "application/pdf"
_LONGEST_TYPE: Final = 300  # characters: reading longer ones takes time that grows with their square


class Unpacker:
    """Unpacks a body piece by piece, up to a bound."""

    def __init__(self, encoding: str, most_bytes: int) -> None:
        """Make one for a Content-Encoding."""
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise PageRefused("the page is packed in a way that was not asked for")
        self._zlib = zlib.decompressobj(16 + zlib.MAX_WBITS) if "gzip" in encoding else None
        self._left = self._left_packed = most_bytes
        self.data = bytearray()

    @property
    def is_full(self) -> bool:
        """Whether there is more than may be read, packed or unpacked."""
        return min(self._left, self._left_packed) < 0

    @property
    def is_done(self) -> bool:
        """Whether no more is to be read: there is too much, or what is packed has come to its end."""
        return self.is_full or (self._zlib is not None and self._zlib.eof)

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        packed = len(piece)
        while piece and not self.is_done:
            if self._zlib is None:
                unpacked, piece = piece, b""
            else:
                try:
                    unpacked = self._zlib.decompress(piece, _PIECE)
                except zlib.error:
                    raise PageRefused("the page is damaged") from None
                piece = self._zlib.unconsumed_tail
            self.data += unpacked[: max(self._left, 0)]
            self._left -= len(unpacked)
        self._left_packed -= packed


def decode(data: bytes, charset: str | None) -> str:
    """Return the text of a page."""
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    meta = _META.search(data[:_HEAD])
    named = [charset, meta[1].decode("ascii") if meta else None]
    for name in [marked, *(each for each in named if each and _KNOWN.fullmatch(each)), "utf-8"]:
        if name is None:
            continue
        try:
            return data.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    if _is_nearly_utf8(data):
        return data.decode("utf-8", "replace")
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:  # to replace each sign that it does not know takes seconds
        return data.decode("latin-1")


def _is_nearly_utf8(data: bytes) -> bool:
    """Return whether few bytes are wrong: a page that was cut in the middle of a sign, say."""
    return data.decode("utf-8", "replace").count("\ufffd") * 100 < len(data)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What asking for one page may take.

    Attributes:
        seconds: From the first name that is looked up to the last byte.
        wait_seconds: For a connection, and between two pieces.
        most_bytes: Of the page, unpacked.
    """

    seconds: float = 20.0
    wait_seconds: float = 8.0
    most_bytes: int = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page as it came."""

    address: PageAddress
    kind: str
    charset: str | None
    data: bytes
    is_cut: bool = False


class PageFetcher:
    """Asks for pages of the public web. It sends no cookie, no name, and nothing of who asks.

    A name is connected to at one of the addresses that were checked. TLS is spoken with the name, not with the number:
    whose certificate it is, is checked as ever. No proxy of the environment is asked: it would look the name up again.
    """

    def __init__(
        self,
        limits: FetchLimits | None = None,
        *,
        resolve: Resolve = look_up,
        connect: Callable[[ssl.SSLContext], httpx2.AsyncBaseTransport] = httpx2.AsyncHTTPTransport,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits or FetchLimits()
        self._resolve = resolve
        self._connect = connect
        self._tls = tls

    async def fetch(self, address: PageAddress) -> FetchedPage:
        """Return a page.

        Raises:
            PageRefused: it cannot be had, or is not to be asked for; the message says why, and repeats nothing of it.
        """
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._follow(address)
        except (TimeoutError, httpx2.TimeoutException):
            raise PageRefused("the page did not come in time") from None
        except httpx2.ConnectError as error:
            is_tls = "[SSL" in str(error)
            why = "its certificate is not valid" if is_tls else "its server is not there, or has no such name"
            raise PageRefused(f"the page cannot be reached: {why}") from None
        except (httpx2.TransportError, OSError):
            raise PageRefused("the page's server broke off") from None

    async def _follow(self, address: PageAddress) -> FetchedPage:
        for _ in range(_MOST_REDIRECTS + 1):
            found = await self._ask(address)
            if isinstance(found, FetchedPage):
                return found
            address = found
        raise PageRefused(f"the page leads on more than {_MOST_REDIRECTS} times")

    async def _ask(self, address: PageAddress) -> FetchedPage | PageAddress:
        """Return the page at an address, or where it leads."""
        failure: httpx2.TransportError = httpx2.ConnectError("no address")
        for number in await self._numbers(address):
            try:
                return await self._ask_at(number, address)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _numbers(self, address: PageAddress) -> Sequence[str]:
        """Return the numbers of machines that a name has.

        Raises:
            PageRefused: one of them is not public, whatever the others are.
        """
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                numbers = await self._resolve(address.host, address.port)
        except (OSError, UnicodeError) as error:  # a TimeoutError is an OSError
            raise httpx2.ConnectError(type(error).__name__) from error
        if not all(is_public(each) and not is_of_this_machine(each, address.port) for each in numbers):
            raise PageRefused("this address leads to no machine of the public internet")
        return alternate(numbers)[:_MOST_TRIED]

    async def _ask_at(self, number: str, address: PageAddress) -> FetchedPage | PageAddress:
        wait = self._limits.wait_seconds
        opened = contextlib.AsyncExitStack()

        async def keep(event: str, info: Mapping[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                opened.push_async_callback(info["return_value"].aclose)

        request = httpx2.Request(
            "GET",
            address.url.copy_with(host=number),
            headers={"Host": address.url.netloc.decode("ascii"), **_HEADERS},
            extensions={
                "timeout": {"connect": wait, "read": wait, "write": wait, "pool": wait},
                "sni_hostname": address.host,
                "trace": keep,  # httpcore2 forgets a connection that is cancelled while TLS begins
            },
        )
        # One connection for one request: nothing of one page is left for another.
        async with opened, self._connect(self._tls or tls_context()) as connection:
            response = await connection.handle_async_request(request)
            async with contextlib.aclosing(response):
                return await self._read(response, address)

    async def _read(self, response: httpx2.Response, address: PageAddress) -> FetchedPage | PageAddress:
        headers = _read_headers(response.headers)
        if response.status_code in _REDIRECTS and "location" in headers:
            return address.join(headers["location"])
        if response.status_code != 200:
            raise PageRefused(f"the page's server answered {response.status_code}")
        kind, charset = _read_type(headers.get("content-type", ""))
        unpacker = Unpacker(headers.get("content-encoding", "").strip().lower(), self._limits.most_bytes)
        async for piece in response.aiter_raw():
            unpacker.add(piece)
            if unpacker.is_done:
                break
            await asyncio.sleep(0)  # thousands of small pieces come in one read: others are served between them
        if unpacker.is_full and kind == "pdf":
            raise PageRefused("the file is too large to be read")
        return FetchedPage(address, kind, charset, bytes(unpacker.data), unpacker.is_full)


def _read_headers(given: httpx2.Headers) -> Mapping[str, str]:
    """Return headers by their names; the first one counts."""
    if len(given.raw) > _MOST_HEADERS:
        raise PageRefused("the page's server says too much before the page")
    return dict(reversed(given.multi_items()))


def _read_type(header: str) -> tuple[str, str | None]:
    """Return how a page is to be read, and its encoding where that is said."""
    said = Headers()
    said["content-type"] = header[:_LONGEST_TYPE]
    name = said.get_content_type() if header else "text/html"
    try:
        charset = said.get_content_charset()
    except (TypeError, ValueError):  # it is written as nobody can read it
        charset = None
    if name in _HTML:
        return "html", charset
    if name == _PDF:
        return "pdf", None
    if name.startswith("text/") or name in _PLAIN or name.endswith(("+json", "+xml")):
        return "text", charset
    raise PageRefused("this is neither a page nor a text that could be read")
