"""A message is shown once, also where the database cannot take in that it was: the process that sent it knows."""

import asyncio
import contextlib
import sqlite3
from dataclasses import replace

import pytest
from crash.watching import rows
from sqlalchemy import select
from turns.messenger import Messenger, office

from botservice import AgentContext, Storage, StorageUnavailable
from botservice.storage.limits import StorageLimits
from botservice.storage.tables.conversations import deliveries
from botservice.turns.outbox import Outbox, SendResult

UNAVAILABLE = "worker.storage_unavailable"
CUT_OFF = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = 'botservice'"
)


class Disturbed(Messenger):
    """Has the database disturbed while the platform takes the first message."""

    def __init__(self, disturb):
        super().__init__()
        self.disturb = disturb

    async def send(self, context_keys, delivery):
        external_id = await super().send(context_keys, delivery)
        if len(self.tries) == 1:
            await self.disturb()
        return external_id


def is_of_a_conversation(record):
    """Return whether it says that the work on a conversation ended because the database did not take a write."""
    return record.message == UNAVAILABLE and hasattr(record, "context")


@pytest.mark.parametrize("parts", [["one"], ["one", "two"]])
async def test_what_was_sent_while_a_file_is_locked_is_not_sent_again(tmp_path, parts, caplog):
    path = tmp_path / "bot.db"
    other = sqlite3.connect(path, isolation_level=None)

    async def lock():
        other.execute("BEGIN IMMEDIATE")

    async def could_not_be_stored():
        async with asyncio.timeout(60):
            while not any(map(is_of_a_conversation, caplog.records)):  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0.01)

    async with (
        Storage.open(f"sqlite:///{path}", limits=StorageLimits(lock=0.05)) as storage,
        office(storage, ["|".join(parts), "again"], messenger=Disturbed(lock)) as bot,
    ):
        await bot.write("hi", order=1)
        await could_not_be_stored()
        other.close()
        await bot.messenger.shows("1", *parts)
        await bot.write("and now?", order=2)
        await bot.messenger.shows("1", *parts, "again")


async def delivered(storage):
    """Return when everything is stored as delivered."""
    statuses = select(deliveries.c.status)
    async with asyncio.timeout(60):
        while await storage.read(lambda connection: set(connection.execute(statuses).scalars())) != {"delivered"}:  # noqa: ASYNC110 - a database tells nobody
            await asyncio.sleep(0.01)


async def test_what_was_noted_as_sent_after_it_was_read_as_owed_is_not_sent_again(storage_url):
    """A process that has lost the conversation notes its message late, between another one's reading and sending it."""
    read = []

    class Read(Messenger):
        async def send(self, context_keys, delivery):
            read.append((context_keys, delivery))
            return await super().send(context_keys, delivery)

    messenger = Read()
    async with Storage.open(storage_url) as storage:
        async with office(storage, ["one"], messenger=messenger) as bot:
            await bot.write("hi", order=1)
            await messenger.shows("1", "one")
            await delivered(storage)
        [(context_keys, delivery)] = read
        context = await AgentContext.get_or_create(storage, context_keys)
        claim = await storage.claims.try_claim(context.id)
        outbox = Outbox(storage, {messenger.name: messenger}, storage.now)
        result = await outbox.send(context_keys, replace(delivery, attempts=1), claim)
        await storage.claims.release(claim)
    assert result is SendResult.OVER
    assert messenger.visible["1"] == ["one"]


async def until_accepted(bot, text, order):
    """Hand a message in as a platform does: again, where it was refused because its session ended just then."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(StorageUnavailable):
                await bot.write(text, order=order, key=text)
                return


async def test_what_was_sent_while_sessions_of_postgres_end_is_sent_by_no_process_again(postgres_url):
    async def cut():
        await asyncio.to_thread(rows, postgres_url, CUT_OFF)

    messenger = Disturbed(cut)
    async with (
        Storage.open(postgres_url) as storage,
        Storage.open(postgres_url) as beside,
        office(storage, ["one", "again"], messenger=messenger) as bot,
        office(beside, ["one", "again"], messenger=messenger),
    ):
        await bot.write("hi", order=1)
        await messenger.shows("1", "one")
        await until_accepted(bot, "and now?", order=2)
        await messenger.until(lambda: len(messenger.visible["1"]) > 1)
        assert messenger.tries.count("one") == 1


async def test_a_stream_that_opened_while_sessions_of_postgres_ended_is_replaced_by_the_answer(postgres_url):
    class Streaming:
        """Opens a visible message with the first words of an answer, and has the sessions cut right then."""

        def __init__(self, messenger, context_keys, record):
            self._messenger, self._keys, self._record = messenger, context_keys, record
            self._opening = asyncio.get_running_loop().create_task(self._open())

        async def _open(self):
            known = await self._record.opening()
            if known is None:
                external_id = await self._messenger.show(self._keys["chat_id"], "one …")
                await asyncio.to_thread(rows, postgres_url, CUT_OFF)
                await self._record.opened(external_id)

        async def close(self):
            await asyncio.gather(self._opening, return_exceptions=True)

        def on_text(self, piece):
            """Show nothing more."""

        on_activity = on_progress = on_text

        def on_restart(self):
            """Show nothing more."""

    messenger = Messenger()
    messenger.make_live = Streaming
    async with Storage.open(postgres_url) as storage, office(storage, ["one", "one"], messenger=messenger) as bot:
        await bot.write("hi", order=1)
        await messenger.shows("1", "one")
