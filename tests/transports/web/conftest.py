"""The web transport on its real wires: uvicorn, a real worker and storage, a scripted model, httpx or Chromium."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from html import unescape
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select
from standins.models import Typist, echo
from standins.patience import PATIENT
from standins.web_server import web_server
from starlette.routing import BaseRoute

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.config.settings import Settings
from botservice.devtools.replaying import Replayer
from botservice.people.access import Access as PeopleAccess
from botservice.people.budgets import Budgets
from botservice.storage.tables.conversations import contexts, events
from botservice.turns.inbox import Inbox
from botservice.turns.worker import Worker
from transports.web.app import WebTransport
from transports.web.owner_token import PageAccess
from transports.web.server_sent_events import PACE, StreamPace

TIMEOUT_SECONDS = 60.0
SETTINGS = Settings(_env_file=None)
"""Read once: reading the environment takes longer than a request."""


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event."""

    name: str
    data: Any
    id: str | None = None


@dataclass(slots=True)
class Events:
    """An event stream that is being read."""

    response: httpx.Response
    seen: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = self.response.aiter_lines()

    _lines: AsyncIterator[str] = field(init=False)

    @property
    def messages(self) -> list[Any]:
        """The messages so far."""
        return self.of("message")

    @property
    def texts(self) -> list[str]:
        """What the messages so far say."""
        return [message["text"] for message in self.messages]

    def of(self, name: str) -> list[Any]:
        """Return the data of the events of a name so far."""
        return [event.data for event in self.seen if event.name == name]

    async def next(self) -> Event | None:
        """Return the next event; None where the server ended the stream."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(TIMEOUT_SECONDS):
            async for line in self._lines:
                if line == "" and "data" in fields:
                    event = Event(fields["event"], json.loads(fields["data"]), fields.get("id"))
                    self.seen.append(event)
                    return event
                name, _, value = line.partition(": ")
                fields[name] = value
        return None

    async def until(self, name: str, is_wanted: Callable[[Any], bool] = lambda _: True) -> Event:
        """Return the next event of a name for whose data is_wanted holds."""
        while (event := await self.next()) is not None:
            if event.name == name and is_wanted(event.data):
                return event
        raise AssertionError(f"the stream ended without {name}; it had {self.seen}")

    async def until_written(self, text: str) -> list[str]:
        """Return the blocks of the draft when they say text."""
        blocks: list[str] = []
        while unescape(re.sub(r"<[^>]*>", "", "".join(blocks))).strip() != text:
            event = await self.next()
            assert event is not None
            if event.name in ("draft", "blocks"):
                blocks = [*blocks[: event.data.get("at", 0)], *event.data["blocks"]]
        return blocks

    async def until_idle(self) -> list[Event]:
        """Return what came until nothing is waited for any more."""
        await self.until("state", lambda data: not data["working"])
        return self.seen

    async def until_answered(self) -> list[Event]:
        """Return what came until an answer was there and nothing more is waited for."""
        await self.until("message", lambda data: data["role"] == "assistant")
        return await self.until_idle()


class Visitor:
    """A browser without a screen: cookies, posts and event streams."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self._number = 0

    async def open(self) -> httpx.Response:
        """Load the page, and with it the session."""
        return await self.client.get("/", headers={"Accept": "text/html"})

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return await self.client.post(path, json=body, headers=headers)

    async def say(self, text: str, **fields: Any) -> httpx.Response:
        """Post a message under a new id."""
        self._number += 1
        return await self.post("/web/messages", {"id": f"message-{self._number}", "text": text, **fields})

    @contextlib.asynccontextmanager
    async def events(self, *, after: str | None = None, conversation: str = "first") -> AsyncIterator[Events]:
        """Follow the events of a conversation."""
        headers = {} if after is None else {"Last-Event-ID": after}
        address = f"/web/events?conversation={conversation}"
        async with self.client.stream("GET", address, headers=headers) as response:
            assert response.status_code == 200, (await response.aread()).decode()
            yield Events(response)


