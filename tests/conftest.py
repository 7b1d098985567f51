"""Databases for tests: every test gets an empty one with the newest tables, on SQLite and on a real Postgres."""

import asyncio
import functools
import gc
import itertools
import os
import shutil
import signal
import tempfile
import zlib
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import certifi
import pytest
from environment import set_environment
from sqlalchemy import Connection, Engine, create_engine, make_url
from sqlalchemy.pool import NullPool
from standins.compiled import share_compiled
from standins.patience import PATIENT
from standins.postgres_debian import debian_postgres
from standins.postgres_server import postgres_server

from botservice import AgentContext, Storage
from botservice.storage.tables.columns import metadata

pytest_plugins = ["drawn", "jitter"]
_TEMPLATE = "botservice_template"
_numbers = itertools.count(1)
_KINDS = ("storage_url", "kind", "database")
"""Parameters that are kinds of databases."""
_SECONDS = 300.0
"""What a test may take that says nothing else."""
_MOST_BYTES_TO_DELETE = 2 * 1024 * 1024
_SIZES = "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
_KEPT = "schema_compatibility"
"""A table that says which programs work on the tables, and nothing of what they do."""
_RESTART = (
    "SELECT setval(quote_ident(sequencename)::regclass, start_value, false) FROM pg_sequences "
    "WHERE last_value IS NOT NULL"
)
_MEMORY = "/dev/shm"
"""A folder in memory, on Linux: every commit of SQLite waits for the disk elsewhere."""
_AUTHORITIES = Path(__file__).parent / "data" / "nobody.pem"
_BYTES_OF_A_RUN = 4 * 1024 * 1024 * 1024
_SPOKEN_OF = {"slow", "browser"}
"""Marks that the text of a file, or its path, names where a test of it has them."""
_SERVED_BY = {"sqlite": "sqlite_template", "postgres": "postgres_uri"}

share_compiled()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a person choose the databases."""
    parser.addoption(
        "--db", choices=("sqlite", "postgres", "both"), default="both", help="run the tests on these databases only"
    )
    parser.addoption(
        "--postgres", choices=("wheel", "debian"), default="wheel", help="run the tests on this build of Postgres"
    )
    parser.addoption("--one-of", type=int, default=1, metavar="N", help="run one case each of one test in N only")


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_configure(config: pytest.Config) -> None:
    """Choose the environment, have files in memory where there is room, trust nobody, and let processes hear Ctrl+C."""
    if tempfile.gettempdir() == "/tmp" and _has_room(_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY
    home = tempfile.mkdtemp(prefix="botservice-home-")
    config.add_cleanup(functools.partial(shutil.rmtree, home, ignore_errors=True))
    set_environment(home)
    # No client of a test leaves this machine, and reading 140 authorities takes longer than most tests.
    certifi.where = lambda: str(_AUTHORITIES)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so is told whoever runs in a shell's background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _has_room(folder: str) -> bool:
    """Return whether a folder takes the files of a run, programs among them."""
    if not os.access(folder, os.W_OK):
        return False
    about = os.statvfs(folder)
    return not about.f_flag & os.ST_NOEXEC and about.f_bavail * about.f_frsize > _BYTES_OF_A_RUN


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Load no file that does not speak of a mark, where tests with one are all that is wanted: most of them do not."""
    wanted = set(config.option.markexpr.split()) - {"or"}
    if not wanted or not wanted <= _SPOKEN_OF or not collection_path.name.startswith("test_"):
        return None
    return None if any(_speaks_of(collection_path, mark) for mark in wanted) else True


@functools.cache
def _speaks_of(path: Path, mark: str) -> bool:
    return mark in str(path.relative_to(Path(__file__).parent)) or mark in path.read_text()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of databases that were not chosen, and what is not among one of N."""
    chosen = [item for item in items if not _is_left_out(item, config.getoption("--db"))]
    chosen = _sample(chosen, config.getoption("--one-of"))
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen
    items.sort(key=_expected_seconds, reverse=True)


def _expected_seconds(item: pytest.Item) -> float:
    """Return the time that a test may take where it takes long, else 0: begun last, it alone would be waited for."""
    if not any(map(item.get_closest_marker, ("slow", "browser"))):
        return 0.0
    limit = item.get_closest_marker("timeout")
    return float(limit.args[0]) if limit is not None else _SECONDS


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the garbage collector look at what tests make, and not at all modules and tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.set_threshold(2_000, 10, 25)
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs a browser, and refuse a mark that its file or folder does not name: it would not be found."""
    if "browser" in _fixtures_of(item):
        item.add_marker("browser")
    for mark in _SPOKEN_OF:
        if item.get_closest_marker(mark) is not None and not _speaks_of(item.path, mark):
            raise pytest.UsageError(f"{item.nodeid} is marked {mark}, and {item.path} does not speak of it")


def _is_left_out(item: pytest.Item, database: str) -> bool:
    """Return whether a test is of a database that was not chosen, or says on Postgres what it said on SQLite."""
    used = _fixtures_of(item)
    if database == "both":
        return "postgres_uri" in used and item.get_closest_marker("any_database") is not None
    return {"sqlite": "postgres_uri", "postgres": "sqlite_template"}[database] in used


