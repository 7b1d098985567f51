"""Running the statements of every turn: compiled once, then handed to the driver as they are.

SQLAlchemy looks up, binds and wraps anew at each execution, which takes many times as long as SQLite takes to answer.
What stays SQLAlchemy's: the statement, the types of its columns, the connection with its transaction, and the errors.
"""

import contextlib
import itertools
from collections import deque, namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib import import_module
from operator import itemgetter
from typing import Any, TypeVar, overload

from greenlet import getcurrent, greenlet
from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import BindParameter, ClauseElement

from botservice.storage.failures import as_sqlalchemy_error
from botservice.storage.postgres_pipelines import as_told, queue_of, wait_for_all

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Values = Mapping[str, Any]
BEGIN_WRITING = "BEGIN IMMEDIATE"  # in SQLite: otherwise a transaction that has read could not go on to write
_LONGEST_ROOM = 1 << 15
_MOST_STATEMENTS = 1024  # of all databases that a process has open


class ResultRows:
    """What a statement gives; on Postgres it may not have come yet."""

    __slots__ = ("_read", "_rows")

    def __init__(self, rows: list[Any], read: Callable[[], list[Any]] | None = None) -> None:
        """Make rows that are there, or that read returns when they are asked for."""
        self._rows = rows
        self._read = read

    def all(self) -> list[Any]:
        """Return the rows, with their columns as attributes."""
        if self._read is not None:
            self._rows = self._read()
            self._read = None
        return self._rows

    def one_or_none(self) -> Any | None:
        """Return the first row, which is the only one."""
        rows = self.all()
        return rows[0] if rows else None

    def scalar_one_or_none(self) -> Any | None:
        """Return the first value of the only row."""
        rows = self.all()
        return rows[0][0] if rows else None

    def scalar_one(self) -> Any:
        """Return the first value of the only row, which is there."""
        return self.all()[0][0]


def of_each_database(make: Callable[[Callable[..., Any]], Any]) -> Callable[[Connection], Any]:
    """Return what gives a statement as a connection's database says it; make makes it from that database's INSERT.

    It is made once, when it is first needed: nobody loads SQLAlchemy's part for a database that is not used.
    """

    @cache
    def made(name: str) -> Any:
        return make(import_module(f"sqlalchemy.dialects.{name}").insert)

    return lambda connection: made(connection.dialect.name)


def upserting(table: Table, *keys: str) -> Callable[[Connection], Any]:
    """Return what gives the statement that writes a row in the place of the one with the same keys."""
    changed = [column.name for column in table.columns if column.name not in keys]
    return of_each_database(lambda insert: _replacing(insert(table), keys, changed))


def _replacing(new: Any, keys: Sequence[str], changed: Sequence[str]) -> Any:
    return new.on_conflict_do_update(index_elements=keys, set_={name: new.excluded[name] for name in changed})


def execute(connection: Connection, statement: ClauseElement, values: Values) -> ResultRows:
    """Run a statement with values for its parameters or columns, in the transaction that is open, and return its rows.

    On Postgres it is queued and not waited for: who needs the rows of several runs all of them first. Its error
    comes with its rows, or later: within a savepoint, look at the rows.

    For module constants alone: a statement is remembered as what it was compiled to.
    """
    compiled = _prepare(statement, connection.dialect).compiled(values)
    if connection.dialect.name == "sqlite":
        return ResultRows(_run(connection, compiled, values))
    return ResultRows([], _queue(connection, compiled, values))


def _run(connection: Connection, compiled: "_Compiled", values: Values) -> list[Any]:
    driver: Any = connection.connection.dbapi_connection
    try:
        cursor = driver.execute(compiled.text, compiled.bind(values))
        return compiled.read(cursor) if compiled.gives_rows else []
    except connection.dialect.loaded_dbapi.Error as error:
        raise as_sqlalchemy_error(connection, compiled.text, error) from error


