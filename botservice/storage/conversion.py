"""Converting a database of 0.17.0, once, to the tables of 1.0; the processes of 0.17.0 have to be stopped.

It is done in small transactions, and each keeps how far it is: a process that is killed in between leaves a database
that `botservice migrate` goes on with, and on which no release starts until it is whole.
"""

import json
import time
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, bindparam, column, select, table, text

from botservice.core.progress import Progress
from botservice.storage.conversion_messages import OLDER, convert_messages
from botservice.storage.conversion_records import convert_log, convert_prompt, convert_step
from botservice.storage.tables.columns import Compressed, Places
from botservice.storage.tables.conversations import messages

OLD_VERSION: Final = "0028"
"""The version of 0.17.0's tables."""
OLD_VERSION_TABLE: Final = "alembic_version"
CONVERSION_TABLE: Final = "botservice_conversion"
"""How far a conversion is. It is there until the database is whole."""
TURNS_AT_ONCE: Final = 50
_MESSAGES_AT_ONCE: Final = 200
# A process of 0.17.0 that connects again in between does not find its columns any more, and can write no step.
# SQLite adds no column without a default to a table that has rows.
_BEGUN: Final = (
    "ALTER TABLE steps RENAME COLUMN data TO old_data",
    "ALTER TABLE steps ADD COLUMN data {bytes} DEFAULT '' NOT NULL",
    "ALTER TABLE steps ADD COLUMN prompt TEXT",
    "ALTER TABLE prompt_log RENAME COLUMN content TO old_content",
    "ALTER TABLE prompt_log ADD COLUMN content {bytes} DEFAULT '' NOT NULL",
)
_FINISHED: Final = (
    "ALTER TABLE steps DROP COLUMN old_data",
    "ALTER TABLE steps DROP COLUMN prompt_ranges",
    "ALTER TABLE prompt_log DROP COLUMN old_content",
)
_BYTES: Final = {"sqlite": "BLOB", "postgresql": "BYTEA"}
_PROGRESS: Final = Table(
    CONVERSION_TABLE,
    MetaData(),
    Column("turn_id", BigInteger, nullable=False),
    Column("message_id", BigInteger, nullable=False),
)
"""Up to which turn and which message everything is converted."""
_steps: Final = table(
    "steps",
    *map(column, ("id", "turn_id", "old_data", "prompt_ranges")),
    column("prompt", Places),
    column("data", Compressed),
)
_logs: Final = table(
    "prompt_log", *map(column, ("turn_id", "seq", "context_id", "old_content")), column("content", Compressed)
)
_turns: Final = table("turns", column("id"))
_NEXT_TURNS: Final = (
    select(_turns.c.id).where(_turns.c.id > bindparam("after")).order_by(_turns.c.id).limit(bindparam("most"))
)
_NEXT_MESSAGES: Final = OLDER.where(messages.c.id > bindparam("after")).limit(_MESSAGES_AT_ONCE)
_PAUSE_SECONDS: Final = 0.001  # or SQLite's readers would find no moment between two transactions


def convert(
    connection: Connection,
    version: str,
    progress: Progress,
    *,
    check_alone: Callable[[], None],
    stamp: Callable[[], None],
) -> None:
    """Convert a database of 0.17.0, or go on where an earlier process was killed.

    Args:
        version: That of the converted tables.
        check_alone: Raises where a process works on the database.
        stamp: Writes, in the open transaction, which version the tables have.
    """
    check_alone()
    with connection.begin():
        if not _has_begun(connection):
            _begin(connection, version)
    check_alone()  # from here on, none of 0.17.0 starts
    last_turn = _last_id(connection, "turns")
    while _convert_next_turns(connection, last_turn, progress) or _convert_next_messages(connection, progress):
        time.sleep(_PAUSE_SECONDS)
    check_alone()
    with connection.begin():
        for statement in _FINISHED:
            connection.exec_driver_sql(statement)
        _PROGRESS.drop(connection)
        stamp()


def _has_begun(connection: Connection) -> bool:
    version: str = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    return version != OLD_VERSION


def _begin(connection: Connection, version: str) -> None:
    """Add the columns, and have 0.17.0 say that the database is too new for it."""
    for statement in _BEGUN:
        connection.exec_driver_sql(statement.format(bytes=_BYTES[connection.dialect.name]))
    _PROGRESS.create(connection)
    connection.execute(_PROGRESS.insert(), {"turn_id": 0, "message_id": 0})
    connection.execute(text("DELETE FROM schema_compatibility"))
    connection.execute(
        text("INSERT INTO schema_compatibility (oldest_version) VALUES (:version)"), {"version": version}
    )
    connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def _last_id(connection: Connection, name: str) -> int:
    with connection.begin():
        return int(connection.execute(text(f"SELECT coalesce(max(id), 0) FROM {name}")).scalar_one())  # noqa: S608 - ours


def _convert_next_turns(connection: Connection, last_id: int, progress: Progress) -> bool:
    """Convert the records of the next few turns, and return whether there were any."""
    with connection.begin():
        after = connection.execute(select(_PROGRESS.c.turn_id)).scalar_one()
        ids = list(connection.execute(_NEXT_TURNS, {"after": after, "most": TURNS_AT_ONCE}).scalars())
        if ids:
            _convert_turns(connection, ids)
            connection.execute(_PROGRESS.update().values(turn_id=ids[-1]))
            progress(ids[-1], last_id, "turns")
    return bool(ids)


def _convert_turns(connection: Connection, ids: list[int]) -> None:
    places: dict[int, Any] = {}
    logged: dict[int, list[Any]] = {}
    of_turns = (
        select(*_logs.c["turn_id", "seq", "context_id", "old_content"])
        .where(_logs.c.turn_id.in_(ids))
        .order_by(_logs.c.turn_id, _logs.c.seq)
    )
    for row in connection.execute(of_turns):
        logged.setdefault(row.turn_id, []).append(row)
    new_logs = []
    for turn_id, rows in logged.items():
        content, places[turn_id] = convert_log((row.seq, row.old_content) for row in rows)
        here = {"turn_id": turn_id, "seq": 0, "context_id": rows[0].context_id}
        new_logs.append({**here, "old_content": "", "content": content})
    if new_logs:
        connection.execute(_logs.delete().where(_logs.c.turn_id.in_(list(logged))))
        connection.execute(_logs.insert(), new_logs)
    old = select(*_steps.c["id", "turn_id", "old_data", "prompt_ranges"]).where(_steps.c.turn_id.in_(ids))
    new_steps = []
    for row in connection.execute(old).all():
        prompt = None
        if row.prompt_ranges is not None:
            prompt = convert_prompt(json.loads(row.prompt_ranges), places.get(row.turn_id, {}))
        data = convert_step(row.old_data)
        new_steps.append({"row": row.id, "old_data": "", "prompt_ranges": None, "prompt": prompt, "data": data})
    if new_steps:
        connection.execute(_steps.update().where(_steps.c.id == bindparam("row")), new_steps)


def _convert_next_messages(connection: Connection, progress: Progress) -> bool:
    """Convert the next few messages of releases before references were kept, and return whether there were any."""
    with connection.begin():
        after = connection.execute(select(_PROGRESS.c.message_id)).scalar_one()
        rows = connection.execute(_NEXT_MESSAGES, {"after": after}).all()
        if rows:
            convert_messages(connection, rows)
            connection.execute(_PROGRESS.update().values(message_id=rows[-1].id))
            progress(rows[-1].id, rows[-1].id, "messages of earlier releases")
    return bool(rows)
