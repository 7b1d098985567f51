"""Events by Socket Mode: Slack is called, and delivers through the connection that this opens."""

import asyncio
import logging
import time

from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from transports.slack.client import SlackClient
from transports.slack.failures import SlackFailure, translate

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


class SocketListener:
    """Keeps a connection open, and acknowledges through it what is stored.

    Args:
        ping_seconds: How often the connection is tried; a dead one is noticed after four of them.
    """

    def __init__(self, app: AsyncApp, client: SlackClient, app_token: str, *, ping_seconds: float = 5.0) -> None:
        self._app = app
        self._client = client
        self._token = app_token
        self._ping_seconds = ping_seconds
        self._socket: SocketModeClient | None = None

    async def run(self) -> None:
        """Listen until cancelled."""
        socket = self._socket = SocketModeClient(
            app_token=self._token, web_client=self._client.web_client(), ping_interval=self._ping_seconds
        )
        socket.socket_mode_request_listeners.append(self._handle)
        try:
            await self._connect(socket)
            await asyncio.Event().wait()
        finally:
            self._socket = None
            await _close(socket)

    async def _connect(self, socket: SocketModeClient) -> None:
        """Connect for the first time; from then on the SDK's client keeps the connection."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await socket.connect_to_new_endpoint()
            except Exception as error:  # noqa: BLE001 - a border: whatever it was, it is tried again
                failure = translate(error)
                _explain(failure, pause)
                await asyncio.sleep(failure.retry_after_seconds or pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            else:
                logger.info("slack.socket_open")
                return

    async def _handle(self, socket: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        begun = time.time()
        try:
            answer = await run_async_bolt_app(self._app, request)
        except Exception as error:  # noqa: BLE001 - a border: Bolt believes that every body is what Slack sends
            logger.warning("slack.unreadable", extra={"reason": type(error).__name__})
            answer = BoltResponse(status=200)
        if answer.status in (400, 404):  # not what Slack sends, or nothing of ours: it need not come again
            answer = BoltResponse(status=200)
        try:
            await send_async_response(socket, request, answer, begun)
        except Exception as error:  # noqa: BLE001 - a border: what is not acknowledged comes again, and is known
            logger.info("slack.not_acknowledged", extra={"reason": type(error).__name__})


async def _close(socket: SocketModeClient) -> None:
    tasks = [socket.message_processor, socket.current_session_monitor, socket.message_receiver]
    try:
        await socket.close()  # type: ignore[no-untyped-call]  # the SDK leaves it without types
    except Exception as error:  # noqa: BLE001 - a border: it is gone either way
        logger.debug("slack.socket_not_closed", extra={"reason": type(error).__name__})
    await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)


def _explain(failure: SlackFailure, pause: float) -> None:
    if failure.is_token_gone or failure.code in ("not_allowed_token_type", "missing_scope"):
        advice = "SLACK_APP_TOKEN is refused: Basic Information, App-Level Tokens, scope connections:write"
        logger.error("slack.token_refused", extra={"reason": failure.code, "advice": advice})
    else:
        logger.warning("slack.unreachable", extra={"reason": failure.code, "wait_seconds": pause})
