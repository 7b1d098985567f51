"""The one place that makes clients of OpenAI's API, and of every server that speaks it."""

import asyncio
import contextlib
import importlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import proxy_bypass

from botservice.config.settings import OPENAI_API_URL, ModelSettings, reveal
from botservice.core.argument_checks import check_address
from botservice.core.errors import LLMError, SettingsError
from botservice.llm.openai.options import address_of
from botservice.llm.proxies_and_tls import tls_context
from botservice.telemetry.logs import register_secret

if TYPE_CHECKING:
    import httpx2
    from openai import APIStatusError, AsyncOpenAI

_LOADED_LATE = ("openai", "botservice.llm.openai.aiohttp_transport")
_CONNECT_SECONDS = 10.0
_REFUSAL_SECONDS = 10.0  # for what a server says next to the status by which it refuses
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
# Servers close what was idle for 5 s (uvicorn, and so vLLM; Node): a call that is sent at that moment would fail.
_IDLE_SECONDS = 3.0
# A hundred times the longest answers: what says more is compressed nonsense, or has no end.
_MOST_BYTES = 128 * 1024 * 1024


class Connections:
    """The connections that one event loop asks by: closed by `close`, and at the latest with the event loop.

    Attributes:
        client: The openai client, for what is asked seldom.
    """

    def __init__(self, http: "httpx2.AsyncClient", *, api_key: str, base_url: str) -> None:
        import openai

        # Once: the service knows how long people wait.
        base, _, query = base_url.partition("?")
        self.client = openai.AsyncOpenAI(
            api_key=api_key, base_url=base, default_query=dict(parse_qsl(query)), max_retries=0, http_client=http
        )
        # Nobody answers otherwise for what these say of the machine. Each name once, however it is written.
        self._headers = {
            name.lower(): value
            for name, value in {**self.client.auth_headers, **self.client.default_headers}.items()
            if isinstance(value, str) and not name.lower().startswith("x-stainless-")
        }
        self._http = http
        self._calls = 0
        self._is_closed = False
        self._life = self._live()

    @contextlib.asynccontextmanager
    async def post(self, address: str, content: bytes) -> "AsyncIterator[httpx2.Response]":
        """Send a request, and yield the answer before it is read."""
        self._calls += 1
        try:
            async with contextlib.aclosing(
                await self._http.send(self._request(address, content), stream=True)
            ) as answer:
                yield answer
        finally:
            self._calls -= 1
            await self._close_if_unused()

    async def open(self) -> None:
        """Have the running event loop close the connections when it ends, or when nobody has them any more."""
        await anext(self._life)

    async def close(self) -> None:
        """Close the connections, once the calls that are under way have ended."""
        await self._life.aclose()

    def _request(self, address: str, content: bytes) -> "httpx2.Request":
        build = partial(self._http.build_request, "POST", address, headers=self._headers, content=content)
        try:
            return build()
        except UnicodeEncodeError:  # a server has set a cookie that no header can hold
            self._http.cookies.clear()
            return build()

    async def _live(self) -> AsyncGenerator[None]:
        # An event loop that ends closes the generators that were begun on it, and nothing else.
        try:
            yield
        finally:
            self._is_closed = True
            await self._close_if_unused()

    async def _close_if_unused(self) -> None:
        if self._is_closed and not self._calls:
            await self.client.close()