@dataclass(slots=True)
class Site:
    """A web transport that is served."""

    url: str
    storage: Storage
    transport: WebTransport
    worker: Worker
    inbox: Inbox
    llm: Any
    stack: contextlib.AsyncExitStack

    async def context(self) -> AgentContext:
        """Return the only context."""
        query = select(contexts.c.context_keys)
        keys = await self.storage.read(lambda connection: connection.execute(query).scalar_one())
        return await AgentContext.get_or_create(self.storage, keys)

    async def count_events(self) -> int:
        """Return how many events are stored."""
        query = select(func.count()).select_from(events)
        return await self.storage.read(lambda connection: connection.execute(query).scalar_one())

    async def visitor(self, *, is_open: bool = True, **options: Any) -> Visitor:
        """Return a person new, who has opened the page."""
        client = httpx.AsyncClient(base_url=self.url, timeout=TIMEOUT_SECONDS, verify=False, **options)
        visitor = Visitor(await self.stack.enter_async_context(client))
        if is_open:
            assert (await visitor.open()).status_code == 200
        return visitor


@contextlib.asynccontextmanager
async def served(transport: WebTransport, routes: list[BaseRoute], listener: socket.socket) -> AsyncIterator[None]:
    """Serve a transport and what is served besides; its streams end first."""
    handlers = dict(transport.exception_handlers)
    async with web_server([*transport.routes, *routes], listener, exception_handlers=handlers):
        try:
            yield
        finally:
            await transport.stop()


@contextlib.asynccontextmanager
async def running_site(
    storage_url: str,
    script: Any = echo,
    *,
    tools: Any = (),
    toolsets: Any = (),
    llm: Any = None,
    works: bool = True,
    approval_lasts: timedelta | None = None,
    people: PeopleAccess | None = None,
    budgets: Budgets | None = None,
    clock: Callable[[], datetime] | None = None,
    routes: list[BaseRoute] | None = None,
    pace: StreamPace = PACE,
    **access: Any,
) -> AsyncIterator[Site]:
    """Serve the web transport.

    Args:
        works: Whether this process answers, too.
        people: Who is let in; by default everybody is.
        budgets: How much may be used; by default as much as one likes.
        clock: Of these budgets and of turns.
        routes: Served besides.
        pace: How often an open page is told something unasked.
    """
    llm = llm or ScriptedChatLLM(script)
    async with contextlib.AsyncExitStack() as stack:
        storage = await stack.enter_async_context(Storage.open(storage_url, limits=PATIENT))
        service = AgentService(FunctionsBasedAgent(tools=tools, toolsets=toolsets, llm=llm, search_k=0), storage)
        if approval_lasts is not None:
            service.options = replace(service.options, approval_lasts=approval_lasts)
        if people is not None:
            service.options = replace(service.options, access=people)
        if budgets is not None:
            service.options = replace(service.options, budgets=budgets, clock=clock or service.options.clock)
        transport = WebTransport(
            access=PageAccess(**access), service=service, asker=lambda: Replayer(service, SETTINGS), pace=pace
        )
        worker = Worker(storage, service.options, [transport], commands=service.commands)
        inbox = Inbox(storage, worker.wake, access=people)
        if works:
            await worker.start()
            stack.push_async_callback(worker.stop)
        await transport.start(inbox, storage)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        await stack.enter_async_context(served(transport, routes or [], listener))
        async with contextlib.AsyncExitStack() as visitors:
            yield Site(url, storage, transport, worker, inbox, llm, visitors)


RunSite = Callable[..., contextlib.AbstractAsyncContextManager[Site]]


@pytest.fixture
def run_site(sqlite_url: str) -> RunSite:
    """Serves the web transport on an empty SQLite file."""
    return lambda *args, **options: running_site(options.pop("storage_url", sqlite_url), *args, **options)


@pytest.fixture
async def site(run_site: RunSite) -> AsyncIterator[Site]:
    """The web transport on this machine, without a token, with a model that echoes."""
    async with run_site() as running:
        yield running


@pytest.fixture
def typist() -> Typist:
    return Typist()
