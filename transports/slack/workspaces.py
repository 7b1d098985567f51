"""The workspaces that the bot is in, their people, and what these look at, which is stored nowhere."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as value_of
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cachetools import FIFOCache, TTLCache

from botservice.core.errors import BotServiceError
from botservice.core.quoting import quote_name
from transports.common.json_fields import field, items_of
from transports.slack.client import NotInstalled, SlackClient, SlackFailure
from transports.slack.inbound_events import CODE_CHANNEL, account_of, word

if TYPE_CHECKING:
    from transports.slack.installations import InstallationStore

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 300.0
_MAX_WORKSPACES = 10_000

_PERSON_SECONDS = 3600.0
_PAUSE_SECONDS = 30.0
_MAX_CHANNELS: Final = 10_000
_ASK_SECONDS: Final = 1.5  # of the three in which Slack wants to hear that an event arrived
_PERSON_ASK_SECONDS: Final = 1.0  # of the same
CALL_SECONDS: Final = 2.0  # of the same, for the call without which there is nothing to be stored
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
    """A workspace that the bot is in: calls of Slack's methods go there with its token."""

    client: SlackClient = value_of(repr=False)
    team_id: str
    token: str = value_of(repr=False)
    bot_user_id: str
    bot_id: str | None = None
    name: str | None = None

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer of a method that writes. Parameters that are None are left out."""
        return await self.client.call(self.token, method, **parameters)

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer of a method that reads."""
        return await self.client.ask(self.token, method, **parameters)

    async def has_administrator(self, user_id: str) -> bool:
        """Return whether a person is an owner or an admin of the workspace now; people of another one are neither.

        Raises:
            SlackFailure: Slack does not say so.
        """
        user = field(await self.ask("users.info", user=user_id), "user")
        # A channel that is shared brings people of other workspaces, with what they are there.
        teams = [field(user, "team_id"), *items_of(user, "enterprise_user", "teams")]
        rights = ("is_admin", "is_owner", "is_primary_owner")
        is_here = self.team_id in teams and field(user, "is_stranger") is not True
        return is_here and any(field(user, each) is True for each in rights)


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


def is_rotating(token: str, answer: Mapping[str, Any]) -> bool:
    """Return whether a token ends after some hours, by its beginning or by what Slack answers to `auth.test`."""
    return token.startswith(_ROTATING) or answer.get("expires_in") is not None


