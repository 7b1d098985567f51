"""The part of a migration that runs on Postgres alongside the service: building indexes and counting messages.

An index that is built within a migration's transaction locks its table for all that write, for as long as that takes.
"""

import logging
import time

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex

from botservice.core.progress import Progress
from botservice.storage.engines import create_building_engine, create_writer_engine
from botservice.storage.failures import is_blocked, is_conflict
from botservice.storage.limits import StorageLimits
from botservice.storage.postgres_replicas import lock_space
from botservice.storage.tables.columns import metadata
from botservice.storage.url import DatabaseUrl

logger = logging.getLogger(__name__)

_BUILDING_LOCK = 2
_POLL_SECONDS = 0.05
_MOST_AT_ONCE = 500
_PAUSE_SECONDS = 0.01
_TRY_LOCK = text(f"SELECT pg_try_advisory_lock({lock_space()}, :id)")
_INDEXES = text(
    "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "WHERE c.relnamespace = quote_ident(current_schema())::regnamespace"
)
_UNCOUNTED = text("SELECT id FROM contexts WHERE message_count IS NULL LIMIT :most FOR UPDATE SKIP LOCKED")
# A second statement sees what was stored before the rows were locked; while they are, nothing more is.
_COUNT = text(
    "UPDATE contexts SET message_count = (SELECT count(*) FROM messages WHERE context_id = contexts.id), "
    "last_message_id = coalesce((SELECT max(id) FROM messages WHERE context_id = contexts.id), 0) WHERE id = ANY(:ids)"
)
_IS_COUNTED = text("SELECT NOT EXISTS (SELECT FROM contexts WHERE message_count IS NULL)")


def finish_building(where: DatabaseUrl, limits: StorageLimits, progress: Progress) -> None:
    """Build every index of the tables that is not there or was left half built, and count the messages of every chat.

    What others hold up for too long is left to the next migration; it is only slower without.
    """
    patience_seconds = limits.blocked_migration
    give_up_at = time.monotonic() + patience_seconds
    with create_building_engine(where).connect() as connection:  # without a pool, nothing else is to be closed
        # Never waited for within a statement: an index that is built waits for every statement that has begun before.
        while not connection.execute(_TRY_LOCK, {"id": _BUILDING_LOCK}).scalar_one():
            if time.monotonic() > give_up_at:
                return
            time.sleep(_POLL_SECONDS)
        _build_indexes(connection, patience_seconds, progress)
    with create_writer_engine(where, limits).connect() as connection:
        _count_messages(connection, give_up_at=give_up_at)


def _build_indexes(connection: Connection, patience_seconds: float, progress: Progress) -> None:
    connection.execute(text(f"SET lock_timeout = {int(patience_seconds * 1000)}"))
    known = {row.relname: row.indisvalid for row in connection.execute(_INDEXES)}
    indexes = [index for table in metadata.sorted_tables for index in table.indexes]
    left = [index for index in indexes if not known.get(str(index.name))]
    for number, index in enumerate(left):
        name = str(index.name)
        progress(number, len(left), f"index {name}")
        try:
            if name in known:
                connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {name}"))
            create = str(CreateIndex(index).compile(connection))
            connection.execute(text(create.replace(" INDEX ", " INDEX CONCURRENTLY ", 1)))
        except DBAPIError as error:
            if not (is_blocked(error) or is_conflict(error)):
                raise
            logger.warning("migration.index_left", extra={"index": name})


def _count_messages(connection: Connection, *, give_up_at: float) -> None:
    is_counted = False
    while not is_counted and time.monotonic() < give_up_at:
        with connection.begin():
            ids = list(connection.execute(_UNCOUNTED, {"most": _MOST_AT_ONCE}).scalars())
            if ids:
                connection.execute(_COUNT, {"ids": ids})
            else:
                is_counted = connection.execute(_IS_COUNTED).scalar_one()
        time.sleep(_PAUSE_SECONDS)
