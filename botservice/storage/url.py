"""DATABASE_URL, in every spelling that a PaaS hands out."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import certifi
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from botservice.core.errors import SettingsError

# pragma: allowlist nextline secret
_MUST_BE = "DATABASE_URL must be sqlite:///file.db or postgresql://user:password@host/name"

_SEVERAL_HOSTS = re.compile(
    r"(?P<before>postgres(?:ql)?(?:\+\w+)?://(?:[^/@]*@)?)(?P<hosts>[^/?@]*,[^/?@]*)(?P<after>.*)"
)
_HOST_AND_PORT = re.compile(r"(?P<host>\[[^]]+\]|[^:\[\]]+)(?::(?P<port>\d+))?")
_SEARCH_PATH = re.compile(r"(?:-c\s*|--)search[_-]path=((?:\\.|[^\\\s])*)", re.IGNORECASE)  # as libpq's options have it
_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")  # what Postgres takes without quotation marks
_OF_USER = "$user"


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """Where the data is.

    Attributes:
        path: The SQLite file, absolute; None on Postgres or for a database in memory.
        is_memory: Whether it is an SQLite database that ends with its process.
        schema: The one of Postgres that is asked for, in the address or in PGOPTIONS; None for the role's own.
    """

    url: URL
    path: Path | None
    is_memory: bool = False
    schema: str | None = None

    @property
    def name(self) -> str:
        """The address without what may be secret in it."""
        shown = self.url.set(drivername=self.url.get_backend_name(), query={})
        if self.url.host is None and "," in (hosts := str(self.url.query.get("host", ""))):
            return shown.set(host="hosts").render_as_string(hide_password=True).replace("@hosts/", f"@{hosts}/")
        return shown.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is embedded."""
        return self.url.get_backend_name() == "sqlite"

    @classmethod
    def parse(cls, text: str) -> "DatabaseUrl":
        """Return the address that text stands for.

        Raises:
            SettingsError: text is no address of a database that botservice knows. Its password is not repeated.
        """
        several = _SEVERAL_HOSTS.fullmatch(text)
        try:
            url = make_url(f"{several['before']}{several['after']}" if several else text)
        except (ArgumentError, ValueError):
            raise SettingsError(f"{_MUST_BE}; what it holds is no URL") from None
        backend = url.drivername.partition("+")[0]
        if backend in ("postgres", "postgresql"):
            if "@" in (url.host or ""):
                raise SettingsError(f"{_MUST_BE}; an @ in its password has to be written as %40")
            host = unquote(url.host or "")
            if host.startswith("/"):  # the folder of a socket, as libpq takes it
                url = url._replace(host=None).update_query_dict({"host": host})
            if several:
                url = url.update_query_dict(_of_several(several["hosts"]))
            url = url.update_query_dict(_find_authorities(url))
            return cls(url.set(drivername="postgresql+psycopg"), None, schema=_find_schema(url))
        if backend != "sqlite":
            raise SettingsError(f"{_MUST_BE}; {backend} is not supported")
        if url.host:
            raise SettingsError(f"{_MUST_BE}; it has two slashes after sqlite: where a file needs three")
        if url.database in (None, "", ":memory:"):
            return cls(url.set(drivername="sqlite"), None, is_memory=True)
        path = Path(unquote(url.database or "")).expanduser().absolute()
        return cls(URL.create("sqlite", database=str(path)), path)


def _find_schema(url: URL) -> str | None:
    options = url.query.get("options")
    if options is None:  # then libpq takes them from there
        return find_schema(os.environ.get("PGOPTIONS", ""), source="PGOPTIONS")
    return find_schema(options if isinstance(options, str) else " ".join(options), source="DATABASE_URL")


def _of_several(hosts: str) -> dict[str, str]:
    """Return several hosts as libpq takes them; it tries them in turn for one that can be written to."""
    pairs = [_HOST_AND_PORT.fullmatch(each) for each in hosts.split(",")]
    if not all(pairs):
        raise SettingsError(f"{_MUST_BE}; of several hosts, each must be host or host:port")
    found = [(pair["host"].strip("[]"), pair["port"] or "5432") for pair in pairs if pair is not None]
    return {"host": ",".join(host for host, _ in found), "port": ",".join(port for _, port in found)}


def _find_authorities(url: URL) -> dict[str, str]:
    """Return whom a TLS connection trusts, where the address does not name a file.

    The OpenSSL that comes with psycopg looks for the authorities of a system where this one may not have them.
    """
    named = url.query.get("sslrootcert") or os.environ.get("PGSSLROOTCERT")
    mode = url.query.get("sslmode") or os.environ.get("PGSSLMODE")
    is_checking = mode in ("verify-ca", "verify-full")
    if named == "system":
        mode = mode or "verify-full"  # as libpq has it
    elif named or not is_checking or (Path.home() / ".postgresql" / "root.crt").exists():
        return {}
    return {"sslrootcert": os.environ.get("SSL_CERT_FILE") or certifi.where(), "sslmode": str(mode)}


def find_schema(options: str, *, source: str) -> str | None:
    """Return the schema that options of a connection ask for, the first of a search path; None where they ask for none.

    Args:
        options: As libpq takes them, such as `-csearch_path=ada`.
        source: What they were read from, for the error.

    Raises:
        SettingsError: it has a name that does not stand for itself in SQL.
    """
    found = _SEARCH_PATH.findall(options)
    if not found:
        return None
    first = schemas_of(re.sub(r"\\(.)", r"\1", found[-1]))[0]
    if first == _OF_USER:
        return None
    if not _NAME.fullmatch(first):
        raise SettingsError(
            f"{source} asks for the schema {first!r}: the name of a schema must begin with a small letter or _, go on "
            "with small letters, digits and _, and must not begin with pg_, such as my_bot"
        )
    return first


def schemas_of(path: str) -> list[str]:
    """Return the schemas of a search path."""
    return [name.strip().strip('"') for name in path.split(",")]
