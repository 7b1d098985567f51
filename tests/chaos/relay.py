"""A relay on loopback: it spreads connections over several servers, and can be slow, deaf, or cut everything off."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

Address = int | str
"""A port on loopback, or the path of a Unix socket."""


class Relay:
    """Passes bytes on, in a thread of its own.

    Attributes:
        delay_seconds: How long every piece is held up, each way.
        is_deaf: New connections are closed at once.
    """

    def __init__(self, addresses: Callable[[], Sequence[Address]]) -> None:
        self._addresses = addresses
        self._turn = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.delay_seconds = 0.0
        self.is_deaf = False

    @classmethod
    @contextlib.contextmanager
    def running(cls, addresses: Callable[[], Sequence[Address]]) -> Iterator["Relay"]:
        """Run a relay to whatever addresses gives at the moment of each connection."""
        relay = cls(addresses)
        started = threading.Event()
        thread = threading.Thread(target=relay._run, args=(started,), daemon=True)
        thread.start()
        started.wait(10)
        try:
            yield relay
        finally:
            relay._loop.call_soon_threadsafe(relay._loop.stop)
            thread.join(10)

    def cut(self) -> None:
        """Cut every connection off."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        self._cut()
        for task in [*self._tasks, *asyncio.all_tasks(self._loop)]:
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = None if self.is_deaf else await self._connect()
        if there is None:
            writer.transport.abort()
            return
        both = {writer, there[1]}
        self._writers |= both
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(reader, there[1]))
                group.create_task(self._pass_on(there[0], writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        addresses = self._addresses()
        first = next(self._turn)
        for number in range(len(addresses)):
            address = addresses[(first + number) % len(addresses)]
            with contextlib.suppress(OSError):
                if isinstance(address, str):
                    return await asyncio.open_unix_connection(address)
                return await asyncio.open_connection("127.0.0.1", address)
        return None

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            writer.write(piece)
            await writer.drain()
        writer.transport.abort()
        raise ConnectionResetError
