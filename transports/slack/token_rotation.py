"""Tokens of workspaces that end after some hours: Bolt's rotator gets new ones before that, in one process at a time.

Source: docs.slack.dev/authentication/using-token-rotation.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackTokenRotationError
from slack_sdk.oauth.installation_store import Bot
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator

from botservice.storage.database import Storage
from botservice.storage.encryption import Cipher
from botservice.telemetry.logs import register_secret
from transports.slack.queries import StoredInstallation, lease_refresh, store_tokens

logger = logging.getLogger(__name__)

_BEFORE: Final = timedelta(hours=2)  # of the 12 hours that a token is good for
_LEASE: Final = timedelta(seconds=30)
_CALL_SECONDS: Final = 10.0
_PAUSES_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_AT_ONCE: Final = 1_000_000  # minutes: whether it is time is decided here, by the clock of the database

ReadAgain = Callable[[], Awaitable[StoredInstallation | None]]


class TokenRotation:
    """Gets new tokens for installations whose token ends soon."""

    def __init__(self, cipher: Cipher, rotator: AsyncTokenRotator) -> None:
        self._cipher = cipher
        self._rotator = rotator

    async def fresh(self, row: StoredInstallation, read: ReadAgain, storage: Storage) -> StoredInstallation | None:
        """Return an installation with a token that is good for a while; None if the installation is gone.

        One process asks Slack for the new token, because Slack takes a refresh token once. The others go on with the
        token that they have, or wait for the new one if theirs has ended.
        """
        found: StoredInstallation | None = row
        for pause_seconds in (*_PAUSES_SECONDS, 0.0):
            if found is None or found.token_expires_at is None or found.refresh_token is None:
                return found
            ends_at = found.token_expires_at
            if ends_at - _BEFORE > storage.now():
                return found
            if await self._take(found, storage):
                await self._refresh(found, found.refresh_token, ends_at, storage)
                return await read()
            if ends_at > storage.now():
                return found
            await asyncio.sleep(pause_seconds)
            found = await read()
        return found

    async def _take(self, row: StoredInstallation, storage: Storage) -> bool:
        """Return whether this process is to ask for the new token."""
        now = storage.now()
        return await storage.write(lambda connection: lease_refresh(connection, row, now, now + _LEASE))

    async def _refresh(
        self, row: StoredInstallation, refresh_token: bytes, ends_at: datetime, storage: Storage
    ) -> None:
        """Store a new token; where Slack gives none, the next look tries again."""
        bot = Bot(
            bot_token=self._cipher.decrypt(row.token).decode(),
            bot_refresh_token=self._cipher.decrypt(refresh_token).decode(),
            bot_token_expires_at=int(ends_at.timestamp()),
            bot_id=row.bot_id or "",
            bot_user_id=row.bot_user_id,
            installed_at=row.installed_at.timestamp(),
        )
        facts = {"team": row.team_id or row.enterprise_id}
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                rotated = await self._rotator.perform_bot_token_rotation(bot=bot, minutes_before_expiration=_AT_ONCE)
        except SlackTokenRotationError as error:
            cause: object = error.args[0] if error.args else None
            code = cause.response.get("error") if isinstance(cause, SlackApiError) else None
            advice = "install the bot in that workspace again"
            logger.warning("slack.token_not_refreshed", extra={**facts, "reason": str(code), "advice": advice})
            return
        except (aiohttp.ClientError, TimeoutError) as error:
            logger.warning("slack.token_not_refreshed", extra={**facts, "reason": type(error).__name__})
            return
        if rotated is None or not rotated.bot_refresh_token or rotated.bot_token_expires_at is None:
            logger.warning("slack.token_not_refreshed", extra={**facts, "reason": "Slack gave no token"})
            return
        register_secret(rotated.bot_token)
        token = self._cipher.encrypt(rotated.bot_token.encode())
        next_token = self._cipher.encrypt(rotated.bot_refresh_token.encode())
        next_end = as_moment(rotated.bot_token_expires_at, storage.now())
        await storage.write(lambda connection: store_tokens(connection, row, token, next_token, next_end))
        logger.info("slack.token_refreshed", extra=facts)


def as_moment(seconds: float, now: datetime) -> datetime:
    """Return the moment at which a token ends, as Slack's library gives it: seconds since the epoch."""
    return datetime.fromtimestamp(seconds, now.tzinfo)
