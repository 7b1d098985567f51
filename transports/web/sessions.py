"""Browser sessions: a secret in a cookie, and the session id that is derived from it.

The secret stays in the browser. What is stored, listed and logged is its digest, so that a reader of a context's keys
cannot enter the chat.
"""

import hashlib
import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from botservice.people.access_queries import is_login_ended, store_ended_login
from botservice.people.identities import Browser
from transports.web.backend import Backend
from transports.web.owner_token import LOGIN_SECONDS, cookie_name

SESSION_COOKIE: Final = "botservice-session"
SESSION_SECONDS: Final = 400 * 24 * 3600  # the longest that browsers keep a cookie (RFC 6265bis, 5.5)

_SECRET_BYTES: Final = 24  # 192 random bits
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{32}")


def new_conversation() -> str:
    """Return the name of a new conversation. It opens nothing by itself: only next to its session's secret."""
    return secrets.token_hex(8)


def session_of(secret: str) -> str:
    """Return the id of the session that secret opens: 128 bits in hex."""
    return hashlib.sha256(b"botservice web session\0" + secret.encode()).hexdigest()[:32]


def find_secret(request: HTTPConnection) -> str | None:
    """Return the secret that a request brings along; cookies of earlier versions have no prefix."""
    names = (cookie_name(SESSION_COOKIE, is_https=True), SESSION_COOKIE)
    secrets_given = (request.cookies.get(name, "") for name in names)
    return next((secret for secret in secrets_given if _SECRET.fullmatch(secret)), None)


def find_session(request: HTTPConnection) -> str | None:
    """Return the id of the session that a request belongs to.

    In a browser that a link has opened it is its person's own, whatever the cookie is: the same in all their browsers.
    """
    secret, browser = find_secret(request), browser_of(request)
    if browser is not None:
        return browser.account
    return None if secret is None else session_of(secret)


def open_session(request: HTTPConnection) -> tuple[str, str | None]:
    """Return the session of a request, and the secret to be kept for it; a new one where the browser has none."""
    session, secret = find_session(request), find_secret(request)
    if session is not None:
        return session, secret
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    return session_of(secret), secret


def browser_of(request: HTTPConnection) -> Browser | None:
    """Return the browser that the gate has found for a request, or None for the owner's."""
    return getattr(request.state, "browser", None)


def drop_session(response: Response, *, is_https: bool) -> None:
    """Delete the session's cookie: another person has logged in."""
    for name in {cookie_name(SESSION_COOKIE, is_https=is_https), SESSION_COOKIE}:
        response.delete_cookie(name, path="/", secure=is_https, httponly=True, samesite="lax")


def set_cookie(response: Response, name: str, value: str, *, seconds: int, is_https: bool) -> None:
    """Give the browser a cookie that scripts and other sites do not get."""
    name = cookie_name(name, is_https=is_https)
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=is_https, path="/")


class EndedLogins:
    """Ends logins, and knows those that have ended.

    A StorageError of its methods means that the database does not answer.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def end(self, cookie: str) -> None:
        """Have a login cookie open nothing any more."""
        if await self.is_ended(cookie):
            return
        digest, now = _digest(cookie), datetime.now(UTC)
        expires_at = now + timedelta(seconds=LOGIN_SECONDS)
        await self._backend.storage.write(lambda connection: store_ended_login(connection, digest, now, expires_at))

    async def is_ended(self, cookie: str) -> bool:
        """Return whether a login cookie was ended."""
        if self._backend.opened is None:
            return False
        digest = _digest(cookie)
        return await self._backend.opened.read(lambda connection: is_login_ended(connection, digest))


def _digest(cookie: str) -> str:
    return hashlib.sha256(b"botservice ended login\0" + cookie.encode("utf-8", "surrogatepass")).hexdigest()
