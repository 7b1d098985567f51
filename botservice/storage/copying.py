"""Copying a whole database to another one, from SQLite to Postgres or back: rows as they are stored, with their ids."""

import contextlib
import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    Select,
    Table,
    Text,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
    tuple_,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeDecorator

from botservice.core.errors import SettingsError, StorageError
from botservice.core.progress import Progress, unwatched
from botservice.storage.claims import SharedFile
from botservice.storage.engines import create_writer_engine
from botservice.storage.limits import StorageLimits
from botservice.storage.postgres_sessions import wait_until_alone
from botservice.storage.schema import COPY_MARK, check_version, check_whole, migrate, read_version
from botservice.storage.tables import make_observing_triggers, make_triggers
from botservice.storage.tables.columns import metadata
from botservice.storage.url import DatabaseUrl

_ROWS_AT_ONCE: Final = 500
_NOT_COPIED: Final = frozenset({"schema_compatibility"})  # the target has its own
_MARK: Final = Table(
    COPY_MARK, MetaData(), Column("table_name", Text, primary_key=True), Column("last_key", Text, nullable=False)
)
"""How far a copy has come: the key of the last row of each table. It is in the target until the copy is whole."""
_BEGUN: Final = ""  # the name of the row that says where the copy comes from


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied.

    Attributes:
        rows: How many there are now, by table.
    """

    rows: Mapping[str, int]


def copy_database(source_url: str, target_url: str, progress: Progress = unwatched) -> Copied:
    """Copy everything into an empty database, or go on with a copy that was cut off, and compare both in the end.

    Raises:
        SettingsError: an address is wrong, or both are one database.
        DatabaseInUse: a service runs on one of them.
        SchemaMismatch: the source has the tables of another version, or a part of a copy.
        StorageError: the target holds something else, or what arrived differs from what was sent.
    """
    source, target = DatabaseUrl.parse(source_url), DatabaseUrl.parse(target_url)
    if source.is_memory or target.is_memory:
        raise SettingsError("a database in memory ends with its process: name a file, such as sqlite:///bot.db")
    if (source.url, source.path) == (target.url, target.path):
        raise SettingsError("source and target are the same database")
    if source.path is not None and not source.path.exists():
        raise SettingsError(f"there is no database at {source.path}")
    migrate(target)
    with _opened(source) as giving, _opened(target) as taking:
        for engine, where in ((giving, source), (taking, target)):
            with engine.begin() as connection:
                check_version(read_version(connection), remedy=f"run `botservice migrate` on {where.name} first")
            _check_unused(engine, where)
        with giving.begin() as connection:
            check_whole(connection)
        with taking.begin() as connection:
            _begin(connection, source)
        _copy_all(giving, taking, progress)
        for engine, where in ((giving, source), (taking, target)):
            _check_unused(engine, where)
        copied = _compare(giving, taking, progress)
        with taking.begin() as connection:
            _end(connection)
        return copied


@contextlib.contextmanager
def _opened(where: DatabaseUrl) -> Iterator[Engine]:
    """Open a database that no service works on; an SQLite file stays locked meanwhile."""
    engine = create_writer_engine(where, StorageLimits(), is_migrating=True)
    lock = None if where.path is None else SharedFile.at(where.path).lock
    if lock is not None:
        lock.acquire()
    try:
        yield engine
    finally:
        engine.dispose()
        if lock is not None:
            lock.release()


def _check_unused(engine: Engine, where: DatabaseUrl) -> None:
    """Check that no service is connected to a Postgres database; an SQLite file is locked.

    Raises:
        DatabaseInUse: one is.
    """
    if not where.is_sqlite:
        with engine.connect() as connection:
            wait_until_alone(connection, where.name, "copy again")


def _begin(connection: Connection, source: DatabaseUrl) -> None:
    """Mark an empty target as one that is copied to, and stop its triggers: what they count is copied too."""
    if inspect(connection).has_table(_MARK.name):
        begun = connection.scalar(select(_MARK.c.last_key).where(_MARK.c.table_name == _BEGUN))
        if begun != source.name:
            raise StorageError(f"the target holds a part of a copy of {begun}: go on with that, or empty the target")
    else:
        for table in _tables():
            if connection.execute(select(table).limit(1)).first() is not None:
                raise StorageError(f"the target is not empty, there are rows in {table.name}: give an empty database")
        _MARK.create(connection)
        connection.execute(insert(_MARK), {"table_name": _BEGUN, "last_key": source.name})
    _stop_triggers(connection)


def _end(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        make_triggers(connection)
        make_observing_triggers(connection)
    else:
        for table in _tables():
            connection.execute(text(f'ALTER TABLE "{table.name}" ENABLE TRIGGER USER'))
            _continue_ids(connection, table)
    _MARK.drop(connection)


def _stop_triggers(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        named = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
        for name in named:
            connection.execute(text(f'DROP TRIGGER "{name}"'))
        return
    for table in _tables():
        connection.execute(text(f'ALTER TABLE "{table.name}" DISABLE TRIGGER USER'))


def _continue_ids(connection: Connection, table: Table) -> None:
    """Have new rows numbered behind the copied ones."""
    if [column.name for column in table.primary_key] != ["id"]:
        return
    sequence = connection.scalar(select(func.pg_get_serial_sequence(table.name, "id")))
    newest = connection.scalar(select(func.max(table.c.id)))
    if sequence is not None and newest is not None:
        connection.execute(select(func.setval(sequence, newest)))


def _tables() -> list[Table]:
    """List the tables in the order in which they refer to each other, with their columns as the database has them."""
    return [_raw(table) for table in metadata.sorted_tables if table.name not in _NOT_COPIED]


def _raw(table: Table) -> Table:
    columns = (
        Column(
            column.name,
            column.type.impl_instance if isinstance(column.type, TypeDecorator) else column.type,
            primary_key=column.primary_key,
        )
        for column in table.columns
    )
    return Table(table.name, MetaData(), *columns)


def _copy_all(giving: Engine, taking: Engine, progress: Progress) -> None:
    with giving.begin() as connection:
        total = sum(_count(connection, table) for table in _tables())
    done = 0
    for table in _tables():
        with taking.begin() as connection:
            last = _read_mark(connection, table)
            done += _count(connection, table)
        while rows := _read(giving, table, last):
            last = [getattr(rows[-1], column.name) for column in table.primary_key]
            with taking.begin() as connection:
                _write(connection, table, [dict(row._mapping) for row in rows])  # noqa: SLF001 - its public name
                _write_mark(connection, table, last)
            done += len(rows)
            progress(done, total, table.name)


def _count(connection: Connection, table: Table) -> int:
    return int(connection.scalar(select(func.count()).select_from(table)) or 0)


def _read(giving: Engine, table: Table, last: Sequence[Any] | None) -> Sequence[Any]:
    keys = list(table.primary_key)
    query: Select[Any] = select(table).order_by(*keys).limit(_ROWS_AT_ONCE)
    if last is not None:
        query = query.where(tuple_(*keys) > tuple_(*last))
    with giving.begin() as connection:
        return connection.execute(query).all()


def _write(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    try:
        connection.execute(insert(table), rows)
    except (DBAPIError, ValueError) as error:
        first = {column.name: rows[0][column.name] for column in table.primary_key}
        raise StorageError(f"rows of {table.name} from {first} on are not taken: {type(error).__name__}") from error


def _read_mark(connection: Connection, table: Table) -> list[Any] | None:
    kept = connection.scalar(select(_MARK.c.last_key).where(_MARK.c.table_name == table.name))
    return None if kept is None else [_unpacked(each) for each in json.loads(kept)]


def _write_mark(connection: Connection, table: Table, last: Sequence[Any]) -> None:
    connection.execute(delete(_MARK).where(_MARK.c.table_name == table.name))
    connection.execute(
        insert(_MARK), {"table_name": table.name, "last_key": json.dumps([_packed(each) for each in last])}
    )


def _packed(value: Any) -> Any:
    return {"bytes": b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def _unpacked(value: Any) -> Any:
    return b64decode(value["bytes"]) if isinstance(value, dict) else value


def _compare(giving: Engine, taking: Engine, progress: Progress) -> Copied:
    """Compare the number of rows, and a digest of them in whatever order, of each table on both sides."""
    rows: dict[str, int] = {}
    every = _tables()
    for number, table in enumerate(every):
        progress(number, len(every), f"comparing {table.name}")
        sent, arrived = _digest(giving, table), _digest(taking, table)
        if sent != arrived:
            raise StorageError(
                f"{table.name} differs: {sent[0]} rows were sent and {arrived[0]} arrived, or their contents are not "
                "the same. Was the source written to meanwhile? Empty the target and copy again"
            )
        rows[table.name] = arrived[0]
    return Copied(rows)


def _digest(engine: Engine, table: Table) -> tuple[int, int]:
    count = total = 0
    with engine.begin() as connection:
        streamed = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(select(table))
        for row in streamed:
            count += 1
            written = json.dumps([_packed(bytes(v) if isinstance(v, memoryview) else v) for v in row])
            total = (total + int.from_bytes(hashlib.sha256(written.encode()).digest(), "big")) % (1 << 256)
    return count, total
