"""A hundred thousand conversations, made by the database itself, and how many rows it reads of them."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, text

T = TypeVar("T")

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < :count)"
_STATEMENTS = (
    f"""INSERT INTO contexts (id, key_hash, context_keys, metadata, created_at) {_NUMBERS}
    SELECT i, 'key ' || i, '{{"transport": "telegram", "chat_id": "' || i || '"}}', '{{}}', 1000000 * i FROM n""",
    f"""INSERT INTO turns (id, context_id, status, outcome, transport, order_key, due_at, created_at, started_at,
        finished_at) {_NUMBERS}
    SELECT i, i, 'done', CASE WHEN i % 1000 = 7 THEN 'failed' ELSE 'answered' END, 'telegram', i, 0, 1000000 * i,
        1000000 * i, 1000000 * i + 500000 FROM n""",
    f"""INSERT INTO events (id, key, context_id, turn_id, transport, kind, order_key, received_at) {_NUMBERS}
    SELECT i, 'event ' || i, i, i, 'telegram', 'message', i, 1000000 * i FROM n""",
    f"""INSERT INTO messages (context_id, position, role, text, author_name, created_at, event_id) {_NUMBERS}
    SELECT i, 1, 'user', 'question ' || i, 'Ann ' || i, 1000000 * i, i FROM n""",
    f"""INSERT INTO messages (context_id, position, role, text, created_at, answers_turn_id) {_NUMBERS}
    SELECT i, 2, 'assistant', 'answer ' || i, 1000000 * i, i FROM n""",
    f"""INSERT INTO turn_figures (turn_id, calls, input_tokens, cost, lasted_ms, model, tools) {_NUMBERS}
    SELECT i, 1, 1000, i, i, CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END, ' add ' FROM n""",
)


def make_many(connection: Connection, count: int) -> None:
    """Store so many conversations, each with one turn."""
    for statement in _STATEMENTS:
        connection.execute(text(statement), {"count": count})


def analyze(connection: Connection) -> None:
    """Let the database know how much there is."""
    connection.execute(text("ANALYZE"))


def rows_read(connection: Connection, read: Callable[[Connection], T]) -> tuple[T, int]:
    """Return what reading gives, and how much was done for it: rows on Postgres, steps of its machine on SQLite."""
    if connection.dialect.name == "postgresql":
        before = _read_rows(connection)
        return read(connection), _read_rows(connection) - before
    return _count_steps(connection, read)


def _read_rows(connection: Connection) -> int:
    query = "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"
    return int(connection.execute(text(query)).scalar_one() or 0)


def _count_steps(connection: Connection, read: Callable[[Connection], T]) -> tuple[T, int]:
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 100

    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(count, 100)
    try:
        return read(connection), steps
    finally:
        driver.set_progress_handler(None, 0)
