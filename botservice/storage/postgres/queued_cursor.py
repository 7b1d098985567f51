"""A cursor of psycopg whose statements, in a pipeline, are sent only when a result is waited for."""

from typing import Any

import psycopg
from psycopg.generators import send

_MOST_QUEUED = 512  # commands


class QueuedCursor(psycopg.Cursor[Any]):
    """Leaves statements in the queue of its connection's pipeline.

    psycopg 3.3 sends each of them at once. Sent together they cost the process and the server fewer system calls, and
    the Sync of the one who waits for them stands behind all of them. Without a Sync behind it, Postgres does not count
    a session as idle in transaction, and would not end it, with its locks, where its process hangs (PostgreSQL,
    54.2.4).
    """

    def _execute_gen(self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: Any = None) -> Any:
        pipeline = self._conn._pipeline  # noqa: SLF001 - what is missing is a public way not to send
        if pipeline is None:
            yield from super()._execute_gen(query, params, prepare=prepare, binary=binary)
            return
        yield from self._start_query(query)
        converted = self._convert_query(query, params)
        yield from self._maybe_prepare_gen(converted, prepare=prepare, binary=binary)
        self._last_query = query
        yield from self._conn._prepared.maintain_gen(self._conn)  # noqa: SLF001
        if len(pipeline.command_queue) > _MOST_QUEUED:
            yield from send_all(pipeline)


def send_all(pipeline: Any) -> Any:
    """Send what is queued, all of it, with a Sync behind it, and take what comes of it: a generator for psycopg.

    psycopg's own does not see to the end of what is larger than a socket takes at once: it waits for the answer, and
    the server for the rest of the question.
    """
    pipeline._enqueue_sync()  # noqa: SLF001
    yield from pipeline._communicate_gen()  # noqa: SLF001
    yield from send(pipeline.pgconn)
    yield from pipeline._fetch_gen(flush=False)  # noqa: SLF001
