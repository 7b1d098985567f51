"""The Bot API, through python-telegram-bot: its requests, its files and its errors; answers stay plain JSON.

An answer is not parsed into objects, because a message that is visible must count as sent even where a newer server
describes it in a way that the client library does not know.
"""

import os

# Only this keeps the library from warning at every 429; it is asked for when the library reads it.
os.environ.setdefault("PTB_TIMEDELTA", "true")

import asyncio
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from telegram import Bot, InputFile, InputMedia
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import BaseRequest, RequestData

from botservice.core.messages import storable
from botservice.core.threads import run_in_thread
from botservice.llm.connector import LONGEST_HEADER, Connector
from botservice.llm.proxies_and_tls import name_proxy, tls_context

__all__ = ["BotClient", "InputFile", "as_media"]

TELEGRAM_FILE_BYTES: Final = 20 * 1024 * 1024  # Source: Bot API, getFile
_ANSWER_SECONDS = 20.0
_DOWNLOAD_SECONDS = 60.0
_CONNECTIONS = 64
_LARGEST_FILE_BYTES = TELEGRAM_FILE_BYTES + 1024**2  # the limit is Telegram's, and it may count otherwise
POLL_SECONDS = 25
# In the name of a file: what would end it, and what no header may hold.
_ESCAPED = {code: f"%{code:02X}" for code in (*range(0x20), 0x22, 0x7F)}
# What has a link fetched by Telegram, to show what lies behind it. Captions and drafts have no previews.
# Source: core.telegram.org/bots/api, LinkPreviewOptions.
_PREVIEWING = frozenset({"sendMessage", "editMessageText"})
_RESULT = re.compile(rb'\{\s*"ok"\s*:\s*true\s*,\s*"result"')  # as nearly every answer begins: no need to parse it


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the parts of a request may take, in seconds.

    Attributes:
        connect: To reach the server.
        pool: Until a connection is free and open.
        upload: How much longer an answer is waited for where files are sent.
        bytes_a_second: How much of a file is taken in a second at least.
    """

    connect: float = 5.0
    pool: float = 10.0
    upload: float = 60.0
    bytes_a_second: float = 50_000


class Requests(BaseRequest):
    """The library's requests through aiohttp, which takes half the time of the library's own way.

    Each is made in a task of its own: the caller may be cancelled, and the request still completes.
    """

    def __init__(self, connections: int, limits: Limits | None = None, *, ends_with_caller: bool = False) -> None:
        """Make what asks; nothing is opened before the first request.

        Args:
            ends_with_caller: Whether none goes on when nobody waits for it any more.
        """
        self._connections = connections
        self._ends_with_caller = ends_with_caller
        self._limits = limits or Limits()
        self._session: aiohttp.ClientSession | None = None
        self._by = ""  # the proxy, for errors
        self._under_way: set[asyncio.Task[tuple[int, bytes]]] = set()

    @property
    def read_timeout(self) -> float:
        """How long an answer is waited for, in seconds, where nothing else is said."""
        return _ANSWER_SECONDS

    async def initialize(self) -> None:
        """Do nothing: what has to be opened is opened by the first request."""

    async def shutdown(self) -> None:
        """Cut off what is under way, and close every connection."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._session is not None:
            await self._session.close()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = None,
        *_: Any,
        **__: Any,
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer.

        Raises:
            telegram.error.NetworkError: no answer came; TimedOut: not in time.
        """
        seconds = read_timeout if isinstance(read_timeout, int | float) else _ANSWER_SECONDS
        task = asyncio.create_task(self._ask(url, method, request_data, seconds))
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        return await (task if self._ends_with_caller else asyncio.shield(task))

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Return an answer of the Bot API; the library believes any JSON to be one."""
        try:
            found = BaseRequest.parse_json_payload(payload)
        except RecursionError as error:
            raise TelegramError("Invalid server response") from error
        if not isinstance(found, dict) or not _is_answer(found):
            raise TelegramError("Invalid server response")
        return found

    async def _ask(self, url: str, method: str, given: RequestData | None, seconds: float) -> tuple[int, bytes]:
        files = given.multipart_data if given is not None else {}
        if files:
            seconds += self._limits.upload
        # aiohttp waits for an answer once all is sent, and for that without a limit.
        size = sum(len(data) for _, data, _ in files.values() if isinstance(data, bytes))
        moving = (size if method == "POST" else _LARGEST_FILE_BYTES) / self._limits.bytes_a_second
        total = self._limits.pool + self._limits.connect + moving + seconds
        timeout = aiohttp.ClientTimeout(total, self._limits.pool, seconds, self._limits.connect)
        data = given.json_parameters if given is not None else None
        try:
            async with self._open(url).request(
                method, url, data=_form(data or {}, files) if files else data, timeout=timeout, allow_redirects=False
            ) as answer:
                body = await _read(answer)
                return _status(answer.status, body) if method == "POST" else answer.status, body
        except TimeoutError as error:
            raise TimedOut(f"Timed out{self._by}") from error
        except aiohttp.ClientError as error:  # its words may hold the address, and that the token
            raise NetworkError(f"{type(error).__name__}{self._by}") from error

    def _open(self, url: str) -> aiohttp.ClientSession:
        if self._session is None:
            proxy = _proxy_for(url)
            self._by = name_proxy(proxy)
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=self._connections, ssl=tls_context()),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=LONGEST_HEADER,
                max_field_size=LONGEST_HEADER,
                headers={"User-Agent": self.USER_AGENT},
                proxy=proxy,
            )
        return self._session

    def _forget(self, task: asyncio.Task[tuple[int, bytes]]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # seen: the caller may have been cancelled


class LocalFileError(TelegramError):
    """A file of a Bot API server in local mode cannot be read: the server and this service share no disk."""


class BotClient(Bot):
    """Calls methods of the Bot API by their names; methods that the library does not know yet work as well.

    `_post` is private to the library: its public `do_api_request` warns of every method that has a function of its own.
    """

    def __init__(self, token: str, api_url: str, *, connections: int = _CONNECTIONS, previews: bool = False) -> None:
        """Make a client; nothing is asked of Telegram yet."""
        self._is_previewing = previews
        # No other request may poll next to one that nobody waits for.
        self._calling, self._polling = Requests(connections), Requests(1, ends_with_caller=True)
        url = api_url.rstrip("/")
        super().__init__(
            token,
            base_url=f"{url}/bot",
            base_file_url=f"{url}/file/bot",
            request=self._calling,
            get_updates_request=self._polling,
        )

    async def call(self, method: str, *, timeout_seconds: float = _ANSWER_SECONDS, **parameters: Any) -> Any:
        """Return the result of a method, or raise a TelegramError. Parameters that are None are left out."""
        if method in _PREVIEWING and not self._is_previewing:
            parameters = {"link_preview_options": {"is_disabled": True}, **parameters}
        return await self._post(method, parameters, read_timeout=timeout_seconds)

    async def next_updates(self, offset: int | None, allowed: list[str]) -> list[Any]:
        """Return the updates from offset on, as they came; wait for them if need be."""
        found = await self._post(
            "getUpdates",
            {"offset": offset, "timeout": POLL_SECONDS, "allowed_updates": allowed},
            read_timeout=POLL_SECONDS + 10.0,
        )
        return found if isinstance(found, list) else []

    async def download(self, path: str) -> bytes:
        """Return a file's bytes; path is what getFile gave. The address holds the token, so it is logged nowhere.

        Raises:
            LocalFileError: a server of one's own names a file on its disk, and nothing here can read it.
        """
        if Path(path).is_absolute():
            data: bytes = await run_in_thread(partial(self._read_local, path), name="telegram-file")
            return data
        url = path if path.startswith(("http://", "https://")) else f"{self.base_file_url}/{path}"
        return await self._calling.retrieve(url, read_timeout=_DOWNLOAD_SECONDS)

    def _read_local(self, path: str) -> bytes:
        """Return the bytes of a file that a server in local mode has on its disk, in the folder called by the token."""
        place = Path(path).resolve()
        if not {self.token, self.token.replace(":", "~")} & set(place.parts):  # no folder of Windows has a colon
            raise LocalFileError("the server names a file outside of the bot's own folder")
        try:
            with place.open("rb") as file:
                data = file.read(_LARGEST_FILE_BYTES + 1)
        except OSError as error:
            raise LocalFileError(f"the server's file cannot be read here: {type(error).__name__}") from error
        if len(data) > _LARGEST_FILE_BYTES:
            raise LocalFileError("the server's file is too large")
        return data

    async def close_connections(self) -> None:
        """Close every connection."""
        for requests in (self._calling, self._polling):
            await requests.shutdown()


def as_media(payload: Mapping[str, Any], file: InputFile | str) -> InputMedia:
    """Return one of an album, as the library wants it; what it has besides its file stays plain JSON."""
    others = {name: value for name, value in payload.items() if name in ("caption", "caption_entities")}
    return InputMedia(payload["type"], file, api_kwargs=others)


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer.

    Raises:
        aiohttp.ClientPayloadError: it is longer than any file that a bot may fetch.
    """
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > _LARGEST_FILE_BYTES:
            raise aiohttp.ClientPayloadError("the answer is too long")
    return bytes(body)


def _status(status: int, body: bytes) -> int:
    """Return the status of what the Bot API answers, also where something before it says 200 of every answer."""
    if status != 200 or _RESULT.match(body):
        return status
    try:
        found = Requests.parse_json_payload(body)
    except TelegramError:
        return status  # the library says what is wrong
    code = found.get("error_code")
    return status if "result" in found else code if isinstance(code, int) and code >= 400 else 500


def _is_answer(found: Mapping[str, Any]) -> bool:
    """Return whether an object holds what the Bot API answers: a result, or why there is none."""
    has_reason = isinstance(found.get("description"), str) and isinstance(found.get("parameters") or {}, Mapping)
    return "result" in found or has_reason


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address.

    It is looked for once: aiohttp itself would read the environment, and a file of passwords, before each request.
    """
    parts, proxies = urlsplit(url), getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):  # with its port
        return None
    kind, separator, _ = found.partition("://")
    if separator and kind.lower() not in ("http", "https"):
        reason = f"the environment names a proxy of kind {kind}; only http and https ones can be asked"
        raise NetworkError(reason) from aiohttp.NonHttpUrlClientError(kind)
    return found if separator else f"http://{found}"


def _form(fields: Mapping[str, str], files: Mapping[str, Any]) -> aiohttp.FormData:
    """Return what is sent with files; their names go out as they are, but for what no header takes."""
    form = aiohttp.FormData(quote_fields=False)
    for name, value in fields.items():
        form.add_field(name, value)
    for name, (filename, data, mime_type) in files.items():
        form.add_field(
            name,
            io.BytesIO(data) if isinstance(data, bytes) else data,
            filename=storable(filename.translate(_ESCAPED)),
            content_type=mime_type,
        )
    return form
