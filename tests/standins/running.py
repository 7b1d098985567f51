"""Bots on their real wires: a stand-in of the platform, the real client, a real worker, a scripted model."""

import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from botservice import Agent, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.turns.inbox import Inbox
from botservice.turns.run_options import Clock
from botservice.turns.worker import Worker
from standins.clocks import fast_pace, sweep_seconds
from standins.models import Typist, echo
from standins.telegram_menus import note_menus_as_set
from standins.web_server import web_server
from transports.slack.app import SlackTransport
from transports.slack.context import Manners, SlackTempo
from transports.telegram.app import TelegramTransport
from transports.web.app import WebTransport
from transports.web.owner_token import PageAccess as WebAccess


@dataclass(slots=True)
class Running:
    """A bot that runs."""

    transport: Any
    storage: Storage
    worker: Worker
    inbox: Inbox
    llm: Any
    service: AgentService
    url: str


@contextlib.asynccontextmanager
async def telegram_bot(api: Any, storage: Storage, script: Any = echo, **options: Any) -> AsyncIterator[Running]:
    """Run a bot of Telegram that polls a stand-in."""
    clock = options.get("clock")
    async with _running(storage, script, options) as (stack, service, _):
        transport = TelegramTransport(token=api.token, api_url=api.url, pace=fast_pace(), **options)
        await note_menus_as_set(storage, api.token)
        yield await serving(stack, service, transport, "", clock)


@contextlib.asynccontextmanager
async def slack_bot(api: Any, storage: Storage, script: Any = echo, **options: Any) -> AsyncIterator[Running]:
    """Run a bot of Slack that gets a stand-in's events by HTTP."""
    tempo = SlackTempo(first_sign=0.01, first_text=0.02, append=0.01, edit=0.01)
    manners, clock = replace(options.pop("manners", Manners()), tempo=tempo), options.get("clock")
    async with _running(storage, script, options) as (stack, service, listener):
        transport = SlackTransport(
            token=api.bot_token,
            signing_secret=api.signing_secret,
            api_url=api.url,
            manners=manners,
            pace=fast_pace(),
            **options,
        )
        await stack.enter_async_context(web_server(transport.routes, listener))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        running = await serving(stack, service, transport, url, clock)
        api.events.http_url = f"{url}/slack/events"
        yield running


@contextlib.asynccontextmanager
async def web_bot(storage: Storage, script: Any = echo, **options: Any) -> AsyncIterator[Running]:
    """Run a bot in the browser, on this machine."""
    async with _running(storage, script, options) as (stack, service, listener):
        transport = WebTransport(access=WebAccess())
        await stack.enter_async_context(web_server(transport.routes, listener))
        yield await serving(stack, service, transport, f"http://127.0.0.1:{listener.getsockname()[1]}")


@contextlib.asynccontextmanager
async def _running(
    storage: Storage, script: Any, options: dict[str, Any]
) -> AsyncIterator[tuple[contextlib.AsyncExitStack, AgentService, socket.socket]]:
    """Make what answers; what is not the transport's is taken out of options."""
    llm = script if isinstance(script, Typist) else ScriptedChatLLM(script)
    agent: Agent = FunctionsBasedAgent(tools=options.pop("tools", ()), llm=llm, search_k=options.pop("search_k", 0))
    access, budgets, clock = (options.pop(name, None) for name in ("access", "budgets", "clock"))
    service = AgentService(agent, storage, clock=clock)
    service.options = replace(service.options, access=access or Access(), budgets=budgets or Budgets())
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield stack, service, listener


async def serving(
    stack: contextlib.AsyncExitStack, service: AgentService, transport: Any, url: str, clock: Clock | None = None
) -> Running:
    """Have a service answer through a transport, until the stack is left."""
    storage, options = service.storage, service.options
    assert storage is not None
    stack.push_async_callback(transport.close)
    look = sweep_seconds(clock)
    worker = Worker(storage, options, [transport], commands=service.commands, sweep_seconds=look)
    inbox = Inbox(storage, worker.wake, clock=clock)
    await worker.start()
    stack.push_async_callback(worker.stop, grace_seconds=5)
    await transport.start(inbox, storage)
    stack.push_async_callback(transport.stop)
    return Running(transport, storage, worker, inbox, options.agent.llm, service, url)
