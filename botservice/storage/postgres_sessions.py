"""Sessions of Postgres: every connection keeps its own, or botservice finds out that it does not.

A pooler in transaction mode lends a session for one transaction. Locks then belong to a session that the next
transaction does not have, and the name of a prepared statement may stand for another process's statement. So each new
connection marks its session, and each transaction begins by comparing the mark and the id of the session. A transaction
that got another session fails before it does anything.
"""

import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from sqlalchemy import Connection, Engine, event, text

from botservice.core.errors import (
    DatabaseInUse,
    SchemaMismatch,
    StorageUnavailable,
    UnsuitableDatabase,
    UnsuitablePooler,
)
from botservice.storage.url import schemas_of

logger = logging.getLogger(__name__)

CHECK = "botservice.check"
"""Where the pool keeps, for each connection, the statement that begins its transactions."""
SESSION_SECONDS = 5.0
"""How long a new connection waits for its first answer."""
_SOON_SECONDS = 2.5
_MARK = "botservice.session"  # a parameter of the session; a pooler that resets sessions resets it
UNMARK = f"RESET {_MARK}"
"""Lets others have the session, where its pooler does not reset it."""
_OWNED = "writer"  # how the mark of a session begins that may hold locks
_ALIEN = "botservice: the session of another"
_OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user "
    "AND (application_name LIKE 'botservice%' OR application_name = current_setting('application_name')) "
    "AND pid <> pg_backend_pid()"
)
_GOING_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_ASK = f"SELECT pg_backend_pid(), coalesce(current_setting('{_MARK}', true), '')"
_REMEDY = (
    "use the database's direct address, or the pooler's session mode (PgBouncer: pool_mode = session; "
    "Supabase: port 5432 instead of 6543; Neon: the host without -pooler)"
)


def mark_sessions(engine: Engine, *, is_writer: bool = False, check: Callable[[Any], None] = lambda _: None) -> None:
    """Have every connection of an engine mark its session when it is made, within a bounded time.

    Args:
        is_writer: Whether the session will hold locks. No other process may have such a session as well.
        check: Called with the driver's new connection; raises if the database is not what was asked for.
    """

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, record: Any, arguments: Any, named: Any) -> Any:
        with _Patience() as patience:
            driver = patience.driver = dialect.connect(*arguments, **named)
            try:
                with driver.transaction():  # one session, whatever the pooler does between transactions
                    check(driver)
                    record.info[CHECK] = _mark(driver, is_writer=is_writer)
            except BaseException as error:
                driver.close()
                if patience.is_over:
                    raise StorageUnavailable(
                        f"the database gave no session within {SESSION_SECONDS:g} seconds: a pooler before it may have "
                        "none free (PgBouncer: default_pool_size)"
                    ) from error
                raise
            return driver


