"""The tables are where the address says: in its schema, in a database that can hold every text, or nowhere."""

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool
from standins.pgbouncer import needs_pgbouncer, pgbouncer

from botservice import Storage
from botservice.core.errors import SchemaMismatch, SettingsError, UnsuitableDatabase
from botservice.storage.engines import create_writer_engine
from botservice.storage.limits import StorageLimits
from botservice.storage.schema import SCHEMA_VERSION, migrate, read_version
from botservice.storage.url import DatabaseUrl


def asking_for(url, path):
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{path}"


def execute(url, *statements):
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool, isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        for statement in statements:
            found = connection.execute(text(statement))
    return found


def schemas_with_tables(url):
    query = "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename = 'contexts' ORDER BY schemaname"
    return list(execute(url, query).scalars())


@needs_pgbouncer
async def test_a_pooler_that_leaves_out_the_schema_is_refused_before_a_table_is_made(own_postgres_url):
    with pgbouncer(own_postgres_url, mode="session", ignore_startup_parameters="extra_float_digits,options") as pooled:
        for name in ("ada", "ben"):
            with pytest.raises(UnsuitableDatabase, match=f"asks for the schema {name}.*ALTER ROLE"):
                await Storage.open(asking_for(pooled, name), migrate=True)
            with pytest.raises(UnsuitableDatabase, match=f"asks for the schema {name}"):
                Storage.open(asking_for(pooled, name), migrate=True).migrate()
    assert schemas_with_tables(own_postgres_url) == []


async def test_of_several_schemas_the_first_is_made_and_used(own_postgres_url):
    async with Storage.open(own_postgres_url, migrate=True):
        pass
    async with Storage.open(asking_for(own_postgres_url, "bot,public"), migrate=True) as bot:
        assert await bot.read(read_version) == SCHEMA_VERSION
    assert schemas_with_tables(own_postgres_url) == ["bot", "public"]


async def test_a_schema_that_is_missing_is_not_replaced_by_another(own_postgres_url):
    async with Storage.open(own_postgres_url, migrate=True):
        pass
    with pytest.raises(SchemaMismatch, match=r"no schema bot .*botservice migrate"):
        await Storage.open(asking_for(own_postgres_url, "bot,public"))


@pytest.mark.parametrize("name", ["my-bot", "1bot", "Ada", "%22Ada%22", "pg_bot", "a.b", ""])
def test_a_name_that_postgres_would_read_otherwise_is_refused_with_the_rule(name):
    with pytest.raises(SettingsError, match="must begin with a small letter"):
        DatabaseUrl.parse(asking_for("postgresql://bot@db/bots", name))


@pytest.mark.parametrize(
    ("options", "schema"),
    [
        ("-csearch_path%3Dada", "ada"),
        ("-c%20search_path%3Dada%2Cpublic", "ada"),
        ("--search_path%3Dada", "ada"),
        ("-cstatement_timeout%3D5%20-csearch_path%3Dada", "ada"),
        ("-csearch_path%3D%22ada%22", "ada"),
        ("-csearch_path%3Dada%2C%5C%20public", "ada"),
        ("-csearch_path%3D%22$user%22%2Cpublic", None),
        ("-cstatement_timeout%3D5", None),
    ],
)
def test_the_schema_is_found_however_the_options_say_it(options, schema):
    assert DatabaseUrl.parse(f"postgresql://bot@db/bots?options={options}").schema == schema


def test_options_of_the_environment_count_where_the_address_has_none(monkeypatch):
    monkeypatch.setenv("PGOPTIONS", "-csearch_path=ada")
    assert DatabaseUrl.parse("postgresql://bot@db/bots").schema == "ada"
    assert DatabaseUrl.parse("postgresql://bot@db/bots?options=-csearch_path%3Dben").schema == "ben"


