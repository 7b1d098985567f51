"""Storage: one database, its writer and its readers."""

import asyncio
import contextlib
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import Connection as Connection  # noqa: PLC0414 - packages take it from here
from sqlalchemy import Engine, text
from sqlalchemy import Row as Row  # noqa: PLC0414
from sqlalchemy.exc import IntegrityError as IntegrityError  # noqa: PLC0414
from sqlalchemy.exc import SQLAlchemyError as SQLAlchemyError  # noqa: PLC0414

from botservice.core.background_task import background_task
from botservice.core.errors import SchemaMismatch, StorageError, StorageUnavailable, UnsuitableDatabase
from botservice.core.progress import Progress, unwatched
from botservice.storage import schema, transitions
from botservice.storage.activity import Activity
from botservice.storage.blobs import sweep_files, with_cipher
from botservice.storage.claims import Claim, Claims, LocalClaims, SharedFile
from botservice.storage.engines import (
    READ_CONNECTIONS,
    count_long_reads,
    create_read_engine,
    create_writer_engine,
    make_renewable,
    prepare_postgres,
    shorten_log,
)
from botservice.storage.failures import as_unavailable, check_writable
from botservice.storage.limits import StorageLimits
from botservice.storage.postgres_replicas import AdvisoryClaims, Hear, Listener
from botservice.storage.postgres_sessions import check_sessions
from botservice.storage.readers import Readers
from botservice.storage.sqlite_files import make_private
from botservice.storage.sqlite_scrubbing import PATIENCE_SECONDS, Scrubber, vacuum_file
from botservice.storage.url import DatabaseUrl
from botservice.storage.writer import Fence, SortKey, Writer

if TYPE_CHECKING:
    from botservice.storage.encryption import Cipher

S = TypeVar("S")
T = TypeVar("T")

_MOST_QUESTIONS = 4
_REFUSED_SECONDS = 5.0  # between two tries of a database that has refused a write
_REMEDY = "run `botservice migrate`"


