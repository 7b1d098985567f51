"""Rows to write, and a way to make several writes one batch."""

import asyncio
import threading

from sqlalchemy import select, text

from botservice.storage.tables.conversations import contexts

INSERT = "INSERT INTO contexts (key_hash, context_keys, metadata, created_at) VALUES (:name, '{}', '{}', 0)"


def add(name):
    return lambda connection: connection.execute(text(INSERT), {"name": name})


async def names(storage):
    query = select(contexts.c.key_hash).order_by(contexts.c.id)
    return await storage.read(lambda connection: list(connection.execute(query).scalars()))


def traced(storage):
    """Return the statements that the writer of SQLite runs from now on, each as it begins."""
    seen = []
    storage._writer.connection.held.connection.dbapi_connection.set_trace_callback(seen.append)
    return seen


class Held:
    """Keeps the writer busy, so that what is issued meanwhile becomes one batch."""

    def __init__(self, storage):
        self.storage = storage
        self.gate = threading.Event()
        self.entered = asyncio.Event()

    async def __aenter__(self):
        loop = asyncio.get_running_loop()

        def hold(connection):
            loop.call_soon_threadsafe(self.entered.set)
            assert self.gate.wait(60)

        self.task = asyncio.ensure_future(self.storage.write(hold))
        await self.entered.wait()
        return self

    async def __aexit__(self, *_):
        self.gate.set()
        await self.task


async def issue(storage, operations, **options):
    """Queue operations in their order and return their tasks."""
    tasks = [asyncio.ensure_future(storage.write(operation, **options)) for operation in operations]
    await asyncio.sleep(0)
    return tasks
