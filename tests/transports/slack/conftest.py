"""A bot on its real wires: the Slack stand-in, the real Bolt and SDK, a real worker and storage, a scripted model."""

import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from standins.clocks import fast_pace, sweep_seconds
from standins.models import Typist, echo
from standins.slack_api import SlackApi
from standins.web_server import web_server

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.people.access import Access
from botservice.turns.inbox import Inbox
from botservice.turns.run_options import Clock
from botservice.turns.worker import Worker
from transports.slack.app import SlackTransport
from transports.slack.context import Manners, SlackTempo

QUICK = SlackTempo(first_sign=0.01, first_text=0.02, append=0.01, edit=0.01)
# Whether an answer that is there at once beats the first sign of life depends on the machine.
NEVER = SlackTempo(first_sign=3600.0)


@dataclass(slots=True)
class Bot:
    """A bot that runs."""

    api: SlackApi
    transport: SlackTransport
    storage: Storage
    worker: Worker
    inbox: Inbox
    llm: Any
    url: str


RunBot = Callable[..., contextlib.AbstractAsyncContextManager[Bot]]


@pytest.fixture
def api() -> Iterator[SlackApi]:
    with SlackApi.running() as server:
        yield server


@pytest.fixture
def typist() -> Typist:
    return Typist()


@contextlib.asynccontextmanager
async def running_bot(
    api: SlackApi,
    storage: Storage,
    script: Any = echo,
    *,
    tools: Any = (),
    knowledge: Any = None,
    way: str = "http",
    access: Access | None = None,
    approval_lasts: timedelta | None = None,
    clock: Clock | None = None,
    gate: Any = None,
    **options: Any,
) -> AsyncIterator[Bot]:
    llm = script if isinstance(script, Typist) else ScriptedChatLLM(script)
    service = AgentService(
        FunctionsBasedAgent(tools=tools, llm=llm, search_k=0, knowledge=knowledge), storage, clock=clock
    )
    service.options = replace(service.options, gate=gate)
    if access is not None:
        service.options = replace(service.options, access=access)
    if approval_lasts is not None:
        service.options = replace(service.options, approval_lasts=approval_lasts)
    options.setdefault("token", api.bot_token)
    options.setdefault("pace", fast_pace())
    options.setdefault("manners", Manners(tempo=QUICK if isinstance(script, Typist) else NEVER))
    if way == "http":
        options.setdefault("signing_secret", api.signing_secret)
    else:
        options.setdefault("app_token", api.app_token)
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        transport = SlackTransport(api_url=api.url, **options)
        stack.push_async_callback(transport.close)
        await stack.enter_async_context(web_server(transport.routes, listener))
        worker = Worker(
            storage, service.options, [transport], commands=service.commands, sweep_seconds=sweep_seconds(clock)
        )
        inbox = Inbox(storage, worker.wake, access=access, clock=clock)
        await worker.start()
        stack.push_async_callback(worker.stop, grace_seconds=5)
        await transport.start(inbox, storage)
        stack.push_async_callback(transport.stop)
        api.events.http_url = f"{url}/slack/events" if way == "http" else None
        yield Bot(api, transport, storage, worker, inbox, llm, url)


@pytest.fixture
def bot_on(sqlite_storage: Storage) -> RunBot:
    """Return what runs a bot against a stand-in while a block runs."""
    return lambda api, script=echo, **options: running_bot(api, sqlite_storage, script, **options)


@pytest.fixture
def bot_on_both(storage: Storage) -> RunBot:
    """Return what runs a bot on either database."""
    return lambda api, script=echo, **options: running_bot(api, storage, script, **options)