async def test_a_role_whose_name_has_capitals_gets_its_own_schema(own_postgres_url):
    execute(own_postgres_url, 'DROP ROLE IF EXISTS "Ada"', 'CREATE ROLE "Ada" LOGIN SUPERUSER', 'CREATE SCHEMA "Ada"')
    try:
        async with Storage.open(own_postgres_url, migrate=True):
            pass
        url = make_url(own_postgres_url).set(username="Ada").render_as_string(hide_password=False)
        async with Storage.open(url, migrate=True):
            pass
        assert schemas_with_tables(own_postgres_url) == ["Ada", "public"]
        indexes = "SELECT count(*), schemaname FROM pg_indexes WHERE schemaname IN ('Ada', 'public') GROUP BY 2"
        counts = [row[0] for row in execute(own_postgres_url, indexes)]
        assert counts[0] == counts[1], "it looked for its indexes in its own schema"
    finally:
        execute(own_postgres_url, 'DROP OWNED BY "Ada" CASCADE', 'DROP ROLE "Ada"')


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
async def test_a_database_that_is_not_utf_8_is_refused_by_name(own_postgres_url, encoding):
    name = f"botservice_{encoding.lower()}"
    execute(
        own_postgres_url,
        f"DROP DATABASE IF EXISTS {name}",
        f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    url = make_url(own_postgres_url).set(database=name).render_as_string(hide_password=False)
    try:
        for migrate in (True, False):
            with pytest.raises(UnsuitableDatabase, match=f"{name} has the encoding {encoding}.*ENCODING 'UTF8'"):
                await Storage.open(url, migrate=migrate)
    finally:
        execute(own_postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("migrate", [True, False])
@pytest.mark.parametrize(
    "tables",
    [
        ["CREATE TABLE messages (id int)"],
        ["CREATE TABLE notes (id int)"],
        ["CREATE TABLE messages (id int)", "CREATE TABLE alembic_version (version_num text)"],
        [
            "CREATE TABLE messages (id int)",
            "CREATE TABLE alembic_version (version_num text)",
            "INSERT INTO alembic_version VALUES ('ae1027a6acf')",
        ],
    ],
)
async def test_tables_of_another_program_are_recognised_and_left_alone(own_postgres_url, tables, migrate):
    execute(own_postgres_url, *tables)
    with pytest.raises(SchemaMismatch, match=r"tables of another program.*a schema of its own"):
        await Storage.open(own_postgres_url, migrate=migrate)
    assert schemas_with_tables(own_postgres_url) == []
    async with Storage.open(asking_for(own_postgres_url, "bot"), migrate=True) as bot:
        assert await bot.read(read_version) == SCHEMA_VERSION


async def test_the_version_table_of_another_program_is_left_alone(own_postgres_url):
    theirs = ["CREATE TABLE alembic_version (version_num text)", "INSERT INTO alembic_version VALUES ('0042')"]
    execute(own_postgres_url, *theirs)
    for _ in range(2):
        async with Storage.open(own_postgres_url, migrate=True) as bot:
            assert await bot.read(read_version) == SCHEMA_VERSION
    assert list(execute(own_postgres_url, "SELECT version_num FROM alembic_version")) == [("0042",)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_view_of_another_program_in_the_way_is_named_and_nothing_changes(kind, request, tmp_path):
    url = f"sqlite:///{tmp_path / 'bot.db'}" if kind == "sqlite" else request.getfixturevalue("own_postgres_url")
    where = DatabaseUrl.parse(url)
    engine = create_writer_engine(where, StorageLimits())
    with engine.begin() as connection:
        connection.execute(text("CREATE VIEW alerts AS SELECT 1 AS id"))
    with pytest.raises(SchemaMismatch, match=r"alerts.* already exists.*Nothing has changed.*botservice copy"):
        migrate(where)
    with engine.begin() as connection:
        assert read_version(connection) is None
        connection.execute(text("DROP VIEW alerts"))
    assert migrate(where) == SCHEMA_VERSION
    engine.dispose()
