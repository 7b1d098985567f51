"""The one place that makes clients of OpenAI's API, and of every server that speaks it."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from botservice.errors import SettingsError
from botservice.settings import OPENAI_API_URL, ModelSettings, reveal
from botservice.telemetry import register_secret
from botservice.tls import tls_context

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_CONNECT_SECONDS = 10.0
# Servers close what was idle for 5 s (uvicorn, and so vLLM; Node): a call that is sent at that moment would fail.
_IDLE_SECONDS = 3.0


class OpenAIClients:
    """One client for each event loop: connections do not travel between loops.

    Attributes:
        base_url: The server.
    """

    def __init__(self, settings: ModelSettings, *, base_url: str | None, api_key: str | None) -> None:
        """Note where to go; what is not given is a setting: OPENAI_BASE_URL, OPENAI_API_KEY.

        Raises:
            SettingsError: there is neither a key nor a base URL.
        """
        import openai  # noqa: F401 - here, because it takes a second, and not while others wait for the event loop

        base_url = base_url or settings.openai_base_url
        api_key = api_key or reveal(settings.openai_api_key)
        if api_key is None and base_url is None:
            raise SettingsError("OPENAI_API_KEY must be set, or OPENAI_BASE_URL for a server that needs no key")
        register_secret(api_key)
        self.base_url = base_url or OPENAI_API_URL
        self._api_key = api_key or "none"
        self._of_loop: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}

    def __len__(self) -> int:
        return len(self._of_loop)

    def current(self) -> "AsyncOpenAI":
        """Return the client of the running loop.

        It neither tries again nor ends what takes long: the service knows how long somebody has waited.
        """
        import openai

        loop = asyncio.get_running_loop()
        client = self._of_loop.get(loop)
        if client is None:
            self._of_loop = {known: one for known, one in self._of_loop.items() if not known.is_closed()}
            client = self._of_loop[loop] = openai.AsyncOpenAI(
                api_key=self._api_key,
                base_url=self.base_url,
                max_retries=0,
                timeout=openai.Timeout(None, connect=_CONNECT_SECONDS),
                http_client=openai.DefaultAsyncHttpxClient(limits=_limits(), verify=tls_context()),
            )
        return client

    async def close(self) -> None:
        """Close the connections of the running loop; those of other loops have ended with them."""
        client = self._of_loop.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()


def _limits() -> Any:
    """Return what connections are kept, and how long; how many there are at once, MAX_TURNS bounds."""
    import openai

    return replace(openai.DEFAULT_CONNECTION_LIMITS, max_connections=None, keepalive_expiry=_IDLE_SECONDS)
