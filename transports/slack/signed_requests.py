"""What Slack delivers by HTTP: its signature is checked before anything is read for long, and then Bolt is asked."""

import asyncio
import logging
import re
import time

from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncApp
from slack_sdk.signature import SignatureVerifier
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from transports.common.request_bodies import TooLargeError, TooMuchAtOnceError, Unproven, read_body

logger = logging.getLogger(__name__)

_MAX_BODY_BYTES = 4 * 1024 * 1024
_BODY_SECONDS = 10.0
_FRESH_SECONDS = 300.0  # Source: docs.slack.dev, verifying requests from Slack
_TIMESTAMP, _SIGNATURE = "x-slack-request-timestamp", "x-slack-signature"
_FORM = re.compile(r"v0=[0-9a-f]{64}")
_UNSIGNED = "wrong or missing signature\n"
_CLOSE = {"connection": "close"}


class EventsEndpoint:
    """Answers Slack's deliveries: 200 once they are stored, 401 without a signature, 503 to get them again."""

    def __init__(self, app: AsyncApp, signing_secret: str) -> None:
        self._app = app
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
        return await self._dispatch(request, body)

    async def _dispatch(self, request: Request, body: bytes) -> Response:
        try:
            answer = await self._app.async_dispatch(to_async_bolt_request(request, body))
        except Exception as error:  # noqa: BLE001 - a border: Bolt believes that every body is what Slack sends
            logger.warning("slack.unreadable", extra={"reason": type(error).__name__})
            return PlainTextResponse("unreadable\n", 400)
        if answer.status == 404:  # nothing of ours; anything but 200 would have it delivered again
            return PlainTextResponse("")
        return to_starlette_response(answer)

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
