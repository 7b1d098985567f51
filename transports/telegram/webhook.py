"""Taking in by webhook: the secret is checked, what came is stored, and then Telegram gets its 200."""

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from telegram.error import RetryAfter, TelegramError

from botservice.core.errors import BotServiceError
from transports.common.request_bodies import TooLargeError, read_body
from transports.telegram.client import BotClient
from transports.telegram.failures import wait_of

logger = logging.getLogger(__name__)

Accept = Callable[[Sequence[object]], Awaitable[None]]

PATH = "/telegram/webhook"
_SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
_MAX_BODY_BYTES = 4 * 1024 * 1024
_CHECK_SECONDS = 300.0
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


def derive_secret(token: str) -> str:
    """Return a webhook secret that every process with the same token agrees on."""
    return hmac.new(token.encode(), b"botservice telegram webhook", hashlib.sha256).hexdigest()


class WebhookEndpoint:
    """Answers Telegram's deliveries: 200 once they are stored, 401 without the secret, 503 to get them again."""

    def __init__(self, secret: str, accept: Accept) -> None:
        self._secret = secret.encode()
        self._accept = accept

    async def answer(self, request: Request) -> Response:
        """Return the answer to one delivery."""
        given = request.headers.get(_SECRET_HEADER, "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self._secret):
            return PlainTextResponse("wrong or missing secret\n", 401, headers={"connection": "close"})
        try:
            update = json.loads(await read_body(request, _MAX_BODY_BYTES))
        except ClientDisconnect:
            return PlainTextResponse("cut off\n", 400)
        except TooLargeError:
            return PlainTextResponse("too large\n", 413)
        except (ValueError, RecursionError):
            return PlainTextResponse("no JSON\n", 400)
        try:
            await self._accept([update])
        except BotServiceError as error:
            logger.warning("telegram.not_stored", extra={"updates": 1, "reason": str(error)})
            return PlainTextResponse("not stored: deliver it again\n", 503)
        return PlainTextResponse("ok\n")


class WebhookKeeper:
    """Tells Telegram where to deliver, and again when another address was set."""

    def __init__(self, client: BotClient, public_url: str, secret: str, allowed: list[str]) -> None:
        self._client = client
        self._allowed = allowed
        self._url = public_url.rstrip("/") + PATH
        self._secret = secret

    async def run(self) -> None:
        """Set the webhook and keep it until cancelled."""
        await self._insist(self._set)
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            await self._insist(self._repair)

    async def _insist(self, work: Callable[[], Awaitable[None]]) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await work()
            except TelegramError as error:
                wait = wait_of(error) if isinstance(error, RetryAfter) else pause
                logger.warning("telegram.webhook_not_set", extra={"reason": error.message, "wait_seconds": wait})
                await asyncio.sleep(wait)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            else:
                return

    async def _set(self) -> None:
        await self._client.call("setWebhook", url=self._url, secret_token=self._secret, allowed_updates=self._allowed)
        logger.info("telegram.webhook_set")

    async def _repair(self) -> None:
        """Set the webhook again where it is not ours any more, and pass on what Telegram complains about."""
        info = await self._client.call("getWebhookInfo")
        if info.get("url") != self._url or not set(self._allowed) <= set(info.get("allowed_updates", ())):
            logger.warning("telegram.webhook_lost", extra={"advice": "somebody else set it: is the token used twice?"})
            await self._set()
        elif info.get("last_error_message"):
            facts = {"reason": info["last_error_message"], "at": info.get("last_error_date")}
            if "401" in str(info["last_error_message"]):
                facts["advice"] = "do all processes have the same TELEGRAM_WEBHOOK_SECRET?"
            logger.warning("telegram.webhook_failing", extra=facts)