def run_text(connection: Connection, text: str) -> None:
    """Run SQL such as BEGIN by the driver of SQLite: SQLAlchemy takes longer for it than SQLite."""
    driver: Any = connection.connection.dbapi_connection
    try:
        (driver.executescript if ";" in text else driver.execute)(text)  # a PRAGMA that it remembers does nothing
    except connection.dialect.loaded_dbapi.Error as error:
        raise as_sqlalchemy_error(connection, text, error) from error


def _queue(connection: Connection, compiled: "_Compiled", values: Values) -> Callable[[], list[Any]]:
    """Send a statement with the next ones, and return what waits for its rows."""
    driver_error: Any = connection.dialect.loaded_dbapi.Error
    try:
        queued = queue_of(connection).add(compiled.text, compiled.bind(values))
    except driver_error as error:
        raise as_told(connection, compiled.text, error) from error

    def read() -> list[Any]:
        if compiled.gives_rows:
            let_others_go_on()
        try:
            if queued.result is None:
                wait_for_all(connection)
            return compiled.read(queued) if compiled.gives_rows else []
        except driver_error as error:
            raise as_told(connection, compiled.text, error) from error

    return read


def execute_many(connection: Connection, statement: ClauseElement, rows: Sequence[Values]) -> None:
    """Run a statement once for each of rows, which all have values for the same names."""
    if connection.dialect.name != "sqlite":
        for values in rows:
            execute(connection, statement, values)
        return
    compiled = _prepare(statement, connection.dialect).compiled(rows[0])
    driver: Any = connection.connection.dbapi_connection
    try:
        driver.executemany(compiled.text, [compiled.bind(values) for values in rows])
    except connection.dialect.loaded_dbapi.Error as error:
        raise as_sqlalchemy_error(connection, compiled.text, error) from error


@overload
def interleave(
    first: Callable[[], A], second: Callable[[], B], /, *, connection: Connection | None = None
) -> tuple[A, B]: ...
@overload
def interleave(
    first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], /, *, connection: Connection | None = None
) -> tuple[A, B, C]: ...
@overload
def interleave(*functions: Callable[[], A], connection: Connection | None = None) -> tuple[A, ...]: ...
def interleave(*functions: Callable[[], Any], connection: Connection | None = None) -> tuple[Any, ...]:
    """Return what functions return, run in this thread until all have ended; the error of one ends all.

    They take turns on one connection: where one would wait for the database, the next goes on, so that what they ask
    travels together and all of them wait once. SQLite has nobody wait: there one runs after the other.

    Args:
        connection: The one that they use, which says whether they wait at all: a greenlet costs as much as a statement.
    """
    if len(functions) < 2 or (connection is not None and connection.dialect.name == "sqlite"):
        return tuple(function() for function in functions)
    results: dict[int, Any] = {}
    waiting = deque((place, greenlet(function)) for place, function in enumerate(functions))
    try:
        while waiting:
            for _ in range(len(waiting)):
                place, function = waiting.popleft()
                result = function.switch()
                if function.dead:
                    results[place] = result
                else:
                    waiting.append((place, function))
            if waiting:
                let_others_go_on()
    finally:
        for _, function in waiting:  # now and in this thread, not when the error is dropped
            with contextlib.suppress(BaseException):  # the first one is what is told
                function.throw()
    return tuple(results[place] for place in range(len(functions)))


def let_others_go_on() -> None:
    """Return when each function that this one is interleaved with has gone as far as it could without waiting."""
    parent = getcurrent().parent
    if parent is not None:
        parent.switch()


