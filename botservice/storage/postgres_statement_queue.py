"""The statements that wait in a pipeline of psycopg until a result is needed.

psycopg 3.3 sends each of them at once, and makes a cursor for each. Sent together they cost the process and the server
fewer system calls, and the Sync of the one who waits for them stands behind all of them. Without a Sync behind it,
Postgres does not count a session as idle in transaction, and would not end it, with its locks, where its process hangs
(PostgreSQL, 54.2.4).
"""

# ruff: noqa: SLF001 - see PostgresQuery

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg._queries import PostgresQuery  # what is missing is a public way to queue and not to send
from psycopg.adapt import Transformer
from psycopg.generators import send
from psycopg.pq import ExecStatus, TransactionStatus

_MOST_QUEUED = 512  # commands
_MOST_TEXTS = 1024


class Queued:
    """A statement that was queued, and then what it gave: psycopg's pipeline takes it for a cursor.

    Attributes:
        result: None until it has come.
    """

    __slots__ = ("_conn", "_transformer", "result")

    def __init__(self, driver: Any, transformer: Any) -> None:
        self._conn = driver
        self._transformer = transformer
        self.result: Any = None

    @property
    def description(self) -> list[tuple[str, int]]:
        """The names of the columns, and the codes of their types."""
        result = self.result
        return [(result.fname(place).decode(), result.ftype(place)) for place in range(result.nfields)]

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        """Return the rows."""
        if self.result is None:
            raise psycopg.ProgrammingError("the statement gave no result")
        self._transformer.set_pgresult(self.result)
        rows: Sequence[tuple[Any, ...]] = self._transformer.load_rows(0, self.result.ntuples, tuple)
        self._transformer.set_pgresult(None)  # what is large is not kept
        return rows

    def _check_results(self, results: Sequence[Any]) -> None:
        for result in results:
            if result.status == ExecStatus.PIPELINE_ABORTED:
                raise psycopg.errors.PipelineAborted("pipeline aborted")
            if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                raise psycopg.errors.error_from_result(result, encoding=self._conn.info.encoding)

    def _set_results(self, results: Sequence[Any]) -> None:
        self.result = results[0]


class StatementQueue:
    """Queues statements in the pipeline that a connection is in."""

    def __init__(self, driver: Any, pipeline: Any) -> None:
        self._driver = driver
        self._pipeline = pipeline
        self._sender = driver.cursor()
        self._transformer: Any = Transformer(driver)
        self._queries: dict[str, PostgresQuery] = {}

    @property
    def has_done_all(self) -> bool:
        """Whether all that was queued is done, and the transaction goes on without an error."""
        status = self._driver.pgconn.transaction_status
        return not self._pipeline.result_queue and bool(status == TransactionStatus.INTRANS)

    def add(self, text: str, values: Mapping[str, Any] | None = None, *, is_prepared: bool | None = None) -> Queued:
        """Queue a statement, and return what its result will be in.

        Args:
            is_prepared: False for one that is sent as its text each time, never by the name it was prepared under.
        """
        driver, results = self._driver, self._pipeline.result_queue
        driver._check_connection_ok()
        query, queued = self._dumped(text, values), Queued(driver, self._transformer)
        kind = query.query, query.types
        name = driver._prepared._names.get(kind)
        if name is not None:  # of a statement that is prepared, psycopg would look everything up once more
            driver._prepared._names.move_to_end(kind)
            formats = {"param_formats": query.formats, "result_format": self._sender.format}
            send_prepared = partial(driver.pgconn.send_query_prepared, name, query.params, **formats)
            self._pipeline.command_queue.append(send_prepared)
            results.append((queued, None))
        else:
            for _ in self._sender._maybe_prepare_gen(query, prepare=is_prepared):
                pass  # in a pipeline it waits for nothing
            results.append((queued, results.pop()[1]))
        query.params = None  # what is large is not kept
        if driver._prepared._to_flush:
            driver.wait(driver._prepared.maintain_gen(driver))
        if len(self._pipeline.command_queue) > _MOST_QUEUED:
            self.send()
        return queued

    def _dumped(self, text: str, values: Mapping[str, Any] | None) -> PostgresQuery:
        """Return a statement with its values as they are sent."""
        query, transformer = self._queries.get(text), self._transformer
        if query is None:
            if len(self._queries) == _MOST_TEXTS:
                self._queries.clear()
            query = self._queries[text] = PostgresQuery(transformer)
            query.convert(text.encode(), values)
        elif values is not None:
            ordered = [values[name] for name in query._order or ()]
            query.params = transformer.dump_sequence(ordered, query._want_formats)
            query.types, query.formats = transformer.types or (), transformer.formats
        return query

    def send(self) -> None:
        """Send what is queued, and return when it has been done."""
        self._driver.wait(_do_all(self._pipeline))

    def flush(self) -> None:
        """Send what is queued; what it gives is taken with what is sent next."""
        self._driver.wait(_send_all(self._pipeline))


def _do_all(pipeline: Any) -> Any:
    """Send what is queued, and take what comes of it: a generator for psycopg."""
    yield from _send_all(pipeline)
    yield from pipeline._fetch_gen(flush=False)


def _send_all(pipeline: Any) -> Any:
    """Send what is queued, all of it, with a Sync behind it: a generator for psycopg.

    psycopg's own sends each command by itself, and looks at the socket before each. It does not see to the end of what
    is larger than a socket takes at once either: it waits for the answer, and the server for the rest of the question.
    """
    pipeline._enqueue_sync()
    while pipeline.command_queue:
        pipeline.command_queue.popleft()()  # into the driver's buffer
    yield from send(pipeline.pgconn)
