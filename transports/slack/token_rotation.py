"""Tokens of workspaces that end after some hours: Bolt's rotator gets new ones before that, in one process at a time.

Source: docs.slack.dev/authentication/using-token-rotation.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackTokenRotationError
from slack_sdk.oauth.installation_store import Bot
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator
from sqlalchemy import Connection, Row, bindparam, or_, update

from botservice.storage.database import Storage
from botservice.storage.encryption import Cipher
from botservice.storage.tables.slack import slack_installations
from botservice.telemetry.logs import register_secret

logger = logging.getLogger(__name__)

_BEFORE: Final = timedelta(hours=2)  # of the 12 hours that a token is good for
_LEASE: Final = timedelta(seconds=30)
_CALL_SECONDS: Final = 10.0
_PAUSES_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_AT_ONCE: Final = 1_000_000  # minutes: whether it is time is decided here, by the clock of the database

_OF_ROW = (
    (slack_installations.c.enterprise_id == bindparam("enterprise"))
    & (slack_installations.c.team_id == bindparam("team"))
    & (slack_installations.c.refresh_token == bindparam("known"))
)
_TAKE = (
    update(slack_installations)
    .where(_OF_ROW)
    .where(
        or_(slack_installations.c.refreshing_until.is_(None), slack_installations.c.refreshing_until < bindparam("now"))
    )
    .values(refreshing_until=bindparam("until"))
    .returning(slack_installations.c.team_id)
)
_STORE = update(slack_installations).where(_OF_ROW)

Installed = Row[Any]
ReadAgain = Callable[[], Awaitable[Installed | None]]


class TokenRotation:
    """Gets new tokens for installations whose token ends soon."""

    def __init__(self, cipher: Cipher, rotator: AsyncTokenRotator) -> None:
        self._cipher = cipher
        self._rotator = rotator

    async def fresh(self, row: Installed, read: ReadAgain, storage: Storage) -> Installed | None:
        """Return an installation with a token that is good for a while; None if the installation is gone.

        One process asks Slack for the new token, because Slack takes a refresh token once. The others go on with the
        token that they have, or wait for the new one if theirs has ended.
        """
        found: Installed | None = row
        for pause_seconds in (*_PAUSES_SECONDS, 0.0):
            if found is None or not _is_ending(found, storage.now()):
                return found
            if await self._take(found, storage):
                await self._refresh(found, storage)
                return await read()
            if found.token_expires_at > storage.now():
                return found
            await asyncio.sleep(pause_seconds)
            found = await read()
        return found

    async def _take(self, row: Installed, storage: Storage) -> bool:
        """Return whether this process is to ask for the new token."""
        now = storage.now()
        sought = {**_names(row), "now": now, "until": now + _LEASE}
        taken = await storage.write(lambda connection: connection.execute(_TAKE, sought).first())
        return taken is not None

    async def _refresh(self, row: Installed, storage: Storage) -> None:
        """Store a new token; where Slack gives none, the next look tries again."""
        bot = Bot(
            bot_token=self._cipher.decrypt(row.token).decode(),
            bot_refresh_token=self._cipher.decrypt(row.refresh_token).decode(),
            bot_token_expires_at=int(row.token_expires_at.timestamp()),
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
        values = {
            "token": self._cipher.encrypt(rotated.bot_token.encode()),
            "refresh_token": self._cipher.encrypt(rotated.bot_refresh_token.encode()),
            "token_expires_at": as_moment(rotated.bot_token_expires_at, storage.now()),
            "refreshing_until": None,
        }

        def write(connection: Connection) -> None:
            connection.execute(_STORE.values(values), _names(row))

        await storage.write(write)
        logger.info("slack.token_refreshed", extra=facts)


def as_moment(seconds: float, now: datetime) -> datetime:
    """Return the moment at which a token ends, as Slack's library gives it: seconds since the epoch."""
    return datetime.fromtimestamp(seconds, now.tzinfo)


def _is_ending(row: Installed, now: datetime) -> bool:
    ends_at = row.token_expires_at
    return ends_at is not None and row.refresh_token is not None and ends_at - _BEFORE <= now


def _names(row: Installed) -> dict[str, Any]:
    return {"enterprise": row.enterprise_id, "team": row.team_id, "known": row.refresh_token}
