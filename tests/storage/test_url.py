"""Addresses of Postgres with several hosts, and with TLS that is checked."""

import certifi
import pytest
from sqlalchemy import make_url

from botservice import Storage
from botservice.core.errors import SettingsError
from botservice.storage.url import DatabaseUrl


def asked(url):
    return dict(DatabaseUrl.parse(url).url.query)


def test_several_hosts_are_handed_on_with_their_ports():
    where = DatabaseUrl.parse("postgresql://bot:secret@one:6000,two,[::1]:7000/bots?options=-csearch_path%3Dada")
    assert (where.url.query["host"], where.url.query["port"]) == ("one,two,::1", "6000,5432,7000")
    assert (where.url.username, where.url.password, where.url.database) == ("bot", "secret", "bots")
    assert where.schema == "ada"
    assert where.name == "postgresql://bot:***@one,two,::1/bots"


@pytest.mark.parametrize("hosts", ["one,", ",two", "one:x,two", "one,two:"])
def test_of_several_hosts_each_has_to_be_one(hosts):
    with pytest.raises(SettingsError, match="each must be host or host:port"):
        DatabaseUrl.parse(f"postgresql://bot:secret@{hosts}/bots")


async def test_of_several_hosts_the_one_that_is_there_is_used(postgres_url):
    folder = make_url(postgres_url).query["host"]
    url = f"postgresql://postgres@/{make_url(postgres_url).database}?host=/nowhere,{folder}"
    async with Storage.open(url) as storage:
        await storage.ping()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PGSSLROOTCERT", "PGSSLMODE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "query", ["sslrootcert=system", "sslmode=verify-full", "sslmode=verify-full&sslrootcert=system"]
)
def test_the_authorities_of_certifi_are_trusted_where_no_file_is_named(home, query):
    assert asked(f"postgresql://bot@db/bots?{query}") == {"sslrootcert": certifi.where(), "sslmode": "verify-full"}


def test_a_file_that_is_named_or_is_where_libpq_looks_stays(home, monkeypatch):
    named = "sslmode=verify-full&sslrootcert=/etc/ca.pem"
    assert asked(f"postgresql://bot@db/bots?{named}")["sslrootcert"] == "/etc/ca.pem"
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/own.pem")
    assert asked("postgresql://bot@db/bots?sslrootcert=system")["sslrootcert"] == "/etc/own.pem"
    (home / ".postgresql").mkdir()
    (home / ".postgresql" / "root.crt").touch()
    assert asked("postgresql://bot@db/bots?sslmode=verify-full") == {"sslmode": "verify-full"}
    assert asked("postgresql://bot@db/bots?sslmode=require") == {"sslmode": "require"}
