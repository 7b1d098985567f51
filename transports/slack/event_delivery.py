"""How Slack's events come: by HTTP, or through a socket. They are stored before they are acknowledged.

By HTTP, the signature is checked before anything is read for long.
"""

import asyncio
import json
import logging
import re
import time
from typing import Any
from urllib.parse import parse_qsl

from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from botservice.core.errors import BotServiceError
from transports.common.connected_transport import insist
from transports.common.request_bodies import TooLargeError, TooMuchAtOnceError, Unproven, read_body
from transports.slack.client import SlackClient, translate
from transports.slack.intake import SlackIntake

logger = logging.getLogger(__name__)

PATH = "/slack/events"


async def take(intake: SlackIntake, body: dict[str, Any]) -> bool:
    """Store what Slack delivers; return whether that is done with. Otherwise Slack is asked to deliver it again."""
    try:
        if "command" in body:
            await intake.take_command(body)
        elif body.get("type") == "event_callback":
            await intake.take_event(body)
        else:
            await intake.take_interaction(body)
    except (BotServiceError, TimeoutError) as error:
        logger.warning("slack.not_stored", extra={"reason": str(error) or type(error).__name__})
        return False
    except Exception:  # a border: Slack is asked to deliver again, whatever it was
        logger.exception("slack.not_stored")
        return False
    return True


def parse_body(body: bytes, content_type: str) -> dict[str, Any]:
    """Return what a request says: events are JSON, commands are forms, and the others are JSON in a form.

    Raises:
        ValueError: nothing that Slack sends; RecursionError.
    """
    form = dict(parse_qsl(body.decode())) if content_type == "application/x-www-form-urlencoded" else None
    said = json.loads(body) if form is None else json.loads(form["payload"]) if "payload" in form else form
    if not isinstance(said, dict):
        raise ValueError("no object")  # noqa: TRY004 - as of what is no JSON
    return said


class SocketListener:
    """Keeps a connection open, and acknowledges through it what is stored."""

    _ping_seconds = 5.0  # so often the connection is tried; a dead one is noticed after four of them

    def __init__(self, intake: SlackIntake, client: SlackClient, app_token: str) -> None:
        self._intake = intake
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
        if not await take(self._intake, request.payload):
            return
        try:
            await socket.send_socket_mode_response(SocketModeResponse(request.envelope_id))
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
_BODY_SECONDS = 10.0
_FRESH_SECONDS = 300.0  # Source: docs.slack.dev, verifying requests from Slack
_TIMESTAMP, _SIGNATURE = "x-slack-request-timestamp", "x-slack-signature"
_FORM = re.compile(r"v0=[0-9a-f]{64}")
_UNSIGNED = "wrong or missing signature\n"
_CLOSE = {"connection": "close"}


class EventsEndpoint:
    """Answers Slack's deliveries: 200 once they are stored, 401 without a signature, 503 to get them again."""

    def __init__(self, intake: SlackIntake, signing_secret: str) -> None:
        self._intake = intake
        self._verifier = SignatureVerifier(signing_secret)
        self._unproven = Unproven()

    async def answer(self, request: Request) -> Response:
        """Return the answer to one delivery."""
        if not self._may_be_signed(request):  # before anything is read: a body that nobody wants costs nothing
            return PlainTextResponse(_UNSIGNED, 401, headers=_CLOSE)
        try:
            with self._unproven.reading() as take:
                async with asyncio.timeout(_BODY_SECONDS):
                    body = await read_body(request, _MAX_BODY_BYTES, take)
                if not self._is_signed(body, request):
                    return PlainTextResponse(_UNSIGNED, 401)
        except (ClientDisconnect, TimeoutError):
            return PlainTextResponse("cut off\n", 400, headers=_CLOSE)
        except TooLargeError:
            return PlainTextResponse("too large\n", 413, headers=_CLOSE)
        except TooMuchAtOnceError:
            return PlainTextResponse("too much at once: deliver it again\n", 503, headers=_CLOSE)
        return await self._take(body, request.headers.get("content-type", ""))

    async def _take(self, body: bytes, content_type: str) -> Response:
        try:
            said = parse_body(body, content_type.partition(";")[0].strip().lower())
        except (ValueError, RecursionError) as error:
            logger.warning("slack.unreadable", extra={"reason": type(error).__name__})
            return PlainTextResponse("unreadable\n", 400)
        if said.get("type") == "url_verification":
            return JSONResponse({"challenge": said.get("challenge")})
        if await take(self._intake, said):
            return PlainTextResponse("")
        return PlainTextResponse("not stored: deliver it again\n", 503)

    def _may_be_signed(self, request: Request) -> bool:
        """Return whether a request's headers are those of a delivery of the last minutes."""
        at, signature = (request.headers.get(name, "") for name in (_TIMESTAMP, _SIGNATURE))
        is_number = at.isascii() and at.isdecimal() and len(at) < 16
        return is_number and abs(time.time() - int(at)) < _FRESH_SECONDS and _FORM.fullmatch(signature) is not None

    def _is_signed(self, body: bytes, request: Request) -> bool:
        headers = request.headers
        try:
            return self._verifier.is_valid(body, headers.get(_TIMESTAMP, ""), headers.get(_SIGNATURE, ""))
        except (ValueError, TypeError):  # a body or a header that is no text
            return False
