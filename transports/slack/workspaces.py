"""The workspaces that the bot is in, their people, and what these look at, which is stored nowhere."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as value_of
from datetime import datetime
from typing import Any, Final, Protocol

from cachetools import FIFOCache

from botservice.core.errors import BotServiceError
from botservice.core.quoting import quote_name
from transports.slack.client import NotInstalled, SlackClient, SlackFailure
from transports.slack.inbound_events import CODE_CHANNEL, account_of, field, items_of, word

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 300.0
_MAX_WORKSPACES = 10_000

_PERSON_SECONDS = 3600.0
_PAUSE_SECONDS = 30.0
_MAX_CHANNELS: Final = 10_000
_ASK_SECONDS: Final = 1.5  # of the three in which Slack wants to hear that an event arrived
_PERSON_ASK_SECONDS: Final = 1.0  # of the same
_MAX_PEOPLE = 20_000
_VIEW_SECONDS: Final = 600.0
_NAME_SECONDS: Final = 3600.0
_MAX_VIEWS: Final = 10_000
_MAX_ENTITIES: Final = 3
_PREFIX: Final = "slack#/types/"
_KINDS: Final = {
    "channel_id": "a channel",
    "canvas_id": "a canvas",
    "list_id": "a list",
    "message_context": "a message",
}

ROTATION_ADVICE: Final = (
    "SLACK_BOT_TOKEN is of an app with token rotation: it ends within 12 hours, and nothing can renew it. Slack cannot "
    'turn rotation off again: make a new app from the manifest, with "token_rotation_enabled": false, or have the '
    "workspace install this one at /slack/install (SLACK_CLIENT_ID, docs/slack.md), where tokens are renewed"
)
_ROTATING: Final = "xoxe"  # Source: docs.slack.dev/authentication/using-token-rotation

Entity = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace that the bot is in."""

    team_id: str
    token: str = value_of(repr=False)
    bot_user_id: str
    bot_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class StoredInstallation:
    """A row of `slack_installations`; the tokens are encrypted."""

    enterprise_id: str
    team_id: str
    team_name: str | None
    is_enterprise: bool
    app_id: str | None
    bot_id: str | None
    bot_user_id: str
    scopes: str
    token: bytes
    installed_by: str | None
    installed_at: datetime
    refresh_token: bytes | None = None
    token_expires_at: datetime | None = None


def is_rotating(token: str, answer: Mapping[str, Any]) -> bool:
    """Return whether a token ends after some hours, by its beginning or by what Slack answers to `auth.test`."""
    return token.startswith(_ROTATING) or answer.get("expires_in") is not None


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

    def __init__(self, client: SlackClient, token: str | None, installations: Installations | None) -> None:
        self._client = client
        self._token = token
        self._installations = installations
        self._own: Workspace | None = None
        self._known: FIFOCache[str, tuple[Workspace, float]] = FIFOCache(_MAX_WORKSPACES)
        self._grids: FIFOCache[str, str] = FIFOCache(_MAX_WORKSPACES)
        self._code_channels: FIFOCache[tuple[str, str], tuple[bool, float]] = FIFOCache(_MAX_CHANNELS)
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
        """Return the workspace of the bot's own token; Slack is asked once."""
        if self._token is None or self._own is not None:
            return self._own
        async with self._asking:
            if self._own is None:
                answer = await self._client.call(self._token, "auth.test")
                if is_rotating(self._token, answer):
                    logger.warning("slack.token_expires", extra={"advice": ROTATION_ADVICE})
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
        """
        known = self._known.get(team_id)
        if known is not None and known[1] > time.monotonic():
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
        self._known[team_id] = (found, time.monotonic() + _FRESH_SECONDS)
        return found

    async def has_code_channel(self, team_id: str, channel_id: str) -> bool:
        """Return whether a channel is one that Slack has for a task of the bot; every message there is for it.

        Events do not say so, and Slack is asked, once an hour: docs.slack.dev/ai/slack-code/code-channel-properties.
        Where it does not answer, and where the task is another agent's, the channel is an ordinary one.
        """
        if channel_id.startswith("D"):
            return False
        key = team_id, channel_id
        is_one, until = self._code_channels.get(key, (False, 0.0))
        if until > time.monotonic():
            return is_one
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                workspace = await self.find(team_id)
                answer = await self._client.ask(workspace.token, "conversations.info", channel=channel_id)
            channel, lasts = field(answer, "channel"), _NAME_SECONDS
            agents = items_of(channel, "properties", "agent_session", "encoded_agent_bot_user_ids")
            is_one = field(channel, "record_type") == CODE_CHANNEL and workspace.bot_user_id in agents
        except (BotServiceError, TimeoutError) as error:
            logger.info("slack.channel_unknown", extra={"reason": type(error).__name__})
            lasts = _FRESH_SECONDS
        self._code_channels[key] = is_one, time.monotonic() + lasts
        return is_one

    def forget_channel(self, team_id: str, channel_id: str) -> None:
        """Take note that the bot has come into a channel or has left it: Slack is asked again what it is."""
        self._code_channels.pop((team_id, channel_id), None)

    async def note_grid(self, team_id: str, enterprise_id: str) -> None:
        """Store which organisation a workspace belongs to: the bot may be installed for the whole organisation."""
        if self._installations is None or self._grids.get(team_id) == enterprise_id:
            return
        await self._installations.note_grid(team_id, enterprise_id)
        self._grids[team_id] = enterprise_id

    def forget(self, team_id: str) -> None:
        """Take note that a workspace's token may be another one now."""
        self._changes += 1
        self._known.pop(team_id, None)