def check_database(driver: Any, *, schema: str | None, is_made: bool = True) -> None:
    """Return if a new connection leads where the address says, and texts can be stored there.

    Args:
        schema: The one that is asked for, if any.
        is_made: Whether it has to exist.

    Raises:
        UnsuitableDatabase: something on the way has left out the schema, or the database is not in UTF-8.
        SchemaMismatch: there is no such schema.
    """
    encoding = driver.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):
        raise UnsuitableDatabase(
            f"the database {driver.info.dbname} has the encoding {encoding}, which cannot hold every message: make one "
            "with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )
    if schema is None:
        return
    path, current = driver.execute("SELECT current_setting('search_path'), current_schema()").fetchone()
    if schemas_of(path)[0] != schema:
        raise UnsuitableDatabase(
            f"DATABASE_URL asks for the schema {schema}, and the server's search_path is {path}: a connection pooler "
            "has left out the options of the address (PgBouncer: ignore_startup_parameters). Use the database's direct "
            f"address, or a role of the bot's own with ALTER ROLE name SET search_path = {schema}"
        )
    if is_made and current != schema:
        raise SchemaMismatch(
            f"there is no schema {schema} that {driver.info.user} may use: run `botservice migrate`, or as its owner "
            f"GRANT USAGE ON SCHEMA {schema} TO {driver.info.user}"
        )


def check_sessions(engine: Engine) -> None:
    """Return if connections keep their sessions between transactions.

    Two connections wait between transactions; then one is in the middle of its own while the other begins one. In
    transaction mode, one of them most likely gets a session that it has not marked. What this misses, the transaction
    finds that is the first to get another session.

    Raises:
        DBAPIError: they do not; see `is_alien_session`.
        UnsuitablePooler: another process's writer has one of them, too.
    """
    with engine.connect() as waiting, engine.connect() as other:
        for connection in (waiting, other):  # where there is one session for both, no second one is waited for
            with connection.begin():
                connection.exec_driver_sql("SELECT 1")
        with other.begin():
            other.exec_driver_sql("SELECT 1")
            with waiting.begin():
                waiting.exec_driver_sql("SELECT 1")


def wait_until_alone(connection: Connection, name: str, remedy: str) -> None:
    """Return when no other botservice is connected to a database.

    Raises:
        DatabaseInUse: one is for seconds; the message ends with remedy.
    """
    give_up_at = time.monotonic() + _GOING_SECONDS
    while True:
        with connection.begin():
            if not connection.scalar(_OTHERS):
                return
        if time.monotonic() > give_up_at:  # until then, it may be the session of a process that has just ended
            raise DatabaseInUse(f"a botservice is connected to {name}: stop every process of it, then {remedy}")
        time.sleep(_LOOK_SECONDS)


def is_alien_session(error: BaseException) -> bool:
    """Return whether a transaction was given a session that its connection has not marked."""
    return _ALIEN in str(getattr(error, "orig", None) or error)


def as_unsuitable(error: BaseException) -> UnsuitablePooler:
    """Return what to tell the operator where a transaction was given another session."""
    unsuitable = UnsuitablePooler(
        "DATABASE_URL leads to a connection pooler in transaction mode, in which locks and LISTEN do not last: a "
        f"transaction was given another session than the one before. Nothing was written there; {_REMEDY}"
    )
    unsuitable.__cause__ = error
    return unsuitable


def _mark(driver: Any, *, is_writer: bool) -> str:
    """Mark a session, and return the statement that fails in any other one."""
    session, found = driver.execute(_ASK).fetchone()
    if found.startswith(_OWNED):
        raise UnsuitablePooler(
            "DATABASE_URL leads to a connection pooler that gave this process a session which another botservice "
            "writes by: it is in transaction mode, or its session mode does not reset sessions (PgBouncer: "
            f"server_reset_query = DISCARD ALL); {_REMEDY}"
        )
    mark = f"{_OWNED if is_writer else 'reader'} {secrets.token_hex(8)}"
    driver.execute(f"SET {_MARK} = '{mark}'")  # not set_config: a pooler that resets what was SET looks for the word
    is_own = f"pg_backend_pid() = {session} AND current_setting('{_MARK}', true) = '{mark}'"
    return f"SELECT CAST(CASE WHEN {is_own} THEN '1' ELSE '{_ALIEN}' END AS integer)"


class _Patience:
    """Breaks a connection off that has no answer after some seconds, and says before that what is waited for.

    The driver bounds how long it connects, and not how long it waits then: a pooler lets a client in, and its first
    question waits until a session is free.
    """

    def __init__(self) -> None:
        self.driver: Any = None
        self.is_over = False
        self._is_done = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, name="botservice-connecting", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()

    def _watch(self) -> None:
        if self._is_done.wait(_SOON_SECONDS):
            return
        what = "a connection" if self.driver is None else "a session: its pooler may have none free"
        logger.warning("storage.waiting_for_database", extra={"waits_for": what})
        while not self._is_done.wait(SESSION_SECONDS - _SOON_SECONDS):
            if self.driver is not None:
                self.is_over = True
                with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.driver.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)
