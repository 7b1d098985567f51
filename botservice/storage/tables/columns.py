"""Column types that read the same on SQLite and on Postgres."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Column, Dialect, ForeignKey, Integer, Text
from sqlalchemy.types import TypeDecorator

from botservice.core.messages import storable
from botservice.telemetry.logs import redact

# SQLite makes only INTEGER PRIMARY KEY an alias of its row id.
Id = BigInteger().with_variant(Integer, "sqlite")

_LONGEST_REASON = 2_000  # characters
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_JSON = json.JSONEncoder(separators=(",", ":"))


def context_id(*, is_key: bool = False, index: bool = False) -> Column[int]:
    """Return the column of the context that a row belongs to, and goes with."""
    refers = ForeignKey("contexts.id", ondelete="CASCADE")
    if is_key:
        return Column("context_id", Id, refers, primary_key=True, autoincrement=False)
    return Column("context_id", Id, refers, nullable=False, index=index)


class Timestamp(TypeDecorator[datetime]):
    """An aware UTC datetime, kept as whole microseconds since 1970: exact and sortable on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002 - the interface
        """Return value as microseconds; a naive datetime is refused by the subtraction."""
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[int | None], datetime | None]:  # noqa: ARG002 - the interface
        """Return what makes a datetime of stored microseconds: each message that is read has one."""
        return _read_moment


def _read_moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(0, 0, microseconds)


class Reason(TypeDecorator[str]):
    """What an error says, as far as it can be kept: others write it, and the row that tells of it must not fail."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Return value without secrets, and without what no database takes."""
        return None if value is None else storable(redact(value))[:_LONGEST_REASON]


class Json(TypeDecorator[Any]):
    """A JSON value kept as ASCII text, so that NUL and lone surrogates survive on every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Return value as compact JSON."""
        return None if value is None else _JSON.encode(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Any:  # noqa: ARG002 - the interface
        """Return the value that the text stands for."""
        return None if value is None else json.loads(value)
