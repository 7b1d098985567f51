"""The Bot API, through python-telegram-bot: its requests, its files and its errors; answers stay plain JSON.

An answer is not parsed into objects, because a message that is visible must count as sent even where a newer server
describes it in a way that the client library does not know.
"""

import os

# Only this keeps the library from warning at every 429; it is asked for when the library reads it.
os.environ.setdefault("PTB_TIMEDELTA", "true")

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from telegram import Bot, InputFile, InputMediaAudio, InputMediaDocument, InputMediaPhoto, InputMediaVideo
from telegram.request import HTTPXRequest

from botservice.tls import tls_context

__all__ = ["BotClient", "InputFile", "as_media"]

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 20.0
_UPLOAD_SECONDS = 60.0
_CONNECTIONS = 64
_POOL_SECONDS = 10.0
POLL_SECONDS = 25
# What has a link fetched by Telegram, to show what lies behind it. Captions and drafts have no previews.
# Source: core.telegram.org/bots/api, LinkPreviewOptions.
_PREVIEWING = frozenset({"sendMessage", "editMessageText"})


_Media = InputMediaAudio | InputMediaDocument | InputMediaPhoto | InputMediaVideo
_MEDIA: Mapping[str, Callable[..., _Media]] = {
    "audio": InputMediaAudio,
    "document": InputMediaDocument,
    "photo": InputMediaPhoto,
    "video": InputMediaVideo,
}


class WholeRequests(HTTPXRequest):
    """The library's requests, each in a task of its own: whoever waits for one may go, it comes to its end.

    A request that is cancelled at an unlucky moment takes its connection out of httpcore's pool for good; with
    httpcore 1.0.9 that is one in a hundred. After some thousands of answers whose drafts were cut short, none is left.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._under_way: set[asyncio.Task[tuple[int, bytes]]] = set()

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        """Return the answer to a request; it is sent whole also where the caller is cancelled."""
        task = asyncio.ensure_future(super().do_request(*args, **kwargs))
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def shutdown(self) -> None:
        """Cut off what is under way, and close every connection."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await super().shutdown()

    def _forget(self, task: asyncio.Task[tuple[int, bytes]]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # seen: whoever waited may have gone


class BotClient(Bot):
    """Calls methods of the Bot API by their names; methods that the library does not know yet work as well."""

    def __init__(self, token: str, api_url: str, *, connections: int = _CONNECTIONS, previews: bool = False) -> None:
        """Make a client; nothing is asked of Telegram yet.

        Args:
            previews: Whether Telegram may fetch what lies behind links, to show it.
        """
        self._is_previewing = previews
        url = api_url.rstrip("/")
        super().__init__(
            token,
            base_url=f"{url}/bot",
            base_file_url=f"{url}/file/bot",
            request=_requests(WholeRequests, connections),
            get_updates_request=_requests(HTTPXRequest, 1),  # cut off when it ends: nobody else may poll beside it
        )

    async def call(self, method: str, *, timeout_seconds: float = _ANSWER_SECONDS, **parameters: Any) -> Any:
        """Return the result of a method. Parameters that are None are left out.

        Raises:
            telegram.error.TelegramError: it was refused, or no answer came.
        """
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
        """Return a file's bytes; path is what getFile gave. The address holds the token, so nobody else sees it."""
        url = path if path.startswith(("http://", "https://")) else f"{self._base_file_url}/{path}"
        return await self.request.retrieve(url, read_timeout=_UPLOAD_SECONDS)

    async def close_connections(self) -> None:
        """Close every connection."""
        for request in self._request:
            await request.shutdown()


def as_media(payload: Mapping[str, Any], file: InputFile | str) -> _Media:
    """Return one of an album, as the library wants it; what it has besides its file stays plain JSON."""
    others = {name: value for name, value in payload.items() if name in ("caption", "caption_entities")}
    return _MEDIA[payload["type"]](file, api_kwargs=others)


def _requests(kind: type[HTTPXRequest], connections: int) -> HTTPXRequest:
    return kind(
        connection_pool_size=connections,
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_ANSWER_SECONDS,
        write_timeout=_ANSWER_SECONDS,
        pool_timeout=_POOL_SECONDS,
        media_write_timeout=_UPLOAD_SECONDS,
        httpx_kwargs={"verify": tls_context()},
    )
