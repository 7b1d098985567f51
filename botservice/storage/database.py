"""Storage: one database, its writer and its readers."""

import asyncio
import logging
import shutil
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from botservice.errors import StorageUnavailable
from botservice.storage import schema
from botservice.storage.claims import AdvisoryClaims, Claims, LocalClaims, SharedFile
from botservice.storage.engines import READ_CONNECTIONS, create_read_engine, create_writer_engine
from botservice.storage.url import DatabaseUrl
from botservice.storage.writer import Fence, SortKey, Writer

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Storage:
    """Everything that is kept, in one database.

    Open it with `async with Storage.open("sqlite:///bot.db") as storage`. Reads and writes are functions of an
    SQLAlchemy connection: reads run side by side in threads, writes one after the other in one thread.

    Attributes:
        claims: Who works on which context.
    """

    claims: Claims

    def __init__(self, where: DatabaseUrl, *, migrates: bool) -> None:
        self.where = where
        self._migrates = migrates
        self._temporary: Path | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._read_engine: Engine
        self._writer: Writer
        self._writer_engine: Engine

    @classmethod
    def open(cls, url: str, *, migrate: bool | None = None) -> "Storage":
        """Return the storage at url, to be used with `async with`.

        Args:
            url: `sqlite:///file.db`, `sqlite://` for one that ends with the process, or `postgresql://…`.
            migrate: Whether to bring the tables up to date; by default an embedded SQLite is, Postgres is not.

        Raises:
            SettingsError: url is no address of a database.
            SchemaMismatch: the tables are older or newer than this program (when it is entered).
            StorageUnavailable: the database does not answer, or cannot be written (when it is entered).
        """
        where = DatabaseUrl.parse(url)
        return cls(where, migrates=where.is_sqlite if migrate is None else migrate)

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._open)
        except (OperationalError, PermissionError) as error:
            reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
            raise StorageUnavailable(f"cannot open the database {self.name}: {reason}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    @property
    def name(self) -> str:
        """The database's address without its password."""
        return self.where.url.render_as_string(hide_password=True).replace("postgresql+psycopg", "postgresql")

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is embedded."""
        return self.where.is_sqlite

    @property
    def is_open(self) -> bool:
        """Whether it can be read and written."""
        return self._readers is not None

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Return what query returns, run in a thread on one consistent view of the database.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        if self._readers is None:
            raise StorageUnavailable("the storage is not open")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, query)

    async def write(
        self, operation: Callable[[Connection], T], *, fence: Fence | None = None, sort_key: SortKey = ()
    ) -> T:
        """Return what operation returns, once it is committed (see `Writer.write`)."""
        if self._readers is None:
            raise StorageUnavailable("the storage is not open")
        return await self._writer.write(operation, fence=fence, sort_key=sort_key)

    async def ping(self) -> None:
        """Return if the database can be read and written.

        Raises:
            StorageUnavailable: it cannot.
        """
        await self.read(lambda connection: connection.execute(text("SELECT 1")).scalar_one())
        await self.write(lambda connection: connection.execute(text("SELECT 1")).scalar_one())

    async def close(self) -> None:
        """Commit what is waiting, give every claim back and disconnect."""
        readers, self._readers = self._readers, None
        if readers is None:
            return
        await asyncio.to_thread(self._writer.close)
        await self.claims.close()
        await asyncio.to_thread(readers.shutdown)
        self._read_engine.dispose()
        self._writer_engine.dispose()
        if self._temporary is not None:
            await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)

    def _open(self) -> None:
        if self.where.is_memory:
            self._temporary = Path(tempfile.mkdtemp(prefix="botservice-"))
            path = self._temporary / "memory.db"
            self.where = replace(self.where, url=self.where.url.set(database=str(path)), path=path)
        if self.where.path is not None and not self.where.path.parent.is_dir():
            raise StorageUnavailable(f"cannot open the database {self.name}: its folder does not exist")
        self._read_engine = create_read_engine(self.where)
        with self._read_engine.connect() as connection:
            version = schema.read_version(connection)
        if self._migrates and version != schema.SCHEMA_VERSION:
            version = schema.migrate(self.where)
        schema.check_version(version, remedy="run `botservice migrate`")
        self._writer_engine = create_writer_engine(self.where)
        self._writer = Writer(self._writer_engine, prepare=None if self.is_sqlite else _prepare_postgres)
        self._writer.start()
        self.claims = (
            LocalClaims(SharedFile.at(self.where.path))
            if self.where.path is not None
            else AdvisoryClaims(self._writer)
        )
        self._readers = ThreadPoolExecutor(READ_CONNECTIONS, thread_name_prefix="botservice-reader")

    def _read(self, query: Callable[[Connection], T]) -> T:
        try:
            with self._read_engine.connect() as connection:
                return query(connection)
        except (OperationalError, PoolTimeout) as error:
            raise self._unavailable(error) from error
        except DBAPIError as error:
            if error.connection_invalidated:
                raise self._unavailable(error) from error
            raise

    def _unavailable(self, error: Exception) -> StorageUnavailable:
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        return StorageUnavailable(f"the database {self.name} does not answer: {reason}")


def _prepare_postgres(connection: Connection) -> None:
    """Let Postgres end the session, and with it the claims, of a process that hangs (Postgres manual, 20.11)."""
    with connection.begin():
        connection.exec_driver_sql("SET idle_session_timeout = '4s'")
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = '4s'")
