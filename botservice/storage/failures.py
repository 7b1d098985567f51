"""What a database's errors mean. SQLAlchemy's and the drivers' errors are told apart here alone."""

import sqlite3
from dataclasses import dataclass
from typing import Any, Self, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from botservice.core.errors import StorageError, StorageUnavailable, UnsuitableDatabase
from botservice.storage.postgres_sessions import as_unsuitable, is_alien_session

# Postgres manual, appendix A.
_CONFLICTS = frozenset({"40001", "40P01"})  # serialization_failure, deadlock_detected
_LOCK_NOT_AVAILABLE = "55P03"
_NAME_TAKEN = "42P07"  # duplicate_table, of tables and indexes
_READ_ONLY = "25006"  # read_only_sql_transaction
_REFUSALS = frozenset({"42501", "25006", "58030"})  # insufficient_privilege, read_only_sql_transaction, io_error
_NO_DISK = frozenset({"53100", "58030"})
_NO_RESOURCES = "53"  # the class: disk_full, out_of_memory, and what providers raise for a quota
_NO_DISK_OF_SQLITE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a transaction did not happen.

    Attributes:
        is_general: Whether any other transaction would have failed now as well.
        is_blocked: Whether it waited without success for a lock of another session.
        refusal: The database's reason, where it takes no such writes: for its disk, a quota, or a right.
    """

    error: BaseException
    is_general: bool = False
    is_blocked: bool = False
    refusal: str | None = None

    @classmethod
    def of(cls, error: BaseException, *, is_lost: bool, has_begun: bool) -> Self:
        """Return what an error means for those who wait for the transaction.

        Args:
            is_lost: Whether the connection is gone.
            has_begun: Whether the transaction had begun.
        """
        told = error
        if is_lost or is_outage(error):
            told = as_unavailable(error, "the database did not take a write")
        elif isinstance(error, DBAPIError):
            told = as_refusal(error)
        elif isinstance(error, StopIteration):  # a future refuses it
            told = RuntimeError(f"a write raised {error!r}")
        is_general = is_lost or not has_begun
        refusal = _reason(error) if refuses_writes(error) else None
        return cls(told, is_general=is_general, is_blocked=is_blocked(error), refusal=refusal)


class ReadOnlyDatabase(Exception):
    """The server takes no writes: another one may have taken its place."""


def check_writable(connection: Connection) -> None:
    """Return if the transaction may write.

    Raises:
        ReadOnlyDatabase: it may not, says the server.
        OperationalError: it may not, says SQLite, which begins a transaction all the same on a file that is read-only.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("DELETE FROM schema_compatibility WHERE 0")
        return
    if connection.exec_driver_sql("SHOW transaction_read_only").scalar_one() == "on":
        raise ReadOnlyDatabase("the server takes no writes")


def as_sqlalchemy_error(connection: Connection, text: str, error: Any) -> DBAPIError:
    """Return a driver's error as SQLAlchemy would raise it, for a statement that was given to the driver itself."""
    dialect = connection.dialect
    driver = connection.connection.dbapi_connection
    told: Any = DBAPIError.instance(
        text,
        None,
        error,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=driver is not None and dialect.is_disconnect(error, driver, None),
        dialect=dialect,
    )
    return cast("DBAPIError", told)


def is_of_database(error: BaseException) -> bool:
    """Return whether the database failed, and not the code that was given its rows."""
    return isinstance(error, SQLAlchemyError)


def is_lost_connection(error: BaseException) -> bool:
    """Return whether the connection is gone, and with it everything that the session held."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def is_conflict(error: BaseException) -> bool:
    """Return whether Postgres chose this transaction to give way to another: the same again may well succeed."""
    return _sqlstate(error) in _CONFLICTS


def is_name_taken(error: DBAPIError) -> bool:
    """Return whether a table or an index could not be made because there is one of that name."""
    return _sqlstate(error) == _NAME_TAKEN or str(error.orig).endswith("already exists")  # as SQLite says it


def is_blocked(error: BaseException) -> bool:
    """Return whether another session held something for too long."""
    return _sqlstate(error) == _LOCK_NOT_AVAILABLE


def refuses_writes(error: BaseException) -> bool:
    """Return whether the database takes no such writes, whatever they hold: for its disk, a quota, or a right."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF
    state = _sqlstate(error) or ""
    return code in _NO_DISK_OF_SQLITE or state in _REFUSALS or state[:2] == _NO_RESOURCES


def is_read_only(error: BaseException) -> bool:
    """Return whether the server takes no writes, as one does whose place another has taken."""
    return isinstance(error, ReadOnlyDatabase) or _sqlstate(error) == _READ_ONLY


def is_outage(error: BaseException) -> bool:
    """Return whether the database failed rather than what it was asked."""
    is_failing = isinstance(error, OperationalError | InterfaceError | PoolTimeout)
    is_refused = isinstance(error, UnsuitableDatabase) or is_alien_session(error)
    return is_failing or is_lost_connection(error) or is_read_only(error) or is_refused


def as_unavailable(error: BaseException, what: str) -> StorageUnavailable:
    """Return the error that callers see: what failed, and the driver's reason in a line."""
    if isinstance(error, UnsuitableDatabase):
        return error
    if is_alien_session(error):
        return as_unsuitable(error)
    unavailable = StorageUnavailable(f"{what}: {_reason(error)}")
    unavailable.__cause__ = error
    return unavailable


def as_refusal(error: DBAPIError) -> StorageError:
    """Return the error for a statement that the database does not take.

    It has no cause: Postgres tells the row that it refuses, and with it a person's text.
    """
    return StorageError(f"the database refused a write: {_reason(error)}").with_traceback(error.__traceback__)


def _reason(error: BaseException) -> str:
    driver = getattr(error, "orig", None) or error
    reason = str(driver).strip().partition("\n")[0]
    code = getattr(driver, "sqlite_errorcode", 0) & 0xFF
    is_of_disk = code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL) or _sqlstate(error) in _NO_DISK
    return f"{reason}: its disk is full, or fails" if is_of_disk else reason


def _sqlstate(error: BaseException) -> str | None:
    return getattr(getattr(error, "orig", None), "sqlstate", None)