def _sample(items: list[pytest.Item], one_of: int) -> list[pytest.Item]:
    """Return one case each of one test in N of each room, drawn by its name; where N is 1, every case of every test."""
    if one_of == 1:
        return items
    first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
    rooms: dict[str, list[str]] = {}
    for name in sorted(first, key=lambda name: zlib.crc32(name.encode())):
        rooms.setdefault(name.split("/")[1], []).append(name)
    drawn = {name for names in rooms.values() for name in names[::one_of]}
    return [item for name, item in reversed(first.items()) if name in drawn]


def _fixtures_of(item: pytest.Item) -> set[str]:
    """Return the fixtures that a test uses, also through the kind of database that it is run with."""
    used = set(getattr(item, "fixturenames", ()))
    chosen = getattr(getattr(item, "callspec", None), "params", {})
    return used | {_SERVED_BY[chosen[name]] for name in _KINDS if chosen.get(name) in _SERVED_BY}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make what a test logged sendable between processes: some tests log lone surrogates on purpose."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(scope="session")
def postgres_uri(pytestconfig: pytest.Config) -> Iterator[str]:
    """The address of a Postgres server of this session, with its superuser."""
    if pytestconfig.getoption("--postgres") == "debian":
        with debian_postgres("botservice-postgres-") as uri:
            yield uri
        return
    with postgres_server("botservice-postgres-") as server:
        yield server.get_uri()


@pytest.fixture(scope="session")
def postgres_template(postgres_uri: str) -> str:
    """The address of a Postgres database with tables, to be copied."""
    # A test's database need not survive a power cut, and a commit is ten times as fast without. Without autovacuum no
    # statistics come from the tests before.
    spared = ("fsync", "synchronous_commit", "full_page_writes", "autovacuum")
    settings = [f"ALTER SYSTEM SET {name} = off" for name in spared]
    _execute(postgres_uri, *settings, "SELECT pg_reload_conf()", f"CREATE DATABASE {_TEMPLATE}")
    _migrate(_database(postgres_uri, _TEMPLATE))
    return _database(postgres_uri, _TEMPLATE)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with tables, to be copied."""
    path = tmp_path_factory.mktemp("template") / "template.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The address of an SQLite file with tables and nothing in them."""
    shutil.copyfile(sqlite_template, tmp_path / "bot.db")
    return f"sqlite:///{tmp_path / 'bot.db'}"


@pytest.fixture(scope="session")
def postgres_database(postgres_uri: str, postgres_template: str) -> Iterator[tuple[str, Engine]]:
    """A Postgres database that one test after the other uses, with what empties it."""
    name = f"botservice_{next(_numbers)}"
    _execute(postgres_uri, f"CREATE DATABASE {name} TEMPLATE {make_url(postgres_template).database}")
    url = _database(postgres_uri, name)
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    yield url, engine
    engine.dispose()


@pytest.fixture
def postgres_url(postgres_database: tuple[str, Engine]) -> str:
    """The address of a Postgres database with tables and nothing in them."""
    url, engine = postgres_database
    with engine.connect() as connection:
        # Processes that a test killed may have left sessions behind, with their locks; they are waited for.
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        _empty(connection)
    return url


@pytest.fixture
def own_postgres_url(postgres_uri: str) -> Iterator[str]:
    """The address of an empty Postgres database without tables, for this test alone."""
    name = f"botservice_{next(_numbers)}"
    _execute(postgres_uri, f"CREATE DATABASE {name}")
    yield _database(postgres_uri, name)
    _execute(postgres_uri, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def storage_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database with tables; the test runs once on each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def storage(storage_url: str) -> AsyncIterator[Storage]:
    """An open, empty storage; the test runs once on each kind of database."""
    async with Storage.open(storage_url, limits=PATIENT) as opened:
        yield opened


@pytest.fixture
async def sqlite_storage(sqlite_url: str) -> AsyncIterator[Storage]:
    """An open, empty storage on SQLite, for what has nothing to do with the database."""
    async with Storage.open(sqlite_url) as opened:
        yield opened


@pytest.fixture
async def postgres_storage(postgres_url: str) -> AsyncIterator[Storage]:
    """An open, empty storage on Postgres, for what SQLite has no need of."""
    async with Storage.open(postgres_url, limits=PATIENT) as opened:
        yield opened


@pytest.fixture
async def context(storage: Storage) -> AgentContext:
    """A new conversation in `storage`."""
    return await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "1"})


def _migrate(url: str) -> None:
    async def migrate() -> None:
        async with Storage.open(url, migrate=True):
            pass

    asyncio.run(migrate())


def _empty(connection: Connection) -> None:
    """Delete all rows, and number those that come from 1 again.

    TRUNCATE makes a new file for each table and index, which takes ten times as long as deleting what most tests leave.
    """
    sizes = dict(connection.exec_driver_sql(_SIZES).all())
    emptied = metadata.tables.keys() - {_KEPT}
    if sum(sizes.values()) > _MOST_BYTES_TO_DELETE:
        connection.exec_driver_sql(f"TRUNCATE {', '.join(emptied)} RESTART IDENTITY")
        return
    connection.exec_driver_sql("SET session_replication_role = replica")  # no trigger runs, no reference is looked for
    for name in emptied:
        if sizes[name]:
            connection.exec_driver_sql(f"DELETE FROM {name}")
    connection.exec_driver_sql(_RESTART)


def _database(uri: str, name: str) -> str:
    return make_url(uri).set(database=name).render_as_string(hide_password=False)


def _execute(uri: str, *statements: str) -> None:
    engine = create_engine(make_url(uri).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()
