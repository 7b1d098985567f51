"""The Slack transport: its parts, put together."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.routing import BaseRoute, Route

from botservice.config.setting_choices import SlackListen
from botservice.core.errors import BotServiceError, DeliveryError
from botservice.core.messages import Author, InboundMessage, Message
from botservice.core.platform_capabilities import Capabilities
from botservice.storage.database import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Live, Payload, StreamRecord
from botservice.turns.turn import Delivery, StoredEvent
from transports.common.connected_transport import ConnectedTransport, FailedCall
from transports.common.pacing import Pace
from transports.slack.answer_messages import plan_answer
from transports.slack.bolt import PATH, EventsEndpoint, SocketListener, build_bolt
from transports.slack.client import NotInstalled, SlackClient, SlackFailure, as_delivery_error, translate
from transports.slack.context import Manners, SlackContext
from transports.slack.home import Suggestions
from transports.slack.inbound_events import COMMAND_PREFIX
from transports.slack.inbound_messages import SlackReader
from transports.slack.installing import Installing, OAuthApp
from transports.slack.intake import SlackIntake
from transports.slack.live import SlackLiveAnswers
from transports.slack.sending import SlackSender
from transports.slack.sessions import give_title
from transports.slack.streams import MAX_STREAMS, Streams
from transports.slack.workspaces import Views, Workspaces

logger = logging.getLogger(__name__)

CAPABILITIES: Final = Capabilities(
    label="Slack",
    command_prefix=COMMAND_PREFIX,
    streaming="a growing message",
    thinking="the session's status",
    tools="tasks or a plan; details in direct conversations",
    approval="buttons, or commands",
    buttons="below the message",
    files_in="up to 20 MB: pictures, texts, PDFs, office documents, canvases, lists",
    files_out="uploads",
    tables="a sortable table, or text",
    edits="change the memory",
    deletions="change the memory; cancel the answer",
    stops="the session's button, or !stop",
    errors="a message in your language",
    personal="seen by the asker only",
    feedback="👍 or 👎, as a button or reaction",
    conversations="each direct conversation, each thread",
)


class SlackTransport(ConnectedTransport):
    """A Slack bot, in one workspace or in many."""

    name = "slack"
    errors = SlackFailure
    token_name = "SLACK_BOT_TOKEN"  # noqa: S105 - a setting's name
    token_source = "api.slack.com/apps (OAuth & Permissions, Bot User OAuth Token)"  # noqa: S105 - where it is found
    _intake: SlackIntake
    capabilities = CAPABILITIES

    def __init__(
        self,
        *,
        token: str | None = None,
        signing_secret: str | None = None,
        app_token: str | None = None,
        api_url: str = "https://slack.com/api",
        oauth: OAuthApp | None = None,
        manners: Manners | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Make a bot; nothing is asked of Slack before `start`.

        Args:
            signing_secret: Turns on events by HTTP.
            app_token: Turns on Socket Mode.
            oauth: Lets other workspaces install the bot.
        """
        client, manners = SlackClient(api_url), manners or Manners()
        self._installing = None if oauth is None else Installing(oauth, client)
        installations = None if self._installing is None else self._installing.store
        self._slack = SlackContext(Workspaces(client, token, installations), manners)
        self._has_token = token is not None
        self.withheld_in_groups = "" if manners.listening is SlackListen.CHANNELS else "listen.threads"
        self._suggestions, views = Suggestions(self._slack), Views()
        self._intake = SlackIntake(self._slack, self._suggestions, views)
        self._reader = SlackReader(self._slack, views)
        streams = Streams(MAX_STREAMS)
        self._sender = SlackSender(self._slack, streams, pace or Pace())
        self._stage = SlackLiveAnswers(self._slack, streams)
        # Bolt checks signatures on whatever comes in; what comes through the socket has none to check.
        socket_bolt = build_bolt(self._intake, api_url=client.base_url, signing_secret=None)
        self._socket = SocketListener(socket_bolt, client, app_token) if app_token is not None else None
        self.routes: Sequence[BaseRoute] = () if self._installing is None else self._installing.routes
        if signing_secret is not None:
            events = EventsEndpoint(
                build_bolt(self._intake, api_url=client.base_url, signing_secret=signing_secret), signing_secret
            )
            self.routes = [Route(PATH, events.answer, methods=["POST"]), *self.routes]

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Begin to take in events and installations."""
        self._slack.storage = storage
        if self._installing is not None:
            self._installing.open(storage)
        await super().start(inbox, storage)

    async def close(self) -> None:
        """Let go of every connection."""
        await self._slack.background.close()
        await self._slack.workspaces.client.close()

    def describe(self) -> str:
        """Return who the bot is and how it is reached."""
        own = self._slack.workspaces.own
        who = own.name or own.team_id if own is not None else "a workspace that is not reached yet, tried again"
        names = [who] if self._has_token else []
        names += ["every workspace that installs it"] if self._installing is not None else []
        ways = ["by Socket Mode"] if self._socket is not None else []
        ways += [f"by events at {PATH}"] if any(getattr(route, "path", "") == PATH for route in self.routes) else []
        nothing = "nothing reaches it: SLACK_APP_TOKEN or SLACK_SIGNING_SECRET opens a way"
        return f"{' and '.join(names)}, {' and '.join(ways) or nothing}"

    async def read(self, event: StoredEvent) -> InboundMessage | None:
        """Return what an event says, or None if it says nothing to anybody."""
        return await self._reader.read(event)

    async def peek(self, event: StoredEvent) -> InboundMessage | None:
        """Return what `read` does, without files and without what was said before."""
        return await self._reader.read(event, is_peek=True)

    def is_shared(self, context_keys: Mapping[str, str]) -> bool:
        """Return whether a conversation is a channel's, or a thread's there."""
        return not context_keys.get("channel_id", "").startswith("D")

    async def is_administrator(self, context_keys: Mapping[str, str], author: Author | None) -> bool | None:
        """Return whether a person is an owner or an admin of the workspace of a channel."""
        if not self.is_shared(context_keys):
            return None
        team_id, _, user_id = (author.id if author is not None and author.id else "").partition(":")
        if not user_id or team_id != context_keys.get("team_id"):
            return False
        try:
            return await (await self._slack.workspaces.find(team_id)).has_administrator(user_id)
        except SlackFailure as failure:
            raise as_delivery_error(failure) from failure
        except NotInstalled as error:
            raise DeliveryError(str(error)) from error

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:
        """Return the messages that make answer visible, in order. Pure."""
        return plan_answer(answer, events, self._slack.manners.pings)

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make one message visible and return its timestamp."""
        ts = await self._sender.send(context_keys, delivery)
        if delivery.payload.get("is_notice"):
            self._stage.rest(context_keys, delivery)
        if self._stage.may_have_session(context_keys, delivery):
            give_title(self._slack, context_keys, delivery)
        if "forgets_in" in delivery.payload:
            work = self._clear(context_keys, str(delivery.payload["forgets_in"]))
            self._slack.background.start(work, name="slack-suggestions")
        return ts

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows that the bot is at work, or None if nobody is answered in the open."""
        return self._stage.live(context_keys, events, record)

    async def _identify(self) -> None:
        await self._slack.workspaces.identify()

    async def _receive(self) -> None:
        if self._socket is not None:
            await self._socket.run()

    def _explain(self, error: Exception) -> FailedCall:
        failure = translate(error)
        return FailedCall(failure.reason, failure.is_token_gone, failure.retry_after_seconds)

    async def _clear(self, context_keys: Mapping[str, str], language: str) -> None:
        if not self.is_shared(context_keys):
            try:
                await self._suggestions.clear(context_keys["team_id"], context_keys["channel_id"], language)
            except BotServiceError as error:
                logger.warning("slack.suggestions_not_cleared", extra={"reason": str(error)})
