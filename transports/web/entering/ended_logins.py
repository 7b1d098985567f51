"""Logins that were ended early: a kept copy of their cookie opens nothing any more, on any replica."""

import hashlib
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, insert, select

from botservice.storage.tables.access import ended_logins
from transports.web.backend import Backend
from transports.web.entering.access import LOGIN_SECONDS


class EndedLogins:
    """Ends logins, and knows those that have ended.

    A StorageError of its methods means that the database does not answer.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def end(self, cookie: str) -> None:
        """Have a login cookie open nothing any more."""
        storage, digest = self._backend.opened, _digest(cookie)
        if storage is None or await self.is_ended(cookie):
            return
        now = datetime.now(UTC)

        def write(connection: Connection) -> None:
            connection.execute(delete(ended_logins).where(ended_logins.c.expires_at < now))
            connection.execute(delete(ended_logins).where(ended_logins.c.digest == digest))
            expires_at = now + timedelta(seconds=LOGIN_SECONDS)
            connection.execute(insert(ended_logins).values(digest=digest, expires_at=expires_at))

        await storage.write(write)

    async def is_ended(self, cookie: str) -> bool:
        """Return whether a login cookie was ended."""
        if self._backend.opened is None:
            return False
        query = select(ended_logins.c.digest).where(ended_logins.c.digest == _digest(cookie))
        return await self._backend.opened.read(
            lambda connection: connection.execute(query).first() is not None, is_short=True
        )


def _digest(cookie: str) -> str:
    return hashlib.sha256(b"botservice ended login\0" + cookie.encode("utf-8", "surrogatepass")).hexdigest()
