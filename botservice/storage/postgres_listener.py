"""What other processes on the same Postgres say: LISTEN, on a connection of its own.

Nothing relies on it: a process that hears nothing finds out by looking, a little later.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from sqlalchemy import ARRAY, Connection, Engine, Text, bindparam, func, literal_column, select
from sqlalchemy.exc import SQLAlchemyError

from botservice.core.errors import StorageUnavailable

logger = logging.getLogger(__name__)

# Every schema of a database has its own channel. That of "public" is what it has always been, so that an earlier
# release alongside this one is heard.
CHANNEL = (
    "CASE current_schema() WHEN 'public' THEN 'botservice' ELSE 'botservice_' || left(md5(current_schema()), 12) END"
)
_PAYLOAD = func.unnest(bindparam("payloads", type_=ARRAY(Text))).column_valued("payload")
_NOTIFY = select(func.pg_notify(literal_column(CHANNEL), _PAYLOAD))
_PAUSE_SECONDS = 1.0

Hear = Callable[[str], None]
"""Given what was said."""


def notify(connection: Connection, payloads: Sequence[str]) -> None:
    """Tell every listener something, when this transaction commits."""
    if payloads:
        connection.execute(_NOTIFY, {"payloads": payloads})


class Listener:
    """Hears every NOTIFY of other sessions than its own process's."""

    def __init__(self, engine: Engine, is_own: Callable[[int], bool]) -> None:
        """Make a listener.

        Args:
            engine: One without a pool: the connection must not be given to anybody else.
            is_own: Tells from the id of a session whether this process has said it itself.
        """
        self._engine = engine
        self._is_own = is_own
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error

    async def run(self, hear: Hear) -> NoReturn:
        """Give everything that is said to hear, until cancelled; a connection that is lost is made again."""
        while True:
            try:
                connecting = asyncio.ensure_future(asyncio.to_thread(self._connect))
                try:
                    connection = await asyncio.shield(connecting)
                except asyncio.CancelledError:
                    with contextlib.suppress(Exception):  # whatever it was, nobody waits for it any more
                        (await connecting).close()
                    raise
                try:
                    await self._receive_all(connection, hear)
                finally:
                    connection.close()
            except (SQLAlchemyError, StorageUnavailable, self._driver_error, OSError) as error:
                logger.warning("storage.not_listening", extra={"reason": type(error).__name__})
            await asyncio.sleep(_PAUSE_SECONDS)

    def _connect(self) -> Any:
        """Return the driver's own connection, which listens."""
        pooled = self._engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()
        connection.autocommit = True
        [channel] = connection.execute(f"SELECT {CHANNEL}").fetchone()
        connection.execute(f"LISTEN {channel}")
        return connection

    async def _receive_all(self, connection: Any, hear: Hear) -> None:
        loop, said = asyncio.get_running_loop(), asyncio.Event()
        number = connection.fileno()
        loop.add_reader(number, said.set)
        try:
            while True:
                for note in connection.notifies(timeout=0):
                    if not self._is_own(note.pid):
                        hear(note.payload)
                said.clear()
                await said.wait()
        finally:
            loop.remove_reader(number)