class _Compiled:
    """A statement in one dialect, for values with certain names."""

    def __init__(self, statement: Any, dialect: Dialect, sample: Values) -> None:
        columns = list(getattr(statement, "exported_columns", ()))
        compiled = statement.compile(dialect=dialect, column_keys=list(sample), for_executemany=not columns)
        assert isinstance(compiled, SQLCompiler)  # noqa: S101 - it is SQL
        state = compiled.construct_expanded_state(sample)
        given = {*sample, *itertools.chain.from_iterable(state.parameter_expansion.values())}
        names = state.positiontup if state.positiontup is not None else list(state.parameters)
        self.text = state.statement
        self.gives_rows = bool(columns)
        self._lists = list(state.parameter_expansion.items())
        made = {name: _bind_processor(bind, dialect) for name, bind in compiled.binds.items()}
        every = {**made, **state.processors}
        processors = {name: process for name, process in every.items() if process is not None}
        self._fixed = {name: state.parameters[name] for name in names if name not in given}
        self._processors = [(place, processors[name]) for place, name in enumerate(names) if name in processors]
        self._pick = _picker(names)
        self._names = None if state.positiontup is not None else names
        self._types = [column.type.dialect_impl(dialect) for column in columns]
        self._dialect = dialect
        self._results: list[tuple[int, Callable[[Any], Any]]] | None = None
        make_class: Any = namedtuple  # noqa: PYI024 - its names are known only now
        row = make_class("Row", [column.key for column in columns], rename=True)
        self._make_row: Callable[[Any], Any] = partial(tuple.__new__, row)  # its _make would count the values

    def bind(self, values: Values) -> Any:
        """Return values as the driver takes them."""
        if self._lists:
            spread = [zip(names, _filled(values[name]), strict=False) for name, names in self._lists]
            values = {**values, **dict(itertools.chain.from_iterable(spread))}
        found = self._pick({**values, **self._fixed} if self._fixed else values)
        if self._processors:
            found = list(found)
            for place, process in self._processors:
                if found[place] is not None:  # of any type, no value is none
                    found[place] = process(found[place])
        return found if self._names is None else dict(zip(self._names, found, strict=True))

    def read(self, cursor: Any) -> list[Any]:
        """Return what a cursor has as rows of the types of their columns."""
        found = cursor.fetchall()
        if self._results is None:  # some drivers say only with the result what they give for a type
            codes = [description[1] for description in cursor.description]
            made = [kind.result_processor(self._dialect, code) for kind, code in zip(self._types, codes, strict=True)]
            self._results = [(place, process) for place, process in enumerate(made) if process is not None]
        if not self._results:
            return [self._make_row(each) for each in found]
        rows = []
        for each in found:
            changed = list(each)
            for place, process in self._results:
                if changed[place] is not None:
                    changed[place] = process(changed[place])
            rows.append(self._make_row(changed))
        return rows


class _Prepared:
    """A statement in one dialect."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        self._statement = statement
        self._dialect = dialect
        binds = getattr(statement.compile(dialect=dialect), "binds", {})
        self._lists = [name for name, bind in binds.items() if bind.expanding]
        self._compiled: dict[tuple[object, ...], _Compiled] = {}

    def compiled(self, values: Values) -> _Compiled:
        """Return the compiled statement for values with these names, and lists of about these lengths."""
        rooms = {name: _room(len(values[name])) for name in self._lists} if self._lists else {}
        key = (*values, *rooms.values())
        found = self._compiled.get(key)
        if found is None:
            sample = {name: [None] * rooms[name] if name in rooms else None for name in values}
            found = self._compiled[key] = _Compiled(self._statement, self._dialect, sample)
        return found


def _room(length: int) -> int:
    """Return the length of list that a statement is compiled for: a few lengths serve all, the next power of two."""
    if length > _LONGEST_ROOM:  # Postgres takes 65,535 parameters
        return length
    return 1 << (length - 1).bit_length() if length else 0


def _filled(values: Collection[Any]) -> Iterator[Any]:
    """Return values and then one of them for ever: to be in a list twice is to be in it."""
    for value in values:
        yield value
    while values:
        yield value


@lru_cache(maxsize=_MOST_STATEMENTS)
def _prepare(statement: ClauseElement, dialect: Dialect) -> _Prepared:
    return _Prepared(statement, dialect)


def _picker(names: Sequence[str]) -> Callable[[Values], Sequence[Any]]:
    """Return what takes the values of these names, in their order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: [values[name] for name in names]


def _bind_processor(bind: BindParameter[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    return bind.type.dialect_impl(dialect).bind_processor(dialect)