class Workspaces:
    """Knows every workspace and its people: the one of the bot's own token, and those that have installed it."""

    def __init__(self, client: SlackClient, token: str | None, installations: "InstallationStore | None") -> None:
        self.client = client
        self.installations = installations
        self.own: Workspace | None = None  # of the bot's own token, once Slack has said which it is
        self._token = token
        self._known: FIFOCache[str, tuple[Workspace, float]] = FIFOCache(_MAX_WORKSPACES)
        self._grids: FIFOCache[str, str] = FIFOCache(_MAX_WORKSPACES)
        self._code_channels: FIFOCache[tuple[str, str], tuple[bool, float]] = FIFOCache(_MAX_CHANNELS)
        self._people: FIFOCache[tuple[str, str], tuple[Person, float]] = FIFOCache(_MAX_PEOPLE)
        self._direct: FIFOCache[tuple[str, str], str] = FIFOCache(_MAX_PEOPLE)
        self._asking = asyncio.Lock()
        self._changes = 0

    def known_bot(self, team_id: str) -> str | None:
        """Return the bot's user id in a workspace, where it is known already."""
        found, _ = self._known.get(team_id, (self.own, 0.0))
        is_there = found is not None and (found.team_id == team_id or self.installations is None)
        return found.bot_user_id if is_there and found is not None else None

    async def identify(self) -> Workspace | None:
        """Return the workspace of the bot's own token; Slack is asked once."""
        if self._token is None or self.own is not None:
            return self.own
        async with self._asking:
            if self.own is None:
                answer = await self.client.call(self._token, "auth.test")
                if is_rotating(self._token, answer):
                    logger.warning("slack.token_expires", extra={"advice": ROTATION_ADVICE})
                self.own = Workspace(
                    self.client,
                    str(answer.get("team_id") or ""),
                    self._token,
                    str(answer.get("user_id") or ""),
                    answer.get("bot_id"),
                    answer.get("team"),
                )
        return self.own

    async def find(self, team_id: str) -> Workspace:
        """Return a workspace.

        Raises:
            NotInstalled: the bot is not in it.
        """
        known = self._known.get(team_id)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        own = await self.identify()
        if own is not None and (own.team_id == team_id or self.installations is None):
            return own
        changes = self._changes
        found = None if self.installations is None else await self.installations.find(team_id, None)
        if found is None:
            self.forget(team_id)
            raise NotInstalled(f"the workspace {team_id} has not installed this bot")
        if changes == self._changes:  # otherwise it may have been removed while it was read
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
                answer = await workspace.ask("conversations.info", channel=channel_id)
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
        if self.installations is None or self._grids.get(team_id) == enterprise_id:
            return
        await self.installations.note_grid(team_id, enterprise_id)
        self._grids[team_id] = enterprise_id

    def forget(self, team_id: str) -> None:
        """Take note that a workspace's token may be another one now."""
        self._changes += 1
        self._known.pop(team_id, None)

    async def find_direct_channel(self, team_id: str, user_id: str) -> str:
        """Return the channel in which a person and the bot are alone; Slack is asked once."""
        known = self._direct.get((team_id, user_id))
        if known is not None:
            return known
        answer = await (await self.find(team_id)).call("conversations.open", users=user_id)
        channel = word(field(answer, "channel", "id"))
        if channel is None:
            raise SlackFailure("channel_not_found", detail="Slack does not name the conversation")
        self._direct[team_id, user_id] = channel
        return channel

    async def find_person(self, workspace: Workspace, user_id: str) -> Person:
        """Return a person; without a name where Slack does not give it."""
        key = workspace.team_id, user_id
        known = self._people.get(key)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        try:
            answer = await workspace.ask("users.info", user=user_id, include_locale="true")
        except SlackFailure as failure:
            logger.info("slack.person_unknown", extra={"reason": failure.code})
            person, fresh = known[0] if known is not None else Person(user_id, account_of(*key)), _PAUSE_SECONDS
        else:
            person, fresh = _read(key, field(answer, "user")), _PERSON_SECONDS
        self._people[key] = person, time.monotonic() + fresh
        return person

    async def find_person_in_time(self, team_id: str, user_id: str) -> Person:
        """Return a person while Slack waits for an answer; by the id alone where Slack takes its time."""
        try:
            async with asyncio.timeout(_PERSON_ASK_SECONDS):
                return await self.find_person(await self.find(team_id), user_id)
        except (BotServiceError, TimeoutError):
            return Person(user_id, account_of(team_id, user_id))


class Views:
    """Knows what each person had open last."""

    def __init__(self) -> None:
        self._seen: TTLCache[tuple[str, str], Sequence[Entity]] = TTLCache(_MAX_VIEWS, _VIEW_SECONDS)
        self._names: TTLCache[tuple[str, str], str | None] = TTLCache(_MAX_VIEWS, _NAME_SECONDS)

    def note(self, team_id: str, user_id: str, context: object) -> None:
        """Take note of what a person looks at now, as Slack tells it; an empty context means nothing."""
        found = [each for each in items_of(context, "entities") if isinstance(each, Mapping)]
        self._seen.pop((team_id, user_id), None)
        if found:
            self._seen[team_id, user_id] = found[:_MAX_ENTITIES]

    async def describe(self, workspace: Workspace, user_id: str) -> str | None:
        """Return in words what a person looks at, or None if nobody knows."""
        said = [await self._say(each, workspace) for each in self._seen.get((workspace.team_id, user_id), ())]
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
        if key in self._names:
            return self._names.get(key)
        try:
            answer = await workspace.ask("conversations.info", channel=channel)
        except SlackFailure as failure:
            logger.info("slack.channel_unknown", extra={"reason": failure.code})
            name = None
        else:
            name = word(field(answer, "channel", "name"))
        self._names[key] = name
        return name


def _read(key: tuple[str, str], user: object) -> Person:
    profile = field(user, "profile")
    names = (field(profile, "display_name"), field(profile, "real_name"), field(user, "real_name"), field(user, "name"))
    name = next((name for name in names if isinstance(name, str) and name.strip()), None)
    locale = field(user, "locale")
    language = locale if isinstance(locale, str) else None
    return Person(key[1], account_of(*key), name, language, field(user, "is_bot") is True)
