"""Which token speaks in which workspace, and who the bot is there."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from transports.slack.client import SlackClient
from transports.slack.failures import NotInstalled

_FRESH_SECONDS = 300.0
_MAX_WORKSPACES = 10_000


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace that the bot is in."""

    team_id: str
    token: str = field(repr=False)
    bot_user_id: str
    bot_id: str | None = None
    name: str | None = None


class Installations(Protocol):
    """The workspaces that have installed the bot."""

    async def find(self, team_id: str, enterprise_id: str | None) -> Workspace | None:
        """Return the workspace as it was installed, if it was."""

    async def note_grid(self, team_id: str, enterprise_id: str) -> None:
        """Take note of the organisation that a workspace belongs to."""

    async def remove(self, team_id: str | None, enterprise_id: str | None) -> None:
        """Delete what is kept of a workspace that has removed the bot."""


class Workspaces:
    """Knows every workspace: the one of the bot's own token, and those that have installed it."""

    def __init__(
        self,
        client: SlackClient,
        token: str | None,
        installations: Installations | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._token = token
        self._installations = installations
        self._clock = clock
        self._own: Workspace | None = None
        self._known: dict[str, tuple[Workspace, float]] = {}
        self._grids: dict[str, str] = {}
        self._asking = asyncio.Lock()
        self._changes = 0

    @property
    def own(self) -> Workspace | None:
        """The workspace of the bot's own token, once Slack has said which it is."""
        return self._own

    def known_bot(self, team_id: str) -> str | None:
        """Return the bot's user id in a workspace, where it is known already."""
        found = self._known.get(team_id)
        if found is not None:
            return found[0].bot_user_id
        is_own = self._own is not None and (self._own.team_id == team_id or self._installations is None)
        return self._own.bot_user_id if is_own and self._own is not None else None

    async def identify(self) -> Workspace | None:
        """Return the workspace of the bot's own token; Slack is asked once.

        Raises:
            SlackFailure: Slack refuses the token, or does not answer.
        """
        if self._token is None or self._own is not None:
            return self._own
        async with self._asking:
            if self._own is None:
                answer = await self._client.call(self._token, "auth.test")
                self._own = Workspace(
                    str(answer.get("team_id") or ""),
                    self._token,
                    str(answer.get("user_id") or ""),
                    answer.get("bot_id"),
                    answer.get("team"),
                )
        return self._own

    async def find(self, team_id: str, enterprise_id: str | None = None) -> Workspace:
        """Return a workspace.

        Raises:
            NotInstalled: the bot is not in it.
            SlackFailure: Slack does not say who the bot is.
            StorageUnavailable: nobody can say.
        """
        known = self._known.get(team_id)
        if known is not None and known[1] > self._clock():
            return known[0]
        own = await self.identify()
        if own is not None and (own.team_id == team_id or self._installations is None):
            return own
        changes = self._changes
        found = None if self._installations is None else await self._installations.find(team_id, enterprise_id)
        if found is None:
            self.forget(team_id)
            raise NotInstalled(f"the workspace {team_id} has not installed this bot")
        if changes != self._changes:  # it may have been removed while it was read
            return found
        if len(self._known) >= _MAX_WORKSPACES:
            del self._known[next(iter(self._known))]
        self._known[team_id] = (found, self._clock() + _FRESH_SECONDS)
        return found

    async def note_grid(self, team_id: str, enterprise_id: str) -> None:
        """Take note of the organisation that a workspace belongs to: it may have installed the bot for all of its own.

        Raises:
            StorageUnavailable: it is not stored.
        """
        if self._installations is None or self._grids.get(team_id) == enterprise_id:
            return
        await self._installations.note_grid(team_id, enterprise_id)
        if len(self._grids) >= _MAX_WORKSPACES:
            del self._grids[next(iter(self._grids))]
        self._grids[team_id] = enterprise_id

    def forget(self, team_id: str) -> None:
        """Take note that a workspace's token may be another one now."""
        self._changes += 1
        self._known.pop(team_id, None)
