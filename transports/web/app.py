"""The web transport: its routes, those that are loaded when they are asked for, and what turns need of it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Receive, Scope, Send

from botservice.commands.command import Command
from botservice.commands.links import LINK_PATH
from botservice.commands.standard import standard_commands
from botservice.config.setting_choices import DEFAULT_BOT_NAME
from botservice.core.messages import InboundMessage, Message
from botservice.core.platform_capabilities import Capabilities
from botservice.storage.database import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Live, Payload, StreamRecord, Transport
from botservice.turns.turn import Delivery, StoredEvent
from transports.common.documents import DocumentReaders
from transports.web.authentication import PageAuthentication
from transports.web.backend import Backend
from transports.web.chat import ChatEndpoints
from transports.web.conversations import Conversations
from transports.web.files import Documents
from transports.web.inbound_events import NAME, chat_in, read_event
from transports.web.inspector_site import InspectorSite
from transports.web.links import Browsers, Links
from transports.web.outbound import plan_answer
from transports.web.owner_token import Mode, PageAccess
from transports.web.pages import Assets, PageRenderer, read_assets
from transports.web.server_sent_events import PACE, StreamPace
from transports.web.sessions import EndedLogins
from transports.web.streaming import Hub, LiveAnswer

if TYPE_CHECKING:
    from botservice.devtools.replaying import Replayer
    from botservice.service import AgentService

CAPABILITIES: Final = Capabilities(
    label="Browser",
    streaming="a growing answer",
    thinking="dots",
    tools="cards with arguments, progress and result",
    approval="buttons, or commands",
    buttons="below the message",
    files_in="10 files, 10 MB: pictures, texts, PDFs, office documents, audio",
    files_out="shown or saved",
    tables="a table",
    edits="ask the question again",
    deletions="a whole conversation with its facts",
    stops="the button, Esc, or /stop",
    errors="a message with a retry button",
    feedback="👍 or 👎 below the answer",
    conversations="a list",
)


class WebTransport(Transport):
    """People who write in a browser.

    Attributes:
        exception_handlers: For the Starlette app with these routes: errors in plain words.
    """

    name = NAME
    capabilities = CAPABILITIES
    offers_retry = True
    shows_history = True
    is_local = True

    def __init__(
        self,
        *,
        access: PageAccess,
        service: "AgentService | None" = None,
        asker: "Callable[[], Replayer] | None" = None,
        reading: DocumentReaders | None = None,
        commands: Iterable[Command] | None = None,
        pace: StreamPace = PACE,
        bot_name: str | None = None,
    ) -> None:
        """Make the transport.

        Args:
            service: Whose turns the inspector shows: what they cost, and which tools there are.
            asker: Returns what asks turns again from their record; without one, the page is off.
            reading: What can be read of the files that people send; by default texts.
            commands: What the page offers to complete; by default what every service knows.
            pace: How often an open page is told something unasked.
            bot_name: What the bot is called on the pages; by default its service's name, or "botservice".
        """
        self._access = access
        self._backend = Backend()
        self._documents = Documents(reading or DocumentReaders(), lambda: self._backend.opened)
        self._hub = Hub()
        self._pace = pace
        assets = read_assets()
        self._pages = PageRenderer(assets, bot_name or (None if service is None else service.name) or DEFAULT_BOT_NAME)
        self._tools = None if service is None else lambda: list(service.agent.tools)
        self._site = InspectorSite(self._pages, self._backend, service)
        commands = standard_commands() if commands is None else commands
        self.routes: Sequence[BaseRoute] = self._make_routes(assets, asker, commands)
        self.exception_handlers: Mapping[Any, Any] = self._pages.exception_handlers

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Take messages from now on."""
        self._backend.connect(inbox, storage)
        self._hub.open()

    async def stop(self) -> None:
        """Take in no more, and close the open event streams at once. Browsers come back by themselves."""
        self._backend.disconnect()
        self._hub.close()

    async def close(self) -> None:
        """Do nothing: connections are the web server's."""

    def describe(self) -> str:
        """Return where the page is, or why it is off."""
        return self._access.describe()

    async def read(self, event: StoredEvent) -> InboundMessage | None:
        """Return what a stored message says, with what stands in its files."""
        message = read_event(event)
        return message if message is None else await self._documents.read(message, event)

    async def peek(self, event: StoredEvent) -> InboundMessage | None:
        """Return what a stored message says; its files are only named."""
        message = read_event(event)
        return message if message is None else self._documents.name(message)

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:  # noqa: ARG002 - the protocol
        """Return the one delivery of an answer."""
        return plan_answer(answer)

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:  # noqa: ARG002 - the protocol
        """Have the open pages show what is stored. Those that open later, or elsewhere, find it there."""
        self._hub.note_stored(chat_in(context_keys))
        return None

    def live(
        self,
        context_keys: Mapping[str, str],
        events: Sequence[StoredEvent],  # noqa: ARG002 - the protocol
        record: StreamRecord,  # noqa: ARG002 - a draft here vanishes by itself, so it is no delivery
    ) -> Live | None:
        """Return what shows the turn's progress to the open pages of its conversation."""
        return LiveAnswer(self._hub.channel(chat_in(context_keys)))

    def _make_routes(
        self, assets: Assets, asker: "Callable[[], Replayer] | None", commands: Iterable[Command]
    ) -> list[BaseRoute]:
        browsers = Browsers(self._access, self._backend)
        gate = PageAuthentication(self._access, self._pages, EndedLogins(self._backend), browsers)
        chat = ChatEndpoints(self._access, self._pages, self._hub, self._backend, self._pace, self._tools)
        mine = Conversations(self._hub, self._backend, commands)

        def inspect() -> list[BaseRoute]:
            from transports.web.inspector_routes import inspector_routes

            return inspector_routes(self._site, None if asker is None else asker(), gate)

        routes: list[BaseRoute] = [
            Route("/", gate.guard(chat.page)),
            Route("/web/messages", gate.guard(chat.post_message, changes=True), methods=["POST"]),
            Route("/web/stop", gate.guard(chat.post_stop, changes=True), methods=["POST"]),
            Route("/web/decide", gate.guard(chat.post_decision, changes=True), methods=["POST"]),
            Route("/web/new", gate.guard(chat.post_new, changes=True), methods=["POST"]),
            Route("/web/conversations", gate.guard(mine.list_mine)),
            Route("/web/conversations/rename", gate.guard(mine.rename, changes=True), methods=["POST"]),
            Route("/web/conversations/delete", gate.guard(mine.delete, changes=True), methods=["POST"]),
            Route("/web/feedback", gate.guard(mine.post_feedback, changes=True), methods=["POST"]),
            Route("/web/why", gate.guard(mine.why)),
            Route("/web/commands", gate.guard(mine.list_commands)),
            Route("/web/events", gate.guard(chat.events)),
            Route("/web/earlier", gate.guard(chat.earlier)),
            Route("/web/files/{message:int}/{index:int}", gate.guard(chat.file)),
            Route("/web/notices/{notice:int}/{index:int}", gate.guard(chat.notice_file)),
            LateRoutes("/inspect", inspect),
            Route("/web/login", gate.secure(gate.login_page)),
            Route("/web/login", gate.secure(gate.log_in), methods=["POST"]),
            Route("/web/logout", gate.guard(gate.log_out, changes=True), methods=["POST"]),
        ]
        if self._access.has_links:
            links = Links(self._access, self._pages, browsers)
            shown = Route(f"{LINK_PATH}/{{secret}}", gate.secure(links.show))
            shown.methods = {"GET"}  # without the HEAD that comes along
            routes += [shown, Route(f"{LINK_PATH}/{{secret}}", gate.secure(links.open, changes=True), methods=["POST"])]
            routes += [Route(path, gate.secure(links.show_without_secret)) for path in (LINK_PATH, f"{LINK_PATH}/")]
        if self._access.mode is not Mode.OFF or self._access.has_links:
            routes.append(Route("/web/static/{name}", gate.secure(assets.serve)))
            routes.append(Route("/web/app.webmanifest", gate.secure(self._pages.manifest)))
        return routes


class LateRoutes(BaseRoute):
    """All addresses at and below a path."""

    def __init__(self, path: str, load: Callable[[], Sequence[BaseRoute]]) -> None:
        """Note what loads the routes, whose paths are whole ones."""
        self._path = path
        self._load = load
        self._router: Router | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for one of the addresses."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))  # which stands before it below a Mount
        is_here = scope["type"] == "http" and f"{path}/".startswith(f"{self._path}/")
        return (Match.FULL if is_here else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._router is None:
            self._router = Router(await self.routes(), redirect_slashes=False)
        path = scope["path"].rstrip("/")  # an address is the same with a slash behind it
        await self._router({**scope, "path": path}, receive, send)

    async def routes(self) -> Sequence[BaseRoute]:
        """Return the routes."""
        return await asyncio.to_thread(self._load)
