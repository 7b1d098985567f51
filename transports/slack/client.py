"""The Web API, through slack-sdk: one session for every workspace, and no second try behind our back.

The SDK's own retries would send a message again whose answer was lost; whether it arrived is asked first here.
"""

from collections.abc import Mapping
from typing import Any

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from transports.slack.failures import SlackFailure, translate

_ANSWER_SECONDS = 20
_CONNECT_SECONDS = 5.0
_FILE_SECONDS = 60.0
_MAX_TOKENS = 1000


class SlackClient:
    """Calls methods of the Web API by their names, with any workspace's token."""

    def __init__(self, api_url: str) -> None:
        """Make a client; nothing is opened before the first call.

        Args:
            api_url: Such as https://slack.com/api.
        """
        self.base_url = api_url.rstrip("/") + "/"
        self._session: aiohttp.ClientSession | None = None
        self._clients: dict[str | None, AsyncWebClient] = {}

    def web_client(self, token: str | None = None) -> AsyncWebClient:
        """Return the SDK's client for a token. Only while a loop runs."""
        client = self._clients.get(token)
        if client is None or client.session is None or client.session.closed:
            if len(self._clients) >= _MAX_TOKENS:
                del self._clients[next(iter(self._clients))]
            client = self._clients[token] = AsyncWebClient(
                token=token, base_url=self.base_url, session=self._open(), retry_handlers=[], timeout=_ANSWER_SECONDS
            )
        return client

    async def call(self, token: str | None, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer of a method that writes. Parameters that are None are left out.

        Raises:
            SlackFailure: it was refused, or no answer came.
        """
        return await self._send(
            token, method, json={name: each for name, each in parameters.items() if each is not None}
        )

    async def ask(self, token: str | None, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer of a method that reads: those take no JSON.

        Raises:
            SlackFailure: it was refused, or no answer came.
        """
        said = {name: each for name, each in parameters.items() if each is not None}
        return await self._send(token, method, http_verb="GET", params=said)

    async def call_with_headers(self, token: str | None, method: str) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Return the answer of a method and its headers, whose names are in lower case.

        Raises:
            SlackFailure: it was refused, or no answer came.
        """
        try:
            answer = await self.web_client(token).api_call(method)
        except Exception as error:
            raise translate(error) from error
        data = answer.data if isinstance(answer.data, dict) else {}
        return data, {name.lower(): value for name, value in answer.headers.items()}

    async def download(self, token: str, url: str, *, max_bytes: int) -> tuple[bytes, str]:
        """Return a file's bytes, at most max_bytes and one more, and its content type.

        Raises:
            SlackFailure: it is not given out.
        """
        headers, limit = {"Authorization": f"Bearer {token}"}, aiohttp.ClientTimeout(total=_FILE_SECONDS)
        try:
            async with self._open().get(url, headers=headers, timeout=limit) as answer:
                status, content_type = answer.status, answer.content_type
                data = bytearray()
                async for piece in answer.content.iter_chunked(65536):
                    data += piece
                    if len(data) > max_bytes:
                        break
        except Exception as error:
            raise translate(error) from error
        if status != 200:
            raise SlackFailure("file_not_found", detail=f"HTTP {status}")
        return bytes(data), content_type

    async def upload(self, url: str, data: bytes) -> None:
        """Give a file's bytes to the address that Slack has named for them.

        Raises:
            SlackFailure: it was not taken.
        """
        await self._post(url, data=data)

    async def respond(self, url: str, body: Mapping[str, Any]) -> None:
        """Answer a command or an interaction at the address that came with it.

        Raises:
            SlackFailure: it was not taken; such addresses hold for 30 minutes and five answers.
        """
        await self._post(url, json=dict(body))

    async def close(self) -> None:
        """Close every connection."""
        session, self._session = self._session, None
        self._clients.clear()
        if session is not None:
            await session.close()

    async def _send(self, token: str | None, method: str, **request: Any) -> dict[str, Any]:
        try:
            answer = await self.web_client(token).api_call(method, **request)
        except Exception as error:
            raise translate(error) from error
        data = answer.data
        return data if isinstance(data, dict) else {}

    async def _post(self, url: str, **request: Any) -> None:
        try:
            timeout = aiohttp.ClientTimeout(total=_FILE_SECONDS)
            async with self._open().post(url, timeout=timeout, **request) as answer:
                status = answer.status
                await answer.read()
        except Exception as error:
            raise translate(error) from error
        if status >= 500:
            raise SlackFailure("lost", detail=f"HTTP {status}")
        if status != 200:
            raise SlackFailure("expired_url", detail=f"HTTP {status}")

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS, sock_connect=_CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout)
        return self._session
