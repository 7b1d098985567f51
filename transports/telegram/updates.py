"""How updates come: by polling, or by a webhook. What was delivered is stored before Telegram hears that it arrived."""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError

from botservice.core.errors import BotServiceError, StorageUnavailable
from botservice.storage.claims import Claim, Claims
from botservice.storage.database import Storage
from transports.common.connected_transport import insist
from transports.common.json_fields import integer
from transports.common.requests import CLOSE, is_same, parse_json, read_body
from transports.telegram.client import BotClient
from transports.telegram.failures import reason_of, wait_of

logger = logging.getLogger(__name__)

Accept = Callable[[Sequence[object]], Awaitable[None]]

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_CONFLICT_PAUSE_SECONDS = 5.0
_STORAGE_PAUSE_SECONDS = 1.0
_STANDBY_SECONDS = 1.0
_GIVING_WAY_SECONDS = 3.0  # so that who waits in standby surely comes
_GIVEN_WAY_SECONDS = 30.0
_FIRST_POLLER, _POLLERS = -1_000, 1 << 30  # no context has such ids: one for each bot


class Poller:
    """Polls Telegram for updates, for ever, and hands them on in the order in which they came."""

    def __init__(self, client: BotClient, accept: Accept, allowed: list[str]) -> None:
        self._client = client
        self._accept = accept
        self._allowed = allowed
        self._offset: int | None = None
        self._failures = 0
        self._gives_way = False
        self._gave_way_at = -math.inf

    async def run_alone(self, claims: Claims, bot_id: int) -> None:
        """Poll until cancelled, whenever no other process on the same database takes in for the bot.

        Telegram lets one poll, and none while there is a webhook: a process that keeps one comes first.
        """
        while True:
            async with _place_of(claims, bot_id) as claim:
                await self._run(claim)
            if self._gives_way:
                await asyncio.sleep(_GIVING_WAY_SECONDS)
                self._gave_way_at = time.monotonic()

    async def _run(self, claim: Claim) -> None:
        """Poll as long as the claim is held, from the first update that Telegram still has: others polled meanwhile."""
        self._offset, self._gives_way = None, False
        while claim.is_held and not self._gives_way:
            try:
                updates = await self._client.next_updates(self._offset, self._allowed)
            except TelegramError as error:
                if claim.is_held:  # otherwise the process that polls now has ended it
                    await self._recover(error)
                continue
            self._failures = 0
            if updates:
                await self._store(updates)

    async def _store(self, updates: Sequence[object]) -> None:
        """Store updates. What is not stored is still Telegram's: it comes again, with what was said since."""
        try:
            await self._accept(updates)
        except BotServiceError as error:
            logger.warning("telegram.not_stored", extra={"updates": len(updates), "reason": str(error)})
            await asyncio.sleep(_STORAGE_PAUSE_SECONDS)
            return
        ids = [number for each in updates if (number := integer(each, "update_id")) is not None]
        if ids:
            self._offset = max(ids) + 1
        else:  # nothing to confirm with: do not ask for the same thing without a pause
            await asyncio.sleep(_FIRST_PAUSE_SECONDS)

    async def _recover(self, error: TelegramError) -> None:
        self._failures += 1
        pause = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 10), _LONGEST_PAUSE_SECONDS)
        if isinstance(error, RetryAfter):
            pause = wait_of(error)
        elif isinstance(error, Conflict):
            pause = await self._resolve(error)
        elif isinstance(error, InvalidToken):
            pause = _LONGEST_PAUSE_SECONDS
            logger.error("telegram.token_refused", extra={"advice": "TELEGRAM_BOT_TOKEN is not valid any more"})
        elif self._failures > 1:  # a single long poll that is cut off is nothing to speak of
            logger.warning("telegram.unreachable", extra={"reason": reason_of(error), "wait_seconds": pause})
        await asyncio.sleep(pause)

    async def _resolve(self, error: Conflict) -> float:
        """Say what to do about a 409, remove a webhook that no process here keeps, and return how long to wait."""
        if "webhook" not in error.message.lower():
            advice = "another process polls with this TELEGRAM_BOT_TOKEN: stop it, or set PUBLIC_URL to use a webhook"
            logger.error("telegram.conflict", extra={"advice": advice})
            return _CONFLICT_PAUSE_SECONDS
        if time.monotonic() - self._gave_way_at > _GIVEN_WAY_SECONDS:  # not just now: a process may keep it
            self._gives_way = True
            return 0.0
        logger.warning("telegram.webhook_removed", extra={"advice": "PUBLIC_URL is not set, so the bot is polled"})
        try:
            await self._client.call("deleteWebhook")
        except TelegramError as failure:
            logger.warning("telegram.unreachable", extra={"reason": type(failure).__name__})
            return _CONFLICT_PAUSE_SECONDS
        return 0.0


async def keep_from_polling(storage: Storage, bot_id: int) -> None:
    """Hold the right to poll for a bot until cancelled, whenever no other process does: it has a webhook here."""
    while True:
        async with _place_of(storage.claims, bot_id) as claim:
            while claim.is_held:  # whoever loses it is told by nobody
                await storage.activity.pause(_STANDBY_SECONDS)
        await storage.activity.pause(_STANDBY_SECONDS)


def poller_of(bot_id: int) -> int:
    """Return what is claimed to poll for a bot."""
    return _FIRST_POLLER - bot_id % _POLLERS


@contextlib.asynccontextmanager
async def _place_of(claims: Claims, bot_id: int) -> AsyncIterator[Claim]:
    """Yield the right to poll for a bot, as soon as no other process has it."""
    while (claim := await _try_claim(claims, bot_id)) is None:  # noqa: ASYNC110 - nobody tells of another process
        await asyncio.sleep(_STANDBY_SECONDS)
    try:
        yield claim
    finally:
        await asyncio.shield(claims.release(claim))


async def _try_claim(claims: Claims, bot_id: int) -> Claim | None:
    """Return the right to poll for a bot, or None if another process has it, or the database is away."""
    try:
        return await claims.try_claim(poller_of(bot_id))
    except StorageUnavailable:
        return None


PATH = "/telegram/webhook"
_SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
_MAX_BODY_BYTES = 4 * 1024 * 1024
_CHECK_SECONDS = 300.0


def derive_secret(token: str) -> str:
    """Return a webhook secret that every process with the same token agrees on."""
    return hmac.new(token.encode(), b"botservice telegram webhook", hashlib.sha256).hexdigest()


class WebhookEndpoint:
    """Answers Telegram's deliveries: 200 once they are stored, 401 without the secret, 503 to get them again."""

    def __init__(self, secret: str, accept: Accept) -> None:
        self._secret = secret
        self._accept = accept

    async def answer(self, request: Request) -> Response:
        """Return the answer to one delivery."""
        if not is_same(request.headers.get(_SECRET_HEADER, ""), self._secret):
            raise HTTPException(401, "The secret is wrong or missing.", CLOSE)
        update = parse_json(await read_body(request, _MAX_BODY_BYTES))
        try:
            await self._accept([update])
        except BotServiceError as error:
            logger.warning("telegram.not_stored", extra={"updates": 1, "reason": str(error)})
            raise HTTPException(503, "This is not stored: deliver it again.") from error
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
        await insist(self._set, TelegramError, _note_not_set)
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            await insist(self._repair, TelegramError, _note_not_set)

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


def _note_not_set(error: Exception, pause: float) -> float:
    wait = wait_of(error) if isinstance(error, RetryAfter) else pause
    logger.warning("telegram.webhook_not_set", extra={"reason": str(error), "wait_seconds": wait})
    return wait
