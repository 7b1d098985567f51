"""Processes that do the same at the same moment."""

import asyncio
from collections.abc import Callable
from typing import Any

from crash.warm import processes

from botservice import AgentContext, Storage

_SECONDS = 60


async def run_together(count: int, work: Callable[..., None], *arguments: Any) -> None:
    """Have so many processes begin work at once, and return when all have done it without an error."""
    begin = processes.Barrier(count)
    started = [processes.Process(target=work, args=(begin, *arguments)) for _ in range(count)]
    try:
        for each in started:
            each.start()
        for each in started:
            await asyncio.to_thread(each.join, _SECONDS)
        assert [each.exitcode for each in started] == [0] * count
    finally:
        for each in started:
            each.kill()


def say_first(begin: Any, url: str, chats: int) -> None:
    """Say something in chats that may be new."""

    async def say() -> None:
        async with Storage.open(url) as storage:
            await asyncio.to_thread(begin.wait, _SECONDS)
            for number in range(chats):
                context = await AgentContext.get_or_create(storage, {"chat_id": str(number)})
                await context.chat_history.append_user_message("first")

    asyncio.run(say())


def open_new(begin: Any, url: str) -> None:
    """Open a database that may be empty, and write the first row of its own."""

    async def write() -> None:
        begin.wait(_SECONDS)
        async with Storage.open(url, migrate=True) as storage:
            context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
            assert context.id == 1

    asyncio.run(write())
