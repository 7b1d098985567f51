"""The web transport: its routes, and what turns need of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import BaseRoute, Route

from botservice.messages import InboundMessage, Message
from botservice.storage import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Live, Payload, StreamRecord
from botservice.turns.turn import Delivery, StoredEvent
from transports.web.chat import Chat
from transports.web.entering.access import Access, Mode
from transports.web.entering.gate import Gate
from transports.web.entering.logins import Logins
from transports.web.inbound import NAME, read_event
from transports.web.inspector.inspector import Inspector
from transports.web.outgoing.outbound import plan_answer
from transports.web.outgoing.streaming import Hub, LiveAnswer
from transports.web.pages import Assets, Pages


class WebTransport:
    """People who write in a browser.

    Attributes:
        routes: To be served, whether the pages are on or off.
        exception_handlers: For the Starlette app with these routes: errors in plain words.
    """

    name = NAME
    offers_retry = True

    def __init__(self, *, access: Access, service_name: str = "botservice") -> None:
        self._access = access
        self._hub = Hub()
        assets = Assets()
        self._pages = Pages(service_name, assets)
        self._logins = Logins()
        self._chat = Chat(access, self._pages, self._hub)
        self._inspector = Inspector(self._pages)
        self.routes: Sequence[BaseRoute] = self._make_routes(assets)
        self.exception_handlers: Mapping[Any, Any] = self._pages.exception_handlers

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Take messages from now on."""
        self._logins.connect(storage)
        self._chat.connect(inbox, storage)
        self._inspector.connect(storage)
        self._hub.open()

    async def stop(self) -> None:
        """Take in no more, and close the open event streams at once. Browsers come back by themselves."""
        self._chat.disconnect()
        self._hub.close()

    async def close(self) -> None:
        """Do nothing: connections are the web server's."""

    def describe(self) -> str:
        """Return where the page is, or why it is off."""
        return self._access.describe()

    async def read(self, event: StoredEvent) -> InboundMessage | None:
        """Return what a stored message says."""
        return read_event(event)

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:  # noqa: ARG002 - the protocol
        """Return the one delivery of an answer."""
        return plan_answer(answer)

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:  # noqa: ARG002 - the protocol
        """Have the open pages show what is stored. Those that open later, or elsewhere, find it there."""
        self._hub.note_stored(context_keys.get("session_id", ""))
        return None

    def live(
        self,
        context_keys: Mapping[str, str],
        events: Sequence[StoredEvent],  # noqa: ARG002 - the protocol
        record: StreamRecord,  # noqa: ARG002 - a draft here vanishes by itself, so it is no delivery
    ) -> Live | None:
        """Return what shows the turn's progress to the open pages of its session."""
        return LiveAnswer(self._hub.channel(context_keys.get("session_id", "")))

    def _make_routes(self, assets: Assets) -> list[BaseRoute]:
        gate, chat = Gate(self._access, self._pages, self._logins), self._chat
        routes: list[BaseRoute] = [
            Route("/", gate.guard(chat.page)),
            Route("/web/messages", gate.guard(chat.post_message, changes=True), methods=["POST"]),
            Route("/web/stop", gate.guard(chat.post_stop, changes=True), methods=["POST"]),
            Route("/web/decide", gate.guard(chat.post_decision, changes=True), methods=["POST"]),
            Route("/web/new", gate.guard(chat.post_new, changes=True), methods=["POST"]),
            Route("/web/events", gate.guard(chat.events)),
            Route("/web/earlier", gate.guard(chat.earlier)),
            Route("/web/files/{message:int}/{index:int}", gate.guard(chat.file)),
            Route("/web/notices/{notice:int}/{index:int}", gate.guard(chat.notice_file)),
            Route("/inspect", gate.guard(self._inspector.list_contexts)),
            Route("/inspect/{context:int}", gate.guard(self._inspector.show_context)),
            Route(
                "/inspect/{context:int}/notes/{note:int}/delete",
                gate.guard(self._inspector.delete_note, changes=True),
                methods=["POST"],
            ),
            Route("/inspect/{context:int}/{turn:int}", gate.guard(self._inspector.show_turn)),
            Route("/web/login", gate.secure(gate.login_page)),
            Route("/web/login", gate.secure(gate.log_in), methods=["POST"]),
            Route("/web/logout", gate.guard(gate.log_out, changes=True), methods=["POST"]),
        ]
        if self._access.mode is not Mode.OFF:
            routes.append(Route("/web/static/{name}", gate.secure(assets.serve)))
        return routes
