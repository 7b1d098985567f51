"""The one connection of a process that writes: opened when it is needed, and again where it was lost."""

import contextlib
import logging
import math
import time
from collections.abc import Callable

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from botservice.core.errors import UnsuitableDatabase
from botservice.storage.failures import Failure, check_writable, is_lost_connection, is_read_only
from botservice.storage.limits import StorageLimits
from botservice.storage.postgres_clock import DatabaseClock
from botservice.storage.postgres_sessions import UNMARK, as_unsuitable, is_alien_session
from botservice.telemetry.logs import BACK

logger = logging.getLogger(__name__)

_CLOCK = "SELECT extract(epoch FROM clock_timestamp())"
_LONGEST_WITHOUT_HEARTBEAT = 30.0  # seconds; a writer that always has something to do looks at the clock as well


class WritingConnection:
    """What the writer's thread writes by, and what is known of its session.

    Attributes:
        held: The connection; None before the first write, and where it was lost.
        generation: Grows with every new connection; what an older one held is lost.
        id: What prepare returned for the newest connection: the database's own id of its session.
        clock: What time it is for everybody who writes there; SQLite has none of its own.
        heartbeat_seconds: How often the server is to be asked something; None for never, as on SQLite.
        heard_at: When the server was asked what it last answered.
    """

    def __init__(self, engine: Engine, *, prepare: Callable[[Connection], int] | None, limits: StorageLimits) -> None:
        """Note how a connection is made; prepare runs once on each new one."""
        self._engine = engine
        self._prepare = prepare
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._on_lost: list[Callable[[], None]] = []
        self._on_refused: list[Callable[[UnsuitableDatabase], None]] = []
        self._is_away = False
        self._refusal: UnsuitableDatabase | None = None
        self._looked_at = 0.0
        self._sure_seconds = limits.silence / 2
        self.heartbeat_seconds = None if self._is_sqlite else limits.heartbeat
        self.heard_at = -math.inf
        self.held: Connection | None = None
        self.clock = DatabaseClock()
        self.generation = 0
        self.id: int | None = None

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Have callback called, in the writer's thread, when the connection is lost."""
        self._on_lost.append(callback)

    def on_refused(self, callback: Callable[[UnsuitableDatabase], None]) -> None:
        """Have callback called, in the writer's thread, when the database turns out to be unsuitable."""
        self._on_refused.append(callback)

    @property
    def is_fresh(self) -> bool:
        """Whether the database answered recently enough for the session's locks to be held for sure."""
        return time.monotonic() - self.heard_at < self._sure_seconds

    def open(self) -> Connection:
        """Return the connection, a new one where there is none.

        Raises:
            UnsuitableDatabase: sessions turned out not to last. From then on nothing is written any more.
        """
        if self._refusal is not None:
            raise self._refusal
        if self.held is None:
            connection = self._engine.connect()
            try:
                if self._prepare is not None:
                    self.id = self._prepare(connection)
                    with connection.begin():
                        self._look_at_clock(connection)
            except BaseException:
                connection.close()
                raise
            self.held = connection
            self.generation += 1
            if self._is_away:
                logger.warning(BACK)
            self._is_away = False
        return self.held

    def understand(self, error: BaseException, *, has_begun: bool) -> Failure:
        """Return what an error means, and leave the connection fit for the next transaction."""
        # Where nothing can be written, nobody stays.
        is_gone = is_lost_connection(error) or is_read_only(error) or is_alien_session(error)
        is_lost = self.held is None or is_gone or not self._is_clean()
        if is_lost:
            if self.held is not None:
                logger.warning("storage.connection_lost", extra={"reason": type(error).__name__})
            self.close()
        self._note_refusal(error)
        return Failure.of(error, is_lost=is_lost, has_begun=has_begun)

    def _note_refusal(self, error: BaseException) -> None:
        if is_alien_session(error):
            error = as_unsuitable(error)
        if self._refusal is None and isinstance(error, UnsuitableDatabase):
            self._refusal = error
            self.close()
            for callback in self._on_refused:
                callback(error)

    def _is_clean(self) -> bool:
        """Return whether no transaction is left open; SQLAlchemy rolls nothing back where a COMMIT has failed."""
        if self.held is None or self.held.invalidated:
            return False
        try:
            while (savepoint := self.held.get_nested_transaction()) is not None:
                savepoint.close()
            self.held.connection.rollback()
        except Exception:  # noqa: BLE001 - the driver's own errors, which SQLAlchemy does not wrap here
            return False
        return True

    def beat(self) -> None:
        """Ask the server something, so that it does not end the session, and read its clock."""
        if self.generation == 0 or self._refusal is not None:
            return  # nobody has written anything yet, or may any more
        was_connected = self.held is not None
        try:
            connection = self.open()  # where it was lost: the clock has to be looked at all the same
            with connection.begin():
                check_writable(connection)
                self._look_at_clock(connection)
        except Exception as error:  # noqa: BLE001 - whatever it was: the thread has to live on
            if was_connected:
                logger.warning("storage.connection_lost", extra={"reason": type(error).__name__})
            self.close()
            self._note_refusal(error)

    def rest(self) -> None:
        """Close the connection until something is written; all that it held is given up."""
        if self.held is not None:
            logger.info("storage.resting")
            self.close()
            self._is_away = False

    @property
    def is_clock_old(self) -> bool:
        """Whether the database's clock was last looked at long ago."""
        return time.monotonic() - self._looked_at > _LONGEST_WITHOUT_HEARTBEAT

    def _look_at_clock(self, connection: Connection) -> None:
        asked_at = self._looked_at = time.monotonic()
        self.clock.look(lambda: float(connection.exec_driver_sql(_CLOCK).scalar_one()))
        self.heard_at = asked_at

    def unlock_all(self) -> None:
        """Let go of the advisory locks at once: a session that ends keeps them until its server has noticed."""
        if self.held is None or self._is_sqlite:
            return
        with contextlib.suppress(SQLAlchemyError), self.held.begin():
            self.held.exec_driver_sql("SELECT pg_advisory_unlock_all()")
            self.held.exec_driver_sql(UNMARK)

    def close(self) -> None:
        """Close the connection, if there is one, and tell those who registered that all it held is lost."""
        connection, self.held = self.held, None
        self._is_away = True
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                connection.close()
        for callback in self._on_lost:
            callback()
