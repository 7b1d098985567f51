"""DATABASE_URL, in every spelling that a PaaS hands out."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from botservice.errors import SettingsError
from botservice.storage.postgres.asked_schema import find_schema

# pragma: allowlist nextline secret
_MUST_BE = "DATABASE_URL must be sqlite:///file.db or postgresql://user:password@host/name"


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
        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            raise SettingsError(f"{_MUST_BE}; what it holds is no URL") from None
        backend = url.drivername.partition("+")[0]
        if backend in ("postgres", "postgresql"):
            if "@" in (url.host or ""):
                raise SettingsError(f"{_MUST_BE}; an @ in its password has to be written as %40")
            host = unquote(url.host or "")
            if host.startswith("/"):  # the folder of a socket, as libpq takes it
                url = url._replace(host=None).update_query_dict({"host": host})
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
