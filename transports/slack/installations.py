"""The workspaces that have installed the bot, in the database: their tokens are encrypted, and renewed in time."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from logging import Logger
from typing import Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackTokenRotationError
from slack_sdk.oauth.installation_store import Bot, Installation
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator

from botservice.core.errors import StorageUnavailable
from botservice.storage.database import Storage
from botservice.storage.encryption import Cipher
from botservice.telemetry.logs import register_secret
from transports.slack.client import SlackClient
from transports.slack.queries import (
    add_oauth_state,
    delete_installation,
    find_installation,
    lease_refresh,
    store_grid,
    store_installation,
    store_tokens,
    take_oauth_state,
)
from transports.slack.workspaces import StoredInstallation, Workspace

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


STATE_SECONDS = 600


class _OpenedStore:
    """What needs a storage that is opened later."""

    def __init__(self) -> None:
        self._storage: Storage | None = None

    @property
    def logger(self) -> Logger:
        """Bolt's logger of a store."""
        return logger

    def open(self, storage: Storage) -> None:
        """Begin to work on a storage."""
        self._storage = storage

    @property
    def storage(self) -> Storage:
        """The storage."""
        if self._storage is None:
            raise StorageUnavailable("the transport has not started yet")
        return self._storage


class InstallationStore(_OpenedStore, AsyncInstallationStore):
    """Bolt's interface to the installations; only the bot's own token is kept, never a person's."""

    def __init__(self, client: SlackClient, cipher: Cipher, rotation: TokenRotation | None = None) -> None:
        super().__init__()
        self._client = client
        self._cipher = cipher
        self._rotation = rotation

    async def async_save(self, installation: Installation) -> None:
        """Store an installation in the place of an earlier one of the same workspace."""
        await self._save(installation.to_bot(), installation.user_id)

    async def find(self, team_id: str, enterprise_id: str | None) -> Workspace | None:
        """Return a workspace as it was installed, or None if it was not.

        Raises:
            StorageError: its token was encrypted with another key.
        """
        row = await self._row(enterprise_id, team_id)
        if row is not None and self._rotation is not None:
            row = await self._rotation.fresh(row, lambda: self._row(enterprise_id, team_id), self.storage)
        if row is None:
            return None
        token = self._cipher.decrypt(row.token).decode()
        register_secret(token)
        return Workspace(self._client, team_id, token, row.bot_user_id, row.bot_id, row.team_name)

    async def note_grid(self, team_id: str, enterprise_id: str) -> None:
        """Take note of the organisation that a workspace belongs to."""
        await self.storage.write(lambda connection: store_grid(connection, team_id, enterprise_id))

    async def remove(self, team_id: str | None, enterprise_id: str | None) -> None:
        """Delete what is kept of an installation."""
        names = enterprise_id or "", team_id or ""
        await self.storage.write(lambda connection: delete_installation(connection, *names))

    async def _save(self, bot: Bot, installed_by: str | None) -> None:
        new = StoredInstallation(
            enterprise_id=bot.enterprise_id or "",
            team_id="" if bot.is_enterprise_install else bot.team_id or "",
            team_name=bot.enterprise_name if bot.is_enterprise_install else bot.team_name,
            is_enterprise=bool(bot.is_enterprise_install),
            app_id=bot.app_id,
            bot_id=bot.bot_id,
            bot_user_id=bot.bot_user_id or "",
            scopes=",".join(bot.bot_scopes),
            token=self._cipher.encrypt(bot.bot_token.encode()),
            installed_by=installed_by,
            installed_at=self.storage.now(),
        )
        if bot.bot_refresh_token and bot.bot_token_expires_at is not None:
            new = replace(
                new,
                refresh_token=self._cipher.encrypt(bot.bot_refresh_token.encode()),
                token_expires_at=as_moment(bot.bot_token_expires_at, self.storage.now()),
            )
        await self.storage.write(lambda connection: store_installation(connection, new))
        logger.info("slack.installed", extra={"team": new.team_id or new.enterprise_id})

    async def _row(self, enterprise_id: str | None, team_id: str | None) -> StoredInstallation | None:
        names = enterprise_id or "", team_id or ""
        return await self.storage.read(lambda connection: find_installation(connection, *names))


class StateStore(_OpenedStore, AsyncOAuthStateStore):
    """The states of installations that have begun, each good for one return: in any process of the service."""

    async def async_issue(self, *args: object, **kwargs: object) -> str:  # noqa: ARG002 - the interface
        """Return a new state."""
        state, now = secrets.token_urlsafe(32), self.storage.now()
        ends_at = now + timedelta(seconds=STATE_SECONDS)
        await self.storage.write(lambda connection: add_oauth_state(connection, state, now, ends_at))
        return state

    async def async_consume(self, state: str) -> bool:
        """Return whether a state was issued and not used yet; it is used now."""
        taken = await self.storage.write(lambda connection: take_oauth_state(connection, state))
        return taken is not None and taken >= self.storage.now()
