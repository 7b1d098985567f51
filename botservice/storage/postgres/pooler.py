"""Telling a pooler in transaction mode from a connection of one's own: claims and LISTEN would not survive it."""

from sqlalchemy import Connection, Engine

from botservice.errors import UnsuitablePooler

_SESSION = "SELECT pg_backend_pid()"


def check_sessions(engine: Engine) -> None:
    """Return if connections keep their sessions between transactions.

    A pooler in transaction mode lends a session for each transaction. So of two connections, of which one waits between
    two transactions while the other is in the middle of its own, both get the same session, or the first one gets two.

    Raises:
        UnsuitablePooler: they do not.
    """
    with engine.connect() as waiting, engine.connect() as other:
        before = _ask_in_transaction(waiting)
        with other.begin():
            meanwhile = other.exec_driver_sql(_SESSION).scalar_one()
            if meanwhile == before or _ask_in_transaction(waiting) != before:
                raise UnsuitablePooler(
                    "DATABASE_URL leads to a connection pooler in transaction mode, in which locks and LISTEN do not "
                    "last: use the database's direct address, or the pooler's session mode (PgBouncer: pool_mode = "
                    "session; Supabase: port 5432 in the place of 6543; Neon: the host without -pooler)"
                )


def _ask_in_transaction(connection: Connection) -> int:
    with connection.begin():
        return int(connection.exec_driver_sql(_SESSION).scalar_one())