class OpenAIClients:
    """One client for each event loop: connections do not travel between loops.

    Attributes:
        base_url: The address of the server.
    """

    def __init__(self, settings: ModelSettings, *, base_url: str | None, api_key: str | None) -> None:
        """Note where to go; what is not given is a setting: OPENAI_BASE_URL, OPENAI_API_KEY.

        Raises:
            SettingsError: there is neither a key nor a base URL.
            InvalidArgument: base_url is no address of a server.
        """
        if base_url:
            check_address("base_url=", base_url)
        base_url = base_url or settings.openai_base_url
        api_key = api_key or reveal(settings.openai_api_key)
        if api_key is None and base_url is None:
            raise SettingsError("OPENAI_API_KEY must be set, or OPENAI_BASE_URL for a server that needs no key")
        register_secret(api_key)
        self.base_url = base_url or OPENAI_API_URL
        self._api_key = api_key or "none"
        self._of_loop: dict[asyncio.AbstractEventLoop, Connections] = {}

    def __len__(self) -> int:
        return len(self._of_loop)

    async def current(self) -> "AsyncOpenAI":
        """Return the client of the running loop."""
        return (await self._connections()).client

    def address(self, path: str) -> str:
        """Return where a path of the server is."""
        return address_of(self.base_url, path)

    @contextlib.asynccontextmanager
    async def post(self, path: str, body: dict[str, Any]) -> "AsyncIterator[httpx2.Response]":
        """Send a request, and yield the answer before it is read.

        Asked for by its client, a call costs half as much again: options that never change are copied and checked.

        Raises:
            httpx2.RequestError: the server could not be asked.
            openai.APIStatusError: it refused.
        """
        connections = await self._connections()
        async with connections.post(self.address(path), _JSON.encode(body).encode()) as response:
            if not response.is_success:
                raise _status_error(await _read_refusal(response))
            yield response

    async def close(self) -> None:
        """Close the connections of the running event loop; those of other loops ended with them."""
        connections = self._of_loop.pop(asyncio.get_running_loop(), None)
        if connections is not None:
            await connections.close()

    async def _connections(self) -> Connections:
        loop = asyncio.get_running_loop()
        if loop not in self._of_loop:
            # It takes a second: not before the service is ready, and not while others wait for the event loop.
            await asyncio.to_thread(lambda: [importlib.import_module(name) for name in _LOADED_LATE])
        known = self._of_loop.get(loop)
        if known is None:
            self._of_loop = {known: one for known, one in self._of_loop.items() if not known.is_closed()}
            http = _make_http_client(self.base_url)
            known = self._of_loop[loop] = Connections(http, api_key=self._api_key, base_url=self.base_url)
            await known.open()
        return known


def _status_error(response: "httpx2.Response") -> "APIStatusError":
    """Return the error that the openai client raises for this status; what the server says is in its `response`."""
    import openai

    kinds: dict[int, type[openai.APIStatusError]] = {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        403: openai.PermissionDeniedError,
        404: openai.NotFoundError,
        409: openai.ConflictError,
        422: openai.UnprocessableEntityError,
        429: openai.RateLimitError,
    }
    status = response.status_code
    kind = kinds.get(status, openai.InternalServerError if status >= 500 else openai.APIStatusError)
    return kind(f"Error code: {status}", response=response, body=None)


async def _read_refusal(response: "httpx2.Response") -> "httpx2.Response":
    """Return a refusal that is read: its status and its headers alone, where nobody can read the rest."""
    import httpx2

    try:
        async with asyncio.timeout(_REFUSAL_SECONDS):
            await response.aread()
    except (TimeoutError, httpx2.RequestError):
        return httpx2.Response(response.status_code, headers=_without_body(response), request=response.request)
    return response


def _without_body(response: "httpx2.Response") -> list[tuple[str, str]]:
    return [(name, value) for name, value in response.headers.multi_items() if not name.startswith("content-")]


def _make_http_client(base_url: str) -> "httpx2.AsyncClient":
    """Return a client that waits as long as it takes; how many connections there are at once, MAX_TURNS bounds.

    Raises:
        SettingsError: the environment names a proxy that nothing can be asked by.
    """
    import httpx2
    import openai

    from botservice.llm.openai.aiohttp_transport import direct_mounts

    make = partial(
        openai.DefaultAsyncHttpxClient,
        timeout=openai.Timeout(None, connect=_CONNECT_SECONDS),
        limits=replace(openai.DEFAULT_CONNECTION_LIMITS, max_connections=None, keepalive_expiry=_IDLE_SECONDS),
        verify=tls_context(),
        mounts=direct_mounts(base_url, tls_context(), idle_seconds=_IDLE_SECONDS),
        event_hooks={"response": [_bound]},
    )
    try:
        return make()
    except (ImportError, ValueError, httpx2.InvalidURL) as error:  # it makes a way to each proxy of the environment
        where = urlsplit(base_url)
        if not (proxy_bypass(where.hostname or "") or proxy_bypass(where.netloc)):
            named = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a proxy that models cannot be asked by"
            raise SettingsError(f"{named}: unset it, or name one of kind http:// or https://") from error
        return make(trust_env=False)


async def _bound(response: "httpx2.Response") -> None:
    """Have the reading of an answer fail where it is longer than any answer of a model, unpacked."""
    read = response.aiter_bytes

    async def bounded(chunk_size: int | None = None) -> AsyncGenerator[bytes]:
        size = 0
        async for piece in read(chunk_size):
            size += len(piece)
            if size > _MOST_BYTES:
                raise LLMError(f"the model's server says more than {_MOST_BYTES:,} bytes", is_transient=False)
            yield piece

    response.aiter_bytes = bounded  # type: ignore[method-assign]  # aread reads by it as well