class Storage:
    """The database with everything that is stored.

    Open it with `async with Storage.open("sqlite:///bot.db") as storage`. Reads and writes are functions of an
    SQLAlchemy connection: reads run in parallel threads, writes one after the other in one thread.

    Attributes:
        claims: The claims on contexts.
        activity: Counts the work in progress.
        is_sqlite: Whether the database is SQLite.
    """

    claims: Claims

    def __init__(
        self,
        where: DatabaseUrl,
        *,
        migrates: bool,
        limits: StorageLimits,
        cipher: "Cipher | None" = None,
        records_transitions: bool = False,
    ) -> None:
        self.where = where
        self.is_sqlite = where.is_sqlite
        self._cipher = cipher
        self._migrates = migrates
        self._records_transitions = records_transitions
        self._limits = limits
        self._readers: Readers | None = None
        self._long_readers: Readers
        self._scrubber: Scrubber | None = None
        self._writes_tried_at: float | None = None
        self._refused: Future[UnsuitableDatabase] = Future()
        rest = None if self.is_sqlite else limits.rest
        self.activity = Activity(rest, limits.awake, lambda: self.is_open and self.claims.is_working)
        self._shared: SharedFile
        self._read_engine: Engine
        self._writer: Writer
        self._undo: contextlib.ExitStack

    @classmethod
    def open(
        cls,
        url: str,
        *,
        migrate: bool | None = None,
        limits: StorageLimits = StorageLimits(),  # noqa: B008 - frozen
        encryption_key: str | None = None,
        records_transitions: bool = False,
    ) -> "Storage":
        """Create the storage at url; use it with `async with`.

        Args:
            url: `sqlite:///file.db`, `sqlite://` for a database in memory, or `postgresql://…`.
            migrate: Whether to update the tables; by default only on SQLite.
            limits: The time limits.
            encryption_key: The key that encrypts files, in the format of ENCRYPTION_KEY.
            records_transitions: Whether the database records each change of a state (see `transitions.py`).

        Raises:
            SettingsError: url is not an address of a database, or encryption_key is too short.
            DatabaseInUse: another process works on this SQLite file, which is not up to date (when it is entered).
            SchemaMismatch: the tables are older than this program, or too new for it, or hold a part of a copy (when it
                is entered).
            UnsuitableDatabase: a pooler stands before Postgres that does not keep sessions or leaves out the schema, or
                its encoding is not UTF-8 (when it is entered).
            StorageUnavailable: the database does not answer, or cannot be written (when it is entered).
        """
        where = DatabaseUrl.parse(url)
        migrates = where.is_sqlite if migrate is None else migrate
        if encryption_key is None:
            return cls(where, migrates=migrates, limits=limits, records_transitions=records_transitions)
        from botservice.storage.encryption import Cipher

        cipher = Cipher(encryption_key)
        return cls(where, migrates=migrates, limits=limits, cipher=cipher, records_transitions=records_transitions)

    def migrate(self, progress: Progress = unwatched) -> None:
        """Update the tables in this thread, so that Ctrl+C stops it; open the storage after that.

        Raises:
            BotServiceError: the same errors as when it is entered.
        """
        if self.where.is_memory:
            return
        try:
            self._check_file()
            if self.where.path is not None:
                make_private(self.where.path)
            else:
                schema.make_schema(self.where, self._limits)
                self._check_sessions()
            schema.migrate(self.where, self._limits, progress)
            self._set_recording()
        except (SQLAlchemyError, OSError) as error:
            raise as_unavailable(error, f"cannot open the database {self.name}") from error

    def _check_sessions(self) -> None:
        engine = create_read_engine(self.where, self._limits)
        try:
            check_sessions(engine)
        finally:
            engine.dispose()

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._open)
        except (SQLAlchemyError, OSError) as error:
            raise as_unavailable(error, f"cannot open the database {self.name}") from error
        if self._migrates or not self.is_sqlite:  # otherwise it may be a file that can only be read
            try:
                await self.ping()
            except BaseException as error:
                await self.close()
                if isinstance(error, StorageUnavailable) and not isinstance(error, UnsuitableDatabase):
                    raise StorageUnavailable(f"cannot open the database {self.name}: {error}") from error
                raise
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
        return self.where.name

    @property
    def is_open(self) -> bool:
        """Whether it can be read and written."""
        return self._readers is not None

    async def read(self, query: Callable[[Connection], T], *, is_long: bool = False, is_short: bool | None = None) -> T:
        """Run a query in a thread on one consistent view of the database, and return its result.

        Args:
            is_short: Deprecated since 1.4.0, without effect.
            is_long: Whether it may take seconds, as what grows with a chat or with the database does: it waits for its
                like, and no turn waits for it.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        if is_short is not None:
            warnings.warn("Storage.read takes is_short without effect: leave it out", DeprecationWarning, stacklevel=2)
        readers = self._readers
        if readers is None:
            raise StorageUnavailable("the storage is not open")
        self.activity.note()
        try:
            if is_long:
                return await self._long_readers.read(query)
            return await readers.read(query)
        except UnsuitableDatabase as error:
            self._refuse(error)
            raise

    async def write(
        self,
        operation: Callable[[Connection], T],
        *,
        fence: Fence | None = None,
        sort_key: SortKey = (),
        is_told: bool = True,
    ) -> T:
        """Run a write, and return its result once it is committed (see `Writer.issue`).

        Raises:
            ClaimLost: fence no longer holds.
            StorageUnavailable: the database did not accept it.
        """
        return await self.issue(operation, fence=fence, sort_key=sort_key, is_told=is_told)

    def issue(self, operation: Callable[[Connection], T], **how: Any) -> "asyncio.Future[T]":
        """Issue a write and return its future (see `Writer.issue`)."""
        if self._readers is None:
            raise StorageUnavailable("the storage is not open")
        self.activity.note()
        return self._writer.issue(operation, **how)

    def issue_for(
        self, subject: S, operation: Callable[[Connection, Sequence[S]], Sequence[T]], **how: Any
    ) -> "asyncio.Future[T]":
        """Issue a write that is done once for all subjects of a commit (see `Writer.issue`).

        Args:
            operation: A function of its own, the same object each time: those that share it are done together.
        """
        if self._readers is None:
            raise StorageUnavailable("the storage is not open")
        self.activity.note()
        return self._writer.issue(operation, subject=subject, **how)

    def now(self) -> datetime:
        """Get the current time, aware: by the clock of the Postgres server, which all replicas share."""
        return datetime.now(UTC) if self.is_sqlite or not self.is_open else self._writer.connection.clock.now()

    async def confirm(self, claim: Claim) -> None:
        """Check that a claim is held now. If the last check is too old, the database is queried.

        A process that hung or lost its connection cannot know by itself that another one has taken over.

        Raises:
            ClaimLost: the claim is no longer held.
            StorageUnavailable: the database does not answer.
        """
        for _ in range(_MOST_QUESTIONS):
            claim.check()
            if self.is_sqlite or self._writer.connection.is_fresh:
                return
            await self.write(lambda _: None, fence=claim)
        raise StorageUnavailable("the database answers too late to know who has a conversation")

    async def note_done(self, claim: Claim, thing: str, name: str, what: str) -> None:
        """Record, where transitions are recorded, that something is about to be done that changes no row.

        Raises:
            ClaimLost: the conversation is not this process's any more.
            StorageUnavailable: the database did not accept it.
        """
        if self._records_transitions:
            await self.write(
                lambda connection: transitions.note_done(connection, claim.context_id, thing, name, what), fence=claim
            )

    @property
    def refusal(self) -> UnsuitableDatabase | None:
        """Why this database cannot be used, if that is known."""
        return self._refused.result() if self._refused.done() else None

    async def refused(self) -> UnsuitableDatabase:
        """Wait until it turns out that this database cannot be used, and return why."""
        return await asyncio.shield(asyncio.wrap_future(self._refused))

    def _refuse(self, error: UnsuitableDatabase) -> None:
        with contextlib.suppress(InvalidStateError):  # another thread has found out, too
            self._refused.set_result(error)

    async def ping(self) -> None:
        """Check that the database can be read and written.

        Raises:
            StorageUnavailable: it cannot be read or written.
        """
        await self.read(lambda connection: connection.execute(text("SELECT 1")).scalar_one())
        await self.write(check_writable)

    async def check_writes(self, *, is_doubted: bool = False) -> None:
        """Check that the database accepts writes. It is tested at first, and after a refused write.

        Args:
            is_doubted: Whether to test it in any case.

        Raises:
            StorageError: it does not, or did not seconds ago; the message has the reason of the database.
        """
        tried_at = self._writes_tried_at
        if tried_at is not None and not is_doubted:
            if self._writer.refusal is None:
                return
            if time.monotonic() - tried_at < _REFUSED_SECONDS:
                raise StorageUnavailable(f"the database refuses writes: {self._writer.refusal}")
        self._writes_tried_at = time.monotonic()
        await self.write(schema.try_writing)
        self._writer.refusal = None

    async def listen(self, hear: Hear) -> None:
        """Call hear with the notifications of other processes on the same Postgres, until cancelled.

        Notifications may be lost while the database is unavailable.
        """
        if not self.is_sqlite:
            engine = create_writer_engine(self.where, self._limits)
            listener = Listener(engine, lambda session: session == self._writer.connection.id)
            while True:
                async with background_task(listener.run(hear), name="botservice-listener"):
                    await self.activity.until_resting()
                await self.activity.pause(0.0)

    async def scrub(self, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
        """Remove deleted bytes from the files; return whether they are removed, or will be in the background.

        Postgres removes them by autovacuum, without waiting for it here.
        """
        await sweep_files(self)
        return self._scrubber is not None and await self._scrubber.scrub(patience_seconds=patience_seconds)

    def scrub_soon(self) -> None:
        """Remove deleted bytes from the files of SQLite at the next quiet moment."""
        if self._scrubber is not None:
            self._scrubber.soon()

    @property
    def is_quiet(self) -> bool:
        """Whether this process works on no conversation, and nothing waits for its commit."""
        return self._writer.is_settled and not self.claims.is_working

    @property
    def is_scrubbed(self) -> bool:
        """Whether all deleted bytes are removed from the files, if this process knows."""
        return self._scrubber is not None and not self._scrubber.is_due

    async def _vacuum(self, is_unwanted: Callable[[], bool]) -> None:
        error = await self._writer.issue(partial(vacuum_file, is_unwanted=is_unwanted), is_last=True)
        if error is not None:
            raise error

    async def close(self) -> None:
        """Commit waiting writes, give every claim back and disconnect; all of it, even if this is cancelled."""
        if self._readers is not None:
            self._readers = None
            if self._scrubber is not None:
                await self._scrubber.close()
            await asyncio.shield(asyncio.to_thread(self._undo.close))

    def _open(self) -> None:
        if self.is_open:
            raise StorageError(f"the database {self.name} is open already")
        with contextlib.ExitStack() as undo:
            if self.where.is_memory:
                folder = Path(tempfile.mkdtemp(prefix="botservice-"))
                undo.callback(shutil.rmtree, folder, ignore_errors=True)
                path = folder / "memory.db"
                self.where = replace(self.where, url=self.where.url.set(database=str(path)), path=path)
                if self._migrates:  # what the first of a process went through, the others begin with
                    path.write_bytes(schema.blank_file())
            self._check_file()
            if self.where.path is not None:
                self._shared = SharedFile.at(self.where.path)  # from before SQLite opens it
                if self._migrates:
                    make_private(self.where.path)
            if self._migrates and not self.is_sqlite:
                schema.make_schema(self.where, self._limits)
            self._read_engine = with_cipher(create_read_engine(self.where, self._limits), self._cipher)
            undo.callback(self._read_engine.dispose)
            if not self.is_sqlite:
                check_sessions(self._read_engine)
            with self._read_engine.connect() as connection:
                version, oldest = schema.read_version(connection), None
                schema.check_whole(connection)
                if version is not None and version > schema.SCHEMA_VERSION:
                    oldest = schema.read_oldest_compatible(connection)
            if self._migrates and (version is None or version < schema.SCHEMA_VERSION):
                self._read_engine.dispose()  # a conversion waits until it is alone
                schema.migrate(self.where, self._limits)
            else:
                schema.check_version(version, remedy=_REMEDY, oldest_compatible=oldest)
            self._start_writer(undo)
            readers = self._start_readers(undo)
            self._undo = undo.pop_all()
            self._readers = readers

    def _set_recording(self) -> None:
        """Have transitions be recorded, or not any more."""
        change = transitions.start_recording if self._records_transitions else transitions.stop_recording
        engine = create_writer_engine(self.where, self._limits, is_migrating=True)
        try:
            with engine.connect() as connection, connection.begin():
                change(connection)
        finally:
            engine.dispose()

    def _check_file(self) -> None:
        """Refuse a file that opening would make, where it cannot or must not."""
        path = self.where.path
        if path is None:
            return
        if not path.parent.is_dir():
            raise StorageUnavailable(f"cannot open the database {self.name}: its folder does not exist")
        if not self._migrates and not path.exists():
            raise SchemaMismatch(f"there is no database {self.name}: {_REMEDY}, or go to the folder that has it")

    def _start_readers(self, undo: contextlib.ExitStack) -> Readers:
        """Return the readers that turns wait for; the others are started, too."""
        path = self.where.path
        before_long = (lambda: None) if path is None else partial(shorten_log, path)
        is_resting = None if self.is_sqlite or self._limits.rest is None else lambda: self.activity.is_resting
        open_readers = partial(Readers, self._read_engine, name=self.name, is_resting=is_resting)
        long = open_readers(count_long_reads(self.where), before_read=before_long)
        short = open_readers(READ_CONNECTIONS)
        for readers in (long, short):
            undo.callback(readers.close)
        self._long_readers = long
        return short

    def _start_writer(self, undo: contextlib.ExitStack) -> None:
        if self._records_transitions:
            self._set_recording()
        engine = with_cipher(create_writer_engine(self.where, self._limits, holds_locks=True), self._cipher)
        undo.callback(engine.dispose)
        prepare = None if self.is_sqlite else partial(prepare_postgres, limits=self._limits)
        self._writer = Writer(engine, prepare=prepare, limits=self._limits, is_resting=lambda: self.activity.is_resting)
        self._writer.connection.on_refused(self._refuse)
        if not self.is_sqlite:
            # What is read comes from where is written: another server may have taken its place.
            self._writer.connection.on_lost(make_renewable(self._read_engine))
        if self.where.path is not None:
            self.claims = LocalClaims(self._shared, self._writer)
            self._scrubber = Scrubber(self.where.path, self._vacuum, is_quiet=lambda: self.is_quiet)
        else:
            self.claims = AdvisoryClaims(self._writer)
        undo.callback(self.claims.close)
        self._writer.start()
        undo.callback(self._writer.close)
