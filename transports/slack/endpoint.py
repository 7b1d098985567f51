"""Events by HTTP: the signature is checked, what came is stored, and then Slack gets its 200."""

import logging

from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncApp
from slack_sdk.signature import SignatureVerifier
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from transports.bodies import TooLargeError, read_body

logger = logging.getLogger(__name__)

PATH = "/slack/events"
_MAX_BODY_BYTES = 4 * 1024 * 1024


class EventsEndpoint:
    """Answers Slack's deliveries: 200 once they are stored, 401 without a signature, 503 to get them again."""

    def __init__(self, app: AsyncApp, signing_secret: str) -> None:
        self._app = app
        self._verifier = SignatureVerifier(signing_secret)

    async def answer(self, request: Request) -> Response:
        """Return the answer to one delivery."""
        try:
            body = await read_body(request, _MAX_BODY_BYTES)
        except ClientDisconnect:
            return PlainTextResponse("cut off\n", 400)
        except TooLargeError:
            return PlainTextResponse("too large\n", 413)
        if not self._is_signed(body, request):
            return PlainTextResponse("wrong or missing signature\n", 401)
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

    def _is_signed(self, body: bytes, request: Request) -> bool:
        headers = request.headers
        try:
            return self._verifier.is_valid(
                body, headers.get("x-slack-request-timestamp", ""), headers.get("x-slack-signature", "")
            )
        except (ValueError, TypeError):  # a body or a header that is no text
            return False
