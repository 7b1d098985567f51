"""A bot on its real wires: the Bot API stand-in, the real client, a real worker and storage, a scripted model."""

import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from standins.bot_api import BotApi
from standins.bot_api.entities import Strictness
from standins.clocks import fast_pace, sweep_seconds
from standins.models import Typist, echo
from standins.telegram_menus import note_menus_as_set
from standins.web_server import web_server

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.turns.inbox import Inbox
from botservice.turns.run_options import Clock
from botservice.turns.worker import Worker
from transports.telegram.app import TelegramTransport

Script = Callable[[list[Any]], Any]


@pytest.fixture
def typist() -> Typist:
    return Typist()


@dataclass(slots=True)
class Bot:
    """A bot that runs."""

    api: BotApi
    transport: TelegramTransport
    storage: Storage
    worker: Worker
    inbox: Inbox
    llm: Any


RunBot = Callable[..., contextlib.AbstractAsyncContextManager[Bot]]


@pytest.fixture
def api() -> Iterator[BotApi]:
    with BotApi.running(strict=Strictness(count=True, nesting=True)) as server:
        server.add_private_chat(42)
        yield server


@contextlib.asynccontextmanager
async def running_bot(
    api: BotApi,
    storage: Storage,
    script: Any = echo,
    *,
    tools: Any = (),
    knowledge: Any = None,
    webhook: bool = False,
    access: Access | None = None,
    approval_lasts: timedelta | None = None,
    budgets: Budgets | None = None,
    speaker: Any = None,
    knows_menus: bool = True,
    clock: Clock | None = None,
    gate: Any = None,
    **options: Any,
) -> AsyncIterator[Bot]:
    llm = script if hasattr(script, "chat") else ScriptedChatLLM(script)
    service = AgentService(
        FunctionsBasedAgent(tools=tools, llm=llm, search_k=0, knowledge=knowledge), storage, clock=clock
    )
    if access is not None:
        service.options = replace(service.options, access=access)
    if budgets is not None:
        service.options = replace(service.options, budgets=budgets)
    service.options = replace(service.options, speaker=speaker, gate=gate)
    if approval_lasts is not None:
        service.options = replace(service.options, approval_lasts=approval_lasts)
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        if webhook:
            options.setdefault("public_url", f"http://127.0.0.1:{listener.getsockname()[1]}")
        options.setdefault("pace", fast_pace())
        transport = TelegramTransport(token=api.token, api_url=api.url, **options)
        stack.push_async_callback(transport.close)
        if webhook:
            await stack.enter_async_context(web_server(transport.routes, listener))
        look = sweep_seconds(clock)
        worker = Worker(storage, service.options, [transport], commands=service.commands, sweep_seconds=look)
        inbox = Inbox(storage, worker.wake, access=access, clock=clock)
        if knows_menus:
            await note_menus_as_set(storage, api.token)
        await worker.start()
        stack.push_async_callback(worker.stop, grace_seconds=5)
        await transport.start(inbox, storage)
        stack.push_async_callback(transport.stop)
        yield Bot(api, transport, storage, worker, inbox, llm)


@pytest.fixture
def bot_on(sqlite_storage: Storage) -> RunBot:
    """Return what runs a bot against a stand-in while a block runs."""
    return lambda api, script=echo, **options: running_bot(api, sqlite_storage, script, **options)


@pytest.fixture
def bot_in() -> RunBot:
    """Return what runs a bot in any storage."""
    return running_bot


@pytest.fixture
def bot_on_both(storage: Storage) -> RunBot:
    """Return what runs a bot on either database."""
    return lambda api, script=echo, **options: running_bot(api, storage, script, **options)
