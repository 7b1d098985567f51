"""The Web API, through slack-sdk: one session for every workspace, and no second try behind our back.

The SDK's own retries would send a message again whose answer was lost; whether it arrived is asked first here.
"""

import asyncio
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.proxy_env_variable_loader import load_http_proxy_from_env
from slack_sdk.web.async_client import AsyncWebClient

from botservice.core.errors import BotServiceError, DeliveryError, DeliveryRefused, DeliveryUnknown
from botservice.llm.proxies_and_tls import name_proxy

# The request did not leave: nothing can have happened.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_CODES: Final[Mapping[str, Sequence[str]]] = tomllib.loads(
    Path(__file__).with_name("error_codes.toml").read_text(encoding="utf-8")
)

_ANSWER_SECONDS = 20
_CONNECT_SECONDS = 5.0
_FILE_SECONDS = 60.0


class SlackFailure(BotServiceError):
    """A call that Slack refused, or that has no answer. Which codes mean what stands in error_codes.toml.

    Attributes:
        code: Slack's word for it; "lost" where no answer came, "unreachable" where the request did not leave.
        reason: The code with what else is known, such as the proxy by which Slack was asked.
        retry_after_seconds: How long Slack asked to wait, if it did.
        needed: The scope that the token lacks, where that is why.
        is_unknown: Whether it may have happened all the same.
        is_later: Whether trying again later may help.
        is_token_gone: Whether the token is not valid any more.
        is_about_form: Whether the same words may pass in a simpler form.
        is_about_figures: Whether what is drawn in a message is not known there.
        is_about_arguments: Whether something that was asked for is not known there.
        is_not_here: Whether a method cannot be used in this workspace.
        is_about_place: Whether it says something about one conversation, and nothing about its workspace.
        is_without_streams: Whether a workspace, or a conversation, has no streams.
    """

    def __init__(
        self, code: str, *, retry_after_seconds: float | None = None, needed: str | None = None, detail: str = ""
    ) -> None:
        self.reason = code + (f" ({detail})" if detail else "")
        super().__init__(f"Slack says {self.reason}")
        self.code = code
        self.retry_after_seconds = retry_after_seconds
        self.needed = needed
        self.is_unknown = code in _CODES["is_unknown"]
        self.is_later = self.is_unknown or code in _CODES["is_later"]
        self.is_token_gone = code in _CODES["is_token_gone"]
        self.is_about_form = code in _CODES["is_about_form"]
        self.is_about_figures = code in _CODES["is_about_figures"]
        self.is_about_arguments = code in _CODES["is_about_arguments"]
        self.is_not_here = self.is_about_arguments or code in _CODES["is_not_here"]
        self.is_about_place = code in _CODES["is_about_place"]
        self.is_without_streams = code in _CODES["is_without_streams"]


class NotInstalled(BotServiceError):
    """No token is known for a workspace."""


def translate(error: Exception) -> SlackFailure:
    """Return what went wrong with a call."""
    if isinstance(error, SlackFailure):
        return error
    if isinstance(error, SlackApiError):
        return _refusal(error)
    by = name_proxy(load_http_proxy_from_env()).strip()  # as the SDK does, which knows no exceptions
    if isinstance(error, _NOT_SENT):
        return SlackFailure("unreachable", detail=by)
    if isinstance(error, aiohttp.ClientError | TimeoutError | asyncio.TimeoutError | OSError):
        return SlackFailure("lost", detail=by)
    if isinstance(error, SlackClientError):
        return SlackFailure("invalid_arguments", detail=type(error).__name__)
    return SlackFailure("lost", detail=type(error).__name__)


def as_delivery_error(failure: SlackFailure) -> DeliveryError:
    """Return what failure means for a message that was to become visible."""
    if failure.is_unknown:
        known = failure.reason.removeprefix(failure.code)
        return DeliveryUnknown(f"Slack's answer was lost{known}")
    if failure.is_later:
        return DeliveryError(str(failure), retry_after_seconds=failure.retry_after_seconds)
    return DeliveryRefused(f"Slack refuses: {failure.code}")


def _refusal(error: SlackApiError) -> SlackFailure:
    response = error.response
    status = int(getattr(response, "status_code", None) or getattr(response, "status", None) or 200)
    data = getattr(response, "data", None)
    data = data if isinstance(data, dict) else {}
    code = data.get("error")
    if status == 429:
        return SlackFailure("ratelimited", retry_after_seconds=_seconds(response.headers))
    if not isinstance(code, str) or status >= 500:
        return SlackFailure("lost" if status != 404 else "unknown_method", detail=f"HTTP {status}")
    needed = data.get("needed")
    return SlackFailure(code, needed=needed if isinstance(needed, str) else None)


def _seconds(headers: Mapping[str, str]) -> float:
    """Return what Retry-After says; Slack means whole seconds."""
    try:
        return max(float(headers.get("Retry-After", "1")), 0.0)
    except ValueError:
        return 1.0


class SlackClient:
    """Calls methods of the Web API by name, with the token of any workspace; each call may raise a SlackFailure."""

    def __init__(self, api_url: str) -> None:
        """Make a client; nothing is opened before the first call."""
        self.base_url = api_url.rstrip("/") + "/"
        self._session: aiohttp.ClientSession | None = None
        self._sdk: AsyncWebClient | None = None

    def web_client(self) -> AsyncWebClient:
        """Return the SDK's client, to which each call gives its token. Only while a loop runs."""
        if self._sdk is None:
            self._sdk = AsyncWebClient(
                base_url=self.base_url, session=self._open(), retry_handlers=[], timeout=_ANSWER_SECONDS
            )
        return self._sdk

    async def call(self, token: str, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer of a method that writes. Parameters that are None are left out."""
        answer, _ = await self.call_with_headers(token, method, **parameters)
        return answer

    async def ask(self, token: str, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer of a method that reads: those take no JSON."""
        answer, _ = await self._send(method, http_verb="GET", params=_given(parameters, token))
        return answer

    async def call_with_headers(
        self, token: str, method: str, **parameters: Any
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Return the answer of a method and its headers, whose names are in lower case."""
        return await self._send(method, json=_given(parameters, token))

    async def download(self, token: str, url: str, *, max_bytes: int) -> tuple[bytes, str]:
        """Return a file's bytes, at most max_bytes and one more, and its content type."""
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
        """Give a file's bytes to the address that Slack has named for them."""
        await self._post(url, data=data)

    async def respond(self, url: str, body: Mapping[str, Any]) -> None:
        """Answer a command or an interaction at its response address, which holds for 30 minutes and five answers."""
        await self._post(url, json=dict(body))

    async def close(self) -> None:
        """Close every connection."""
        session, self._session, self._sdk = self._session, None, None
        if session is not None:
            await session.close()

    async def _send(self, method: str, **request: Any) -> tuple[dict[str, Any], Mapping[str, str]]:
        try:
            answer = await self.web_client().api_call(method, **request)
        except Exception as error:
            raise translate(error) from error
        data = answer.data if isinstance(answer.data, dict) else {}
        return data, {name.lower(): value for name, value in answer.headers.items()}

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
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS, sock_connect=_CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout)
        return self._session


def _given(parameters: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Return the parameters that are given, with the token where the SDK takes it for one call."""
    return {name: each for name, each in parameters.items() if each is not None} | {"token": token}
