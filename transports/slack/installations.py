"""The workspaces that have installed the bot, in the database; their tokens are encrypted."""

import logging
import secrets
from dataclasses import replace
from datetime import timedelta
from logging import Logger
from typing import Any

from slack_sdk.oauth.installation_store import Bot, Installation
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore

from botservice.core.errors import StorageUnavailable
from botservice.storage.database import Storage
from botservice.storage.encryption import Cipher
from botservice.telemetry.logs import register_secret
from transports.slack.queries import (
    StoredInstallation,
    add_oauth_state,
    delete_installation,
    find_installation,
    store_grid,
    store_installation,
    take_oauth_state,
)
from transports.slack.token_rotation import TokenRotation, as_moment
from transports.slack.workspaces import Workspace

_logger = logging.getLogger(__name__)

STATE_SECONDS = 600


class _OpenedStore:
    """What needs a storage that is opened later."""

    def __init__(self) -> None:
        self._storage: Storage | None = None

    @property
    def logger(self) -> Logger:
        """Bolt's logger of a store."""
        return _logger

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

    def __init__(self, cipher: Cipher, rotation: TokenRotation | None = None) -> None:
        super().__init__()
        self._cipher = cipher
        self._rotation = rotation

    async def async_save(self, installation: Installation) -> None:
        """Store an installation in the place of an earlier one of the same workspace."""
        await self._save(installation.to_bot(), installation.user_id)

    async def async_save_bot(self, bot: Bot) -> None:
        """Store a bot's installation."""
        await self._save(bot, None)

    async def async_find_bot(
        self, *, enterprise_id: str | None, team_id: str | None, is_enterprise_install: bool | None = False
    ) -> Bot | None:
        """Return what is kept of an installation."""
        row = await self._row(enterprise_id, None if is_enterprise_install else team_id)
        return None if row is None else Bot(**self._values(row))

    async def async_find_installation(
        self,
        *,
        enterprise_id: str | None,
        team_id: str | None,
        user_id: str | None = None,
        is_enterprise_install: bool | None = False,
    ) -> Installation | None:
        """Return the installation of a workspace, for any user."""
        row = await self._row(enterprise_id, None if is_enterprise_install else team_id)
        return None if row is None else Installation(user_id=user_id or row.installed_by or "", **self._values(row))

    async def async_delete_bot(self, *, enterprise_id: str | None, team_id: str | None) -> None:
        """Delete an installation."""
        await self.remove(team_id, enterprise_id)

    async def async_delete_installation(
        self, *, enterprise_id: str | None, team_id: str | None, user_id: str | None = None
    ) -> None:
        """Delete an installation, where it is the bot's: a person's token is not kept."""
        if user_id is None:
            await self.remove(team_id, enterprise_id)

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
        return Workspace(team_id, token, row.bot_user_id, row.bot_id, row.team_name)

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
        _logger.info("slack.installed", extra={"team": new.team_id or new.enterprise_id})

    async def _row(self, enterprise_id: str | None, team_id: str | None) -> StoredInstallation | None:
        names = enterprise_id or "", team_id or ""
        return await self.storage.read(lambda connection: find_installation(connection, *names))

    def _values(self, row: StoredInstallation) -> dict[str, Any]:
        return {
            "app_id": row.app_id,
            "enterprise_id": row.enterprise_id or None,
            "team_id": row.team_id or None,
            "team_name": row.team_name,
            "bot_token": self._cipher.decrypt(row.token).decode(),
            "bot_id": row.bot_id or "",
            "bot_user_id": row.bot_user_id,
            "bot_scopes": row.scopes,
            "is_enterprise_install": row.is_enterprise,
            "installed_at": row.installed_at.timestamp(),
            "bot_refresh_token": row.refresh_token and self._cipher.decrypt(row.refresh_token).decode(),
            "bot_token_expires_at": row.token_expires_at and int(row.token_expires_at.timestamp()),
        }


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
