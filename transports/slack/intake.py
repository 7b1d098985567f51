"""Taking in what Slack delivers, whichever way it comes: stored when a method returns."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botservice.config.setting_choices import SlackListen
from botservice.conversation.context_keys import ContextKeys
from botservice.core.states import EventKind
from botservice.turns.turn import InboundEvent
from transports.common.connected_transport import Intake
from transports.common.json_fields import field, items_of
from transports.slack.button_presses import Presses
from transports.slack.context import SlackContext
from transports.slack.home import Suggestions, show_home
from transports.slack.inbound_events import (
    EventSource,
    SlackMessage,
    bots_of,
    chat_of_bot,
    enterprise_of,
    in_code_channel,
    inviter_of,
    message_event,
    order_of,
    raw,
    read_message,
    renamed_session,
    stop_event,
    team_of,
    timestamp,
    viewer_of,
    without_view,
    word,
)
from transports.slack.interactions import Interactions
from transports.slack.queries import mark_titled, takes_part
from transports.slack.workspaces import Views

logger = logging.getLogger(__name__)

_TRANSPORT = "slack"


@dataclass(frozen=True, slots=True)
class ChangedMessage:
    """A message that was edited or deleted.

    Attributes:
        message: As it is now, or as it was before it went.
        body: What delivers it as it is now, in the form of a message.
    """

    kind: EventKind
    message: SlackMessage
    body: Mapping[str, Any]
    event_id: str
    order_key: int

    def event(self, *, is_thread: bool) -> InboundEvent:
        """Return the change as an event of the thread that the message belongs to, or of the channel itself."""
        keys = self.message.keys(is_thread=is_thread)
        return InboundEvent(
            key=f"slack:{self.message.team_id}:{self.event_id}{':thread' if 'thread_ts' in keys else ''}",
            context_keys=keys,
            order_key=self.order_key,
            raw=raw(EventSource.MESSAGE, self.body),
            kind=self.kind,
            external_id=self.message.ts,
        )


def read_change(body: Mapping[str, Any]) -> ChangedMessage | None:
    """Return what became of a message, or None if that changes nothing that anybody wrote."""
    event = field(body, "event")
    before, after = field(event, "previous_message"), field(event, "message")
    match field(event, "subtype"):
        case "message_changed" if field(after, "subtype") == "tombstone":  # deleted, with a thread below it
            kind, now = EventKind.DELETE, before
        case "message_changed":
            kind, now = EventKind.EDIT, after
        case "message_deleted":
            kind, now = EventKind.DELETE, before
        case _:
            return None
    if not isinstance(now, Mapping) or (kind is EventKind.EDIT and _says(before) == _says(after)):
        return None  # a link was unfurled, or a reply came in its thread
    place = {name: field(event, name) for name in ("channel", "channel_type", "record_type")}
    whole = {**body, "event": {**now, "type": "message", **place}}
    message, event_id = read_message(whole), word(field(body, "event_id"))
    at = timestamp(field(event, "event_ts")) or timestamp(field(event, "ts"))
    if message is None or event_id is None or at is None:
        return None
    return ChangedMessage(kind, message, whole, event_id, order_of(at))


def _says(message: object) -> tuple[object, ...]:
    return field(message, "text"), tuple(field(each, "id") for each in items_of(message, "files"))


class SlackIntake(Intake):
    """Hands events to the inbox, and does what cannot wait for a turn."""

    def __init__(self, slack: SlackContext, suggestions: Suggestions, views: Views) -> None:
        super().__init__()
        self._workspaces = slack.workspaces
        self._interactions = Interactions(slack.workspaces)
        self._presses = Presses(slack)
        self._suggestions = suggestions
        self._views = views
        self._listening = slack.manners.listening

    async def take_event(self, body: Mapping[str, Any]) -> None:
        """Store what an event brings, if anything.

        Raises:
            StorageUnavailable: it is not stored; InboxFull: nor will it be for now.
        """
        inbox, storage = self.opened()
        await self._note_grid(body)
        match field(body, "event", "type"):
            case "message" | "app_mention":
                await self._take_message(body)
            case "agent_session_stopped":
                await self._accept(stop_event(body))
            case "member_joined_channel" | "member_left_channel":
                await self._take_membership(body)
            case "reaction_added" | "reaction_removed":
                await self._interactions.reactions.take(body, inbox, storage)
            case "agent_session_title_changed":
                await self._note_title(body)
            case "app_home_opened":
                self._look(body)
                self._show_home(body)
            case "app_context_changed":
                self._look(body)
            case "app_uninstalled" | "tokens_revoked" as kind:
                await self._forget_workspace(kind, body)

    async def take_command(self, body: Mapping[str, Any]) -> None:
        """Store a slash command."""
        _, storage = self.opened()
        await self._note_grid(body)
        await self._accept(await self._interactions.command(body, storage))

    async def take_interaction(self, body: Mapping[str, Any]) -> None:
        """Store what was pressed or submitted, or open the dialog that was asked for."""
        inbox, storage = self.opened()
        await self._note_grid(body)
        if not await self._presses.take(body, inbox, storage):
            await self._accept(await self._interactions.interaction(body, storage))

    async def _take_message(self, body: Mapping[str, Any]) -> None:
        body = await self._with_place(body)
        message = read_message(body)
        if message is None:
            await self._take_change(read_change(without_view(body)))
            return
        if message.is_direct:
            self._look(body, "app_context")
        body = without_view(body)
        bots = bots_of(body, self._workspaces.known_bot(message.team_id))
        if message.user_id in bots:
            return
        if self._is_meant(message, bots) or (message.is_reply and await self._takes_part(message)):
            await self._accept(message_event(message, body, is_thread=True))
        elif self._listening is SlackListen.CHANNELS:
            await self._accept(message_event(message, body, is_thread=message.is_reply))

    async def _with_place(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a message's event, or that of a change, with the kind of its channel if that is a code channel."""
        changed = read_change(body)
        message = read_message(body) or (None if changed is None else changed.message)
        if message is None or message.is_direct:
            return body
        is_code_channel = await self._workspaces.has_code_channel(message.team_id, message.channel_id)
        return in_code_channel(body) if is_code_channel else body

    async def _take_membership(self, body: Mapping[str, Any]) -> None:
        """Take note of who has brought the bot into a channel, or that it is gone."""
        team, channel = team_of(body) or "", word(field(body, "event", "channel")) or ""
        chat = chat_of_bot(body, self._workspaces.known_bot(team))
        if chat is None:
            return
        self._workspaces.forget_channel(team, channel)
        is_there = field(body, "event", "type") == "member_joined_channel"
        await self.note_membership(chat, inviter_of(body), is_there=is_there)

    async def _note_grid(self, body: Mapping[str, Any]) -> None:
        team, enterprise = team_of(body), enterprise_of(body)
        if team is not None and enterprise is not None and team != enterprise:
            await self._workspaces.note_grid(team, enterprise)

    async def _note_title(self, body: Mapping[str, Any]) -> None:
        """Take note that a session has the title that a person gave it."""
        _, storage = self.opened()
        renamed = renamed_session(body)
        if renamed is not None:
            keys, thread_ts = renamed
            now = storage.now()
            await storage.write(lambda connection: mark_titled(connection, keys, thread_ts, now))

    def _is_meant(self, message: SlackMessage, bots: frozenset[str]) -> bool:
        """Return whether the bot is named, or may be: reading decides where its name is not known yet."""
        is_alone = message.is_direct or message.is_in_code_channel
        return is_alone or bool(message.mentioned & bots if bots else message.mentioned)

    async def _take_change(self, changed: ChangedMessage | None) -> None:
        """Store what became of a message, for every conversation that may hold it."""
        if changed is None:
            return
        inbox, _ = self.opened()
        message, places = changed.message, [False]
        if not message.is_direct:
            places = [is_thread for is_thread in (True, False) if await self._takes_part(message, is_thread=is_thread)]
        await inbox.accept(_TRANSPORT, [changed.event(is_thread=is_thread) for is_thread in places])

    async def _takes_part(self, message: SlackMessage, *, is_thread: bool = True) -> bool:
        """Return whether the bot takes part in a message's thread, or keeps what is said in its channel."""
        _, storage = self.opened()
        keys = ContextKeys.of(message.keys(is_thread=is_thread))
        may_be_empty = is_thread or self._listening is SlackListen.CHANNELS  # its first message may be about to be kept
        return await storage.read(lambda connection: takes_part(connection, keys, may_be_empty=may_be_empty))

    async def _accept(self, event: InboundEvent | None) -> None:
        inbox, _ = self.opened()
        if event is not None:
            await inbox.accept(_TRANSPORT, [event])

    def _look(self, body: Mapping[str, Any], name: str = "context") -> None:
        """Take note of what a person looks at, if an event tells it; nothing of it is stored."""
        event = field(body, "event")
        if not isinstance(event, Mapping) or name not in event:
            return
        team, user = team_of(body), viewer_of(body)
        if team is not None and user is not None:
            self._views.note(team, user, event[name])

    def _show_home(self, body: Mapping[str, Any]) -> None:
        _, storage = self.opened()
        event = field(body, "event")
        team, user, channel = team_of(body), word(field(event, "user")), word(field(event, "channel"))
        if team is None or user is None:
            return
        if field(event, "tab") == "home":
            page = partial(show_home, self._workspaces, storage, team, user)
            self._background.start(self._show(page), name="slack-home")
        elif field(event, "tab") == "messages" and channel is not None:
            page = partial(self._suggestions.show, storage, team, user, channel)
            self._background.start(self._show(page), name="slack-suggestions")

    async def _show(self, page: Callable[[], Awaitable[None]]) -> None:
        try:
            await page()
        except Exception:  # a border: a page that is not shown costs nobody an answer
            logger.exception("slack.home_not_shown")

    async def _forget_workspace(self, kind: str, body: Mapping[str, Any]) -> None:
        if kind == "tokens_revoked" and not field(body, "event", "tokens", "bot"):
            return
        team = word(field(body, "team_id"))
        if self._workspaces.installations is not None:
            await self._workspaces.installations.remove(team, word(field(body, "enterprise_id")))
        if team is not None:  # from now on, looking it up raises NotInstalled
            self._workspaces.forget(team)
        logger.info("slack.uninstalled", extra={"team": team})
