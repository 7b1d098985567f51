"""A Telegram bot under attack: the stand-in, the real client, a real worker and storage, a scripted model."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from standins.bot_api import BotApi
from standins.clocks import fast_pace
from standins.models import echo
from standins.telegram_menus import note_menus_as_set

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.turns.inbox import Inbox
from botservice.turns.worker import Worker
from transports.telegram.app import TelegramTransport


@contextlib.asynccontextmanager
async def running(
    api: BotApi, storage: Storage, script: Any = echo, *, grace_seconds: float = 5.0, **options: Any
) -> AsyncIterator[ScriptedChatLLM]:
    """Run a bot while a block runs; give its model.

    Args:
        grace_seconds: How long what is under way may go on at the end.
        options: Of the transport, or `budgets` and `access` of the service.
    """
    llm = ScriptedChatLLM(script)
    service = AgentService(FunctionsBasedAgent(llm=llm, search_k=0), storage)
    of_service = {name: options.pop(name) for name in ("budgets", "access") if name in options}
    service.options = replace(service.options, **of_service)
    transport = TelegramTransport(token=api.token, api_url=api.url, pace=fast_pace(), **options)
    worker = Worker(storage, service.options, [transport], commands=service.commands)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        await note_menus_as_set(storage, api.token)
        await worker.start()
        stack.push_async_callback(worker.stop, grace_seconds=grace_seconds)
        await transport.start(Inbox(storage, worker.wake), storage)
        stack.push_async_callback(transport.stop)
        yield llm