@dataclass(frozen=True, slots=True)
class Person:
    """A member of a workspace.

    Attributes:
        account: What the person is called elsewhere in the service: ids of people are unique within their team.
    """

    id: str
    account: str
    name: str | None = None
    language: str | None = None
    is_bot: bool = False


class SlackPeople:
    """Knows people by their ids."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._known: FIFOCache[tuple[str, str], tuple[Person, float]] = FIFOCache(_MAX_PEOPLE)

    async def find(self, workspace: Workspace, user_id: str) -> Person:
        """Return a person; without a name where Slack does not give it."""
        key = workspace.team_id, user_id
        known = self._known.get(key)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        try:
            answer = await self._client.ask(workspace.token, "users.info", user=user_id, include_locale="true")
        except SlackFailure as failure:
            logger.info("slack.person_unknown", extra={"reason": failure.code})
            person, fresh = known[0] if known is not None else Person(user_id, account_of(*key)), _PAUSE_SECONDS
        else:
            person, fresh = _read(key, field(answer, "user")), _PERSON_SECONDS
        self._known[key] = person, time.monotonic() + fresh
        return person

    async def is_administrator(self, workspace: Workspace, user_id: str) -> bool:
        """Return whether a person is an owner or an admin of a workspace now; people of another one are neither.

        Raises:
            SlackFailure: Slack does not say so.
        """
        user = field(await self._client.ask(workspace.token, "users.info", user=user_id), "user")
        # A channel that is shared brings people of other workspaces, with what they are there.
        teams = [field(user, "team_id"), *items_of(user, "enterprise_user", "teams")]
        rights = ("is_admin", "is_owner", "is_primary_owner")
        is_here = workspace.team_id in teams and field(user, "is_stranger") is not True
        return is_here and any(field(user, each) is True for each in rights)


async def find_in_time(workspaces: Workspaces, people: SlackPeople, team_id: str, user_id: str) -> Person:
    """Return a person while Slack waits for an answer; by the id alone where Slack takes its time."""
    try:
        async with asyncio.timeout(_PERSON_ASK_SECONDS):
            return await people.find(await workspaces.find(team_id), user_id)
    except (BotServiceError, TimeoutError):
        return Person(user_id, account_of(team_id, user_id))


class Views:
    """Knows what each person had open last."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._seen: FIFOCache[tuple[str, str], tuple[Sequence[Entity], float]] = FIFOCache(_MAX_VIEWS)
        self._names: FIFOCache[tuple[str, str], tuple[str | None, float]] = FIFOCache(_MAX_VIEWS)

    def note(self, team_id: str, user_id: str, context: object) -> None:
        """Take note of what a person looks at now, as Slack tells it; an empty context means nothing."""
        found = [each for each in items_of(context, "entities") if isinstance(each, Mapping)]
        self._seen.pop((team_id, user_id), None)
        if found:
            self._seen[team_id, user_id] = found[:_MAX_ENTITIES], time.monotonic() + _VIEW_SECONDS

    async def describe(self, workspace: Workspace, user_id: str) -> str | None:
        """Return in words what a person looks at, or None if nobody knows."""
        entities, until = self._seen.get((workspace.team_id, user_id), ((), 0.0))
        if until <= time.monotonic():
            return None
        said = [await self._say(each, workspace) for each in entities]
        return ", ".join(each for each in said if each) or None

    async def _say(self, entity: Entity, workspace: Workspace) -> str:
        kind, value = str(field(entity, "type") or "").removeprefix(_PREFIX), field(entity, "value")
        channel = word(field(value, "channel_id") if kind == "message_context" else value)
        if kind not in _KINDS or channel is None:
            return ""
        if kind in ("canvas_id", "list_id"):
            return f"{_KINDS[kind]} ({channel})"
        if channel.startswith("D"):
            return f"{_KINDS[kind]} in a direct conversation" if kind == "message_context" else ""
        name = await self._name(channel, workspace)
        place = f"#{quote_name(name)}" if name is not None else f"the channel {channel}"
        return f"{_KINDS[kind]} in {place}" if kind == "message_context" else place

    async def _name(self, channel: str, workspace: Workspace) -> str | None:
        key = workspace.team_id, channel
        known = self._names.get(key)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        try:
            answer = await self._client.ask(workspace.token, "conversations.info", channel=channel)
        except SlackFailure as failure:
            logger.info("slack.channel_unknown", extra={"reason": failure.code})
            name = None
        else:
            name = word(field(answer, "channel", "name"))
        self._names[key] = name, time.monotonic() + _NAME_SECONDS
        return name


def _read(key: tuple[str, str], user: object) -> Person:
    profile = field(user, "profile")
    names = (field(profile, "display_name"), field(profile, "real_name"), field(user, "real_name"), field(user, "name"))
    name = next((name for name in names if isinstance(name, str) and name.strip()), None)
    locale = field(user, "locale")
    language = locale if isinstance(locale, str) else None
    return Person(key[1], account_of(*key), name, language, field(user, "is_bot") is True)
