"""Statements to Postgres that are sent without waiting for what the ones before them gave (psycopg, "Pipeline mode").

A statement costs a process three times as much when it waits for the answer of the server. Here they are queued, and
sent together when the rows of one of them are looked at, or at the commit; so an error may come with a later statement
than the one that failed, but never after the commit.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, event

from botservice.storage.failures import as_sqlalchemy_error
from botservice.storage.postgres_sessions import CHECK

if TYPE_CHECKING:
    from botservice.storage.postgres_statement_queue import StatementQueue

_PIPELINE = "botservice.pipeline"


def prepare_pipelines(engine: Engine, *, begin: str, only_reads: bool = False) -> None:
    """Let connections of an engine send statements in pipelines; the driver commits by itself what has no `begin`.

    Args:
        only_reads: Whether nobody has to know that a transaction was committed.
    """

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        check = connection.connection.info[CHECK]
        with errors_of(connection, begin):
            # By their texts: in another session, the name of a prepared statement stands for any statement.
            queue_of(connection).add(begin, is_prepared=False)
            queue_of(connection).add(check, is_prepared=False)

    @event.listens_for(engine, "before_cursor_execute")
    def leave_before_others(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        with errors_of(connection, statement):
            _leave(connection)  # SQLAlchemy asks for rows at once, and for their columns before there are any

    # Not by the driver, which knows of no transaction that began in a pipeline, and takes a rollback for a commit.
    event.listen(engine, "commit", _end_view if only_reads else _commit)

    @event.listens_for(engine, "rollback")
    def leave_before_rollback(connection: Connection) -> None:
        if not connection.invalidated and not connection.closed:
            _leave_quietly(connection)

    @event.listens_for(engine, "close")
    def close_outside(driver: Any, record: Any) -> None:
        driver.close()  # first, so that leaving waits for nobody
        pipeline = record.info.pop(_PIPELINE, None)
        if pipeline is not None:
            with contextlib.suppress(engine.dialect.loaded_dbapi.Error):
                pipeline.leave()


def _end_view(connection: Connection) -> None:
    """Commit what was only read, and wait for that with what is read next."""
    pipeline = connection.connection.info.get(_PIPELINE)
    if pipeline is None or not pipeline.queue.has_done_all:
        _commit(connection)
        return
    with errors_of(connection, "COMMIT"):
        pipeline.queue.add("COMMIT")
        pipeline.queue.flush()


def _commit(connection: Connection) -> None:
    with errors_of(connection, "COMMIT"):
        try:
            commit = queue_of(connection).add("COMMIT")
            wait_for_all(connection)
            _check_committed(connection, commit.result.command_status)
        except Exception:
            _leave_quietly(connection)
            with contextlib.suppress(connection.dialect.loaded_dbapi.Error):
                connection.connection.rollback()  # SQLAlchemy rolls nothing back where a commit has failed
            raise


def queue_of(connection: Connection) -> "StatementQueue":
    """Return the queue of a connection, which is in a pipeline from now on."""
    pooled = connection.connection
    pipeline = pooled.info.get(_PIPELINE)
    if pipeline is None:
        pipeline = pooled.info[_PIPELINE] = _Pipeline(pooled.dbapi_connection)
    queue: StatementQueue = pipeline.queue
    return queue


def wait_for_all(connection: Connection) -> None:
    """Send what is queued, and return when it has been done."""
    pipeline = connection.connection.info.get(_PIPELINE)
    if pipeline is not None:  # otherwise leaving it has waited
        pipeline.queue.send()


@contextlib.contextmanager
def errors_of(connection: Connection, text: str) -> Iterator[None]:
    """Return a block that raises the driver's errors as SQLAlchemy would."""
    try:
        yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise as_told(connection, text, error) from error


def as_told(connection: Connection, text: str, error: Exception) -> Exception:
    """Return the driver's error as SQLAlchemy would raise it; a connection that is gone counts as gone."""
    told = as_sqlalchemy_error(connection, text, error)
    if told.connection_invalidated:
        _leave_quietly(connection)
        connection.invalidate(error)
    return told


class _Pipeline:
    """A pipeline that a connection is in."""

    def __init__(self, driver: Any) -> None:
        from botservice.storage.postgres_statement_queue import StatementQueue  # with psycopg, which SQLite needs not

        self._driver = driver
        with contextlib.ExitStack() as stack:
            self._pipeline = stack.enter_context(driver.pipeline())
            self._stack = stack.pop_all()
        self.queue = StatementQueue(driver, self._pipeline)

    def drop(self) -> None:
        """Send nothing more of what is queued, least of all a COMMIT, and take nothing for prepared."""
        self._pipeline.command_queue.clear()
        self._driver._prepared.clear()  # noqa: SLF001 - psycopg believes in what was queued

    def leave(self) -> None:
        """Return to statements that are waited for, when everything that was sent has been done."""
        self._stack.close()


def _check_committed(connection: Connection, status: bytes) -> None:
    """Return if a transaction was committed: one in which something failed is rolled back without an error."""
    if status != b"COMMIT":
        raise connection.dialect.loaded_dbapi.InternalError("a statement of the transaction had failed")


def _leave(connection: Connection) -> None:
    pipeline = connection.connection.info.pop(_PIPELINE, None)
    if pipeline is not None:
        pipeline.leave()


def _leave_quietly(connection: Connection) -> None:
    """Leave a pipeline whatever became of its statements: they are about to be undone."""
    pipeline = connection.connection.info.get(_PIPELINE)
    if pipeline is not None:
        pipeline.drop()
    with contextlib.suppress(connection.dialect.loaded_dbapi.Error):
        _leave(connection)
