"""Recording how rows change their states: ids and names of states, and no word of anybody.

The record is for tests, which hold it against a model of the protocol. Triggers write it in the transaction that makes
the change. So a process that is killed leaves out nothing that it had committed and adds nothing that it had not, and
of one row the record has the order of the commits. On Postgres, each entry says whether the session that wrote it had
the lock of the conversation.
"""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, create_engine, text
from sqlalchemy.pool import NullPool

from botservice.core.states import API, EventKind, TurnStatus
from botservice.storage.postgres_replicas import lock_space
from botservice.storage.url import DatabaseUrl

TABLE: Final = "transitions"
_CHANGES: Final = ("INSERT", "UPDATE", "DELETE")
_LOCK: Final = 2  # next to the one of migrations
_THERE: Final = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'transitions'",
    "postgresql": "SELECT 1 WHERE to_regclass('transitions') IS NOT NULL",
}
_MAKE_TABLE: Final = (
    "CREATE TABLE transitions (seq {serial}, tx BIGINT, context_id BIGINT, thing TEXT, name TEXT, before TEXT, "
    "after TEXT, is_held BOOLEAN)"
)
_SERIAL: Final = {"sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT", "postgresql": "BIGSERIAL PRIMARY KEY"}
# The session that writes has the lock of the conversation: see `postgres_replicas.py` for its key.
_IS_HELD: Final = (
    "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objsubid = 2 "
    f"AND classid::bigint = ({lock_space()})::bigint & 4294967295 "
    "AND objid::bigint = (({row}.context_id & 4294967295) + 2147483648) % 4294967296)"
)
_NOTE: Final = text(
    "INSERT INTO transitions (context_id, thing, name, before, after, is_held) "
    "VALUES (:context, :thing, :name, '', :after, TRUE)"
).bindparams(bindparam("context"), bindparam("thing"), bindparam("name"), bindparam("after"))
_READ: Final = text("SELECT seq, tx, context_id, thing, name, before, after, is_held FROM transitions ORDER BY seq")


@dataclass(frozen=True, slots=True)
class RecordedRows:
    """Rows whose states are recorded; the texts are SQL, in which `{row}` is the row before or after a change.

    Attributes:
        also: Columns whose change is recorded even where the state stays the same.
        only: Which rows are recorded.
    """

    table: str
    thing: str
    state: str
    name: str = "{row}.id"
    also: tuple[str, ...] = ()
    only: str = ""


_ALL: Final = (
    RecordedRows(
        "turns",
        f"CASE {{row}}.transport WHEN '{API}' THEN 'program' ELSE 'turn' END",
        f"coalesce(CASE {{row}}.status WHEN '{TurnStatus.DONE}' THEN {{row}}.outcome END, {{row}}.status)",
        also=("attempts", "steps_taken"),
    ),
    RecordedRows("tool_calls", "'call'", "{row}.status", name="{row}.step_id || '.' || {row}.call_index"),
    RecordedRows("pending_calls", "'approval'", "CASE WHEN {row}.is_open THEN {row}.status ELSE 'closed' END"),
    RecordedRows("deliveries", "'delivery'", "{row}.status", also=("attempts", "kind")),
    RecordedRows(
        "events",
        "'control'",
        "CASE WHEN {row}.handled_at IS NULL THEN 'stored' ELSE 'handled' END",
        only=f"{{row}}.kind <> '{EventKind.MESSAGE}'",
    ),
)


@dataclass(frozen=True, slots=True)
class Transition:
    """An entry of the record.

    Attributes:
        seq: Its place in the record.
        tx: The number of its transaction; None on SQLite.
        name: The id of the row; of a call, the id of its step and its place in it.
        before: The state of the row; "" where something was done with it that changes none.
        is_held: Whether the session had the conversation's lock; None on SQLite, where claims are in memory.
    """

    seq: int
    tx: int | None
    context_id: int
    thing: str
    name: str
    before: str
    after: str
    is_held: bool | None


def start_recording(connection: Connection) -> None:
    """Have every change of a state be recorded from now on, by whichever process."""
    dialect = connection.dialect.name
    if dialect == "postgresql":  # several processes may start at once
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock_space()}, {_LOCK})")
    if connection.exec_driver_sql(_THERE[dialect]).first() is not None:
        return
    connection.exec_driver_sql(_MAKE_TABLE.format(serial=_SERIAL[dialect]))
    for each in _ALL:
        for change in _CHANGES:
            for statement in _trigger(each, change, is_sqlite=dialect == "sqlite"):
                connection.exec_driver_sql(statement.replace("%", "%%") if dialect == "postgresql" else statement)


def stop_recording(connection: Connection) -> None:
    """Have nothing be recorded any more, and drop the record."""
    dialect = connection.dialect.name
    if connection.exec_driver_sql(_THERE[dialect]).first() is None:
        return
    for each in _ALL:
        for change in _CHANGES:
            name = _name_of_trigger(each, change)
            if dialect == "sqlite":
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}")
            else:
                connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {name}() CASCADE")
    connection.exec_driver_sql(f"DROP TABLE {TABLE}")


def note_done(connection: Connection, context_id: int, thing: str, name: str, what: str) -> None:
    """Record that something is done with a row that changes no state, such as sending a message."""
    connection.execute(_NOTE, {"context": context_id, "thing": thing, "name": name, "after": what})


def read_transitions(connection: Connection) -> list[Transition]:
    """Return the record, in its order."""
    return [Transition(*_with_booleans(row)) for row in connection.execute(_READ)]


def read_record(url: str) -> list[Transition]:
    """Return the record of the database at an address, also while others work on it."""
    engine = create_engine(DatabaseUrl.parse(url).url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            return read_transitions(connection)
    finally:
        engine.dispose()


def _with_booleans(row: Any) -> tuple[Any, ...]:
    *values, is_held = row
    return (*values, None if is_held is None else bool(is_held))


def _name_of_trigger(recorded: RecordedRows, change: str) -> str:
    return f"transition_{recorded.table}_{change.lower()}"


def _trigger(recorded: RecordedRows, change: str, *, is_sqlite: bool) -> list[str]:
    """Return the statements that make a trigger."""
    row = "OLD" if change == "DELETE" else "NEW"
    before = "'nothing'" if change == "INSERT" else recorded.state.format(row="OLD")
    after = "'gone'" if change == "DELETE" else recorded.state.format(row="NEW")
    differs = "IS NOT" if is_sqlite else "IS DISTINCT FROM"
    conditions = [recorded.only.format(row=row)] if recorded.only else []
    if change == "UPDATE":
        pairs = [(before, after), *((f"OLD.{each}", f"NEW.{each}") for each in recorded.also)]
        conditions.append("(" + " OR ".join(f"({old}) {differs} ({new})" for old, new in pairs) + ")")
    tx, held = ("NULL", "NULL") if is_sqlite else ("txid_current()", _IS_HELD.format(row=row))
    insert = (
        f"INSERT INTO transitions (tx, context_id, thing, name, before, after, is_held) SELECT {tx}, {row}.context_id, "
        f"{recorded.thing.format(row=row)}, CAST({recorded.name.format(row=row)} AS TEXT), {before}, {after}, {held}"
    )
    insert += f" WHERE {' AND '.join(conditions)}" if conditions else ""
    name = _name_of_trigger(recorded, change)
    if is_sqlite:
        return [f"CREATE TRIGGER {name} AFTER {change} ON {recorded.table} BEGIN {insert}; END"]
    return [
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {insert}; RETURN NULL; END $$",
        f"CREATE TRIGGER {name} AFTER {change} ON {recorded.table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    ]
