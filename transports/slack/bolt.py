"""What Slack delivers, by HTTP or through a socket, goes through Bolt, and is stored before it is acknowledged.

By HTTP, the signature is checked before anything is read for long.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from botservice.core.errors import BotServiceError
from transports.common.connected_transport import insist
from transports.common.requests import CLOSE, Unproven
from transports.slack.client import SlackClient, translate
from transports.slack.intake import SlackIntake

logger = logging.getLogger(__name__)

PATH = "/slack/events"
_BOLT_LOGGER = "slack_bolt.of_botservice"

_ANYTHING = re.compile("")

Take = Callable[[Mapping[str, Any]], Awaitable[None]]


class _NotStored(BotServiceError):
    """Something that came in is not stored."""


async def _let_in(enterprise_id: str | None, team_id: str | None, user_id: str | None) -> AuthorizeResult:
    """Let everything through that Slack has signed: no call is made before an event is stored."""
    return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, user_id=user_id)


def build_bolt(intake: SlackIntake, *, api_url: str, signing_secret: str | None) -> AsyncApp:
    """Return an application whose listeners store and return; an answer of 503 asks Slack to deliver again."""
    quiet = logging.getLogger(_BOLT_LOGGER)
    quiet.setLevel(logging.ERROR)  # it warns of a token in the environment, and of every event that is nobody's
    app = AsyncApp(
        name=_BOLT_LOGGER,  # Bolt sets the level of the logger of this name, so it must not be ours
        logger=quiet,
        client=AsyncWebClient(base_url=api_url),
        authorize=_let_in,
        signing_secret=signing_secret or "",
        request_verification_enabled=signing_secret is not None,
        process_before_response=True,
        ignoring_self_events_enabled=False,  # other bots are ignored as well, by what an event says
        attaching_conversation_kwargs_enabled=False,
    )

    app.event(_ANYTHING)(_storing(intake.take_event))
    app.command(_ANYTHING)(_storing(intake.take_command))
    interaction = _storing(intake.take_interaction)
    app.shortcut(_ANYTHING)(interaction)
    app.action(_ANYTHING)(interaction)
    app.view(_ANYTHING)(interaction)
    app.error(_fail)
    return app


def _storing(take: Take) -> Callable[[AsyncAck, dict[str, Any]], Awaitable[None]]:
    async def listener(ack: AsyncAck, body: dict[str, Any]) -> None:
        try:
            await take(body)
        except (BotServiceError, TimeoutError) as error:
            logger.warning("slack.not_stored", extra={"reason": str(error) or type(error).__name__})
            raise _NotStored from error
        except Exception as error:  # a border: Slack is asked to deliver again, whatever it was
            logger.exception("slack.not_stored")
            raise _NotStored from error
        await ack()

    return listener


async def _fail(error: Exception) -> BoltResponse:
    """Answer what was not stored, so that it comes again; what Bolt stumbles over never will be read."""
    if isinstance(error, _NotStored):
        return BoltResponse(status=503, body="not stored: deliver it again")
    logger.warning("slack.unreadable", extra={"reason": type(error).__name__})
    return BoltResponse(status=400, body="unreadable")


class SocketListener:
    """Keeps a connection open, and acknowledges through it what is stored."""

    _ping_seconds = 5.0  # so often the connection is tried; a dead one is noticed after four of them

    def __init__(self, app: AsyncApp, client: SlackClient, app_token: str) -> None:
        self._app = app
        self._client = client
        self._token = app_token

    async def run(self) -> None:
        """Listen until cancelled."""
        socket = SocketModeClient(
            app_token=self._token, web_client=self._client.web_client(), ping_interval=self._ping_seconds
        )
        socket.socket_mode_request_listeners.append(self._handle)
        try:
            # From then on, the SDK's client keeps the connection.
            await insist(socket.connect_to_new_endpoint, Exception, _note_unreachable)
            logger.info("slack.socket_open")
            await asyncio.Event().wait()
        finally:
            await _close(socket)

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


def _note_unreachable(error: Exception, pause: float) -> float | None:
    failure = translate(error)
    if failure.is_token_gone or failure.code in ("not_allowed_token_type", "missing_scope"):
        advice = "SLACK_APP_TOKEN is refused: Basic Information, App-Level Tokens, scope connections:write"
        logger.error("slack.token_refused", extra={"reason": failure.code, "advice": advice})
    else:
        logger.warning("slack.unreachable", extra={"reason": failure.reason, "wait_seconds": pause})
    return failure.retry_after_seconds


_MAX_BODY_BYTES = 4 * 1024 * 1024
_FRESH_SECONDS = 300.0  # Source: docs.slack.dev, verifying requests from Slack
_TIMESTAMP, _SIGNATURE = "x-slack-request-timestamp", "x-slack-signature"
_FORM = re.compile(r"v0=[0-9a-f]{64}")
_UNSIGNED = "The signature is wrong or missing."


class EventsEndpoint:
    """Answers Slack's deliveries: 200 once they are stored, 401 without a signature, 503 to get them again."""

    def __init__(self, app: AsyncApp, signing_secret: str) -> None:
        self._app = app
        self._verifier = SignatureVerifier(signing_secret)
        self._unproven = Unproven()

    async def answer(self, request: Request) -> Response:
        """Return the answer to one delivery."""
        if not self._may_be_signed(request):  # before anything is read: a body that nobody wants costs nothing
            raise HTTPException(401, _UNSIGNED, CLOSE)
        body = await self._unproven.read(request, _MAX_BODY_BYTES, lambda body: self._check_signature(body, request))
        try:
            answer = await self._app.async_dispatch(to_async_bolt_request(request, body))
        except Exception as error:  # a border: Bolt believes that every body is what Slack sends
            logger.warning("slack.unreadable", extra={"reason": type(error).__name__})
            raise HTTPException(400, "This cannot be read.") from error
        if answer.status == 404:  # nothing of ours; anything but 200 would have it delivered again
            return PlainTextResponse("")
        return to_starlette_response(answer)

    def _may_be_signed(self, request: Request) -> bool:
        """Return whether a request's headers are those of a delivery of the last minutes."""
        at, signature = (request.headers.get(name, "") for name in (_TIMESTAMP, _SIGNATURE))
        is_number = at.isascii() and at.isdecimal() and len(at) < 16
        return is_number and abs(time.time() - int(at)) < _FRESH_SECONDS and _FORM.fullmatch(signature) is not None

    def _check_signature(self, body: bytes, request: Request) -> None:
        headers = request.headers
        try:
            is_signed = self._verifier.is_valid(body, headers.get(_TIMESTAMP, ""), headers.get(_SIGNATURE, ""))
        except (ValueError, TypeError):  # a body or a header that is no text
            is_signed = False
        if not is_signed:
            raise HTTPException(401, _UNSIGNED)
