"""An answer takes as little in a chat that has had many as in a new one."""

import asyncio
import sqlite3
import threading
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection
from storage.effort import Efforts
from turns.answered import answer_often
from turns.bots import make_service
from turns.messenger import Messenger, echo, office

from botservice import AgentContext, Author, Storage

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


async def test_an_answer_takes_no_more_after_many_answers_than_after_a_few(sqlite_storage: Storage) -> None:
    efforts, messenger, most = Efforts(sqlite_storage), Messenger(), []
    async with office(sqlite_storage, echo, messenger=messenger) as bot:
        for chat, times in (("few", 250), ("many", 1_000)):
            await bot.write("hello", chat=chat, order=1)
            await messenger.shows(chat, "re: hello")
            context = await AgentContext.get_or_create(sqlite_storage, {"transport": "messenger", "chat_id": chat})
            asker = Author("messenger", "7", "alice")
            await sqlite_storage.write(partial(answer_often, context_id=context.id, asker=asker, times=times, now=NOON))
            efforts.most()
            await bot.write("and now?", chat=chat, order=2)
            await messenger.shows(chat, "re: hello", "re: and now?")
            most.append(max(efforts.most()))
    assert most[1] < 1.5 * most[0]


async def test_a_prompt_takes_no_more_after_many_prompts_than_after_a_few(sqlite_storage: Storage) -> None:
    efforts, taken = Efforts(sqlite_storage), []
    service, _ = make_service(sqlite_storage, lambda _: "hello")
    for chat, times in (("few", 250), ("many", 1_000)):
        context = await AgentContext.get_or_create(sqlite_storage, {"id": chat})
        await service.prompt(context, "hello")
        asker = Author("messenger", "7", "alice")
        await sqlite_storage.write(partial(answer_often, context_id=context.id, asker=asker, times=times, now=NOON))
        efforts.most()
        await service.prompt(context, "and now?")
        taken.append(sum(efforts.reads) + sum(efforts.writes))
    assert taken[1] < 1.5 * taken[0]


async def test_sqlite_plans_no_query_of_a_prompt_anew(sqlite_storage: Storage) -> None:
    planned: set[int] = set()

    def allow(action: int, *_: str | None) -> int:
        planned.add(action)
        return sqlite3.SQLITE_OK

    def note(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        driver.set_authorizer(allow)  # SQLite asks it whenever it plans

    is_held, is_over = threading.Event(), threading.Event()
    held = asyncio.create_task(sqlite_storage.read(lambda _: (is_held.set(), is_over.wait(60))))
    assert await asyncio.to_thread(is_held.wait, 60)  # the other reader reads everything
    await sqlite_storage.read(note)
    await sqlite_storage.write(note)
    service, _ = make_service(sqlite_storage, lambda _: "hello")
    context = await AgentContext.get_or_create(sqlite_storage, {"id": "1"})
    for _ in range(3):
        await service.prompt(context, "hello")
    assert sqlite3.SQLITE_READ in planned
    planned.clear()
    await service.prompt(context, "hello")
    is_over.set()
    await held
    assert planned == {sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_PRAGMA}  # how a transaction begins, and no query
