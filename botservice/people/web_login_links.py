"""Browser logins of persons: links that open a person's chat once, and the logins that keep it open.

What is known of a link or a login is its digest alone. A login is valid as long as the account that
asked for the link and the account in the browser belong to one person.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, Update, delete, func, insert, or_, select, update

from botservice.core.messages import Author
from botservice.people.identities import IDENTITIES, Identity, ensure_identity, identities_of, ids_of, join_identities
from botservice.people.names import browser_account, is_browser_account
from botservice.storage.database import Connection
from botservice.storage.tables.people import identities, web_links, web_logins

PLATFORM: Final = "web"
LINK_LIFETIME: Final = timedelta(minutes=10)
LOGIN_LIFETIME: Final = timedelta(days=30)
MOST_LINKS: Final = 5  # that an account is given in LINK_LIFETIME
MOST_LOGINS: Final = 10  # of an account; a new one takes the place of the oldest

_SECRET_BYTES: Final = 32
_ACCOUNT = identities.alias("account")


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser that is logged in.

    Attributes:
        asker: Who wrote /web.
        account: What they are called in browsers, such as "p42".
    """

    asker: Identity
    account: str


def new_secret() -> str:
    """Return a new secret for a link or a cookie: 256 random bits."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def offer_browser(connection: Connection, asker: Identity, secret: str, now: datetime) -> None:
    """Store the digest of a new link, which voids the person's older ones."""
    connection.execute(delete(web_links).where(web_links.c.expires_at <= now))
    connection.execute(_voiding(now).where(web_links.c.identity_id == asker.id))
    values = {"digest": _digest(secret), "identity_id": asker.id, "expires_at": now + LINK_LIFETIME}
    connection.execute(insert(web_links).values(values))


def has_enough_links(connection: Connection, asker: Identity, now: datetime) -> bool:
    """Return whether a person has been given as many links as are allowed for a while."""
    query = select(func.count()).select_from(web_links)
    of_asker = query.where(web_links.c.identity_id == asker.id, web_links.c.expires_at > now)
    return int(connection.execute(of_asker).scalar_one()) >= MOST_LINKS


def asker_of(connection: Connection, secret: str, now: datetime) -> Identity | None:
    """Return whose chat a link opens, or None if it is used, expired or unknown."""
    query = IDENTITIES.join(web_links, web_links.c.identity_id == identities.c.id)
    row = connection.execute(query.where(*_is_good(secret, now))).one_or_none()
    return None if row is None else Identity(*row)


def open_browser(connection: Connection, secret: str, cookie: str, now: datetime) -> Browser | None:
    """Use up a link and log a browser in; return None if it is used, expired or unknown."""
    asker = asker_of(connection, secret, now)
    used = connection.execute(_voiding(now).where(*_is_good(secret, now)).returning(web_links.c.digest))
    if asker is None or used.one_or_none() is None:
        return None
    account = _account_of(connection, asker, now)
    connection.execute(delete(web_logins).where(web_logins.c.expires_at <= now))
    of_asker = select(web_logins.c.digest).where(web_logins.c.identity_id == asker.id)
    oldest = of_asker.order_by(web_logins.c.created_at.desc()).offset(MOST_LOGINS - 1)
    digests = connection.execute(oldest).scalars().all()
    connection.execute(delete(web_logins).where(web_logins.c.digest.in_(digests)))
    values = {"digest": _digest(cookie), "identity_id": asker.id, "account_id": account.id, "created_at": now}
    connection.execute(insert(web_logins).values(values | {"expires_at": now + LOGIN_LIFETIME}))
    return Browser(asker, account.platform_id)


def find_browser(connection: Connection, cookie: str, now: datetime) -> Browser | None:
    """Return the browser that a cookie logs in, or None if the cookie is unknown or expired."""
    query = (
        IDENTITIES.add_columns(_ACCOUNT.c.platform_id.label("account"))
        .join(web_logins, web_logins.c.identity_id == identities.c.id)
        .join(_ACCOUNT, (_ACCOUNT.c.id == web_logins.c.account_id) & (_ACCOUNT.c.person_id == identities.c.person_id))
        .where(web_logins.c.digest == _digest(cookie), web_logins.c.expires_at > now)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else Browser(Identity(*row[:-1]), row.account)


def count_browsers(connection: Connection, person_id: int, now: datetime) -> int:
    """Return how many browsers are logged in as a person."""
    query = select(func.count()).select_from(web_logins).join(identities, identities.c.id == web_logins.c.identity_id)
    is_theirs = (identities.c.person_id == person_id) & (web_logins.c.expires_at > now)
    return int(connection.execute(query.where(is_theirs)).scalar_one())


def close_browser(connection: Connection, cookie: str) -> None:
    """End the login of a cookie."""
    connection.execute(delete(web_logins).where(web_logins.c.digest == _digest(cookie)))


def close_browsers(connection: Connection, person_id: int) -> None:
    """Log a person out everywhere, and void the links that were given to them."""
    theirs = ids_of(person_id)
    logins = or_(web_logins.c.identity_id.in_(theirs), web_logins.c.account_id.in_(theirs))
    connection.execute(delete(web_logins).where(logins))
    connection.execute(delete(web_links).where(web_links.c.identity_id.in_(theirs)))


def _account_of(connection: Connection, asker: Identity, now: datetime) -> Identity:
    """Return the account that a person has in browsers, made when they come for the first time."""
    for each in identities_of(connection, asker.person_id):
        if each.platform == PLATFORM and is_browser_account(each.platform, each.platform_id):
            return each
    author = Author(PLATFORM, browser_account(asker.id), asker.name)
    account = ensure_identity(connection, author, now)
    if account is None:
        raise AssertionError("an author with an id has an identity")
    join_identities(connection, asker, account)
    return account


def _voiding(now: datetime) -> Update:
    return update(web_links).where(web_links.c.used_at.is_(None)).values(used_at=now)


def _is_good(secret: str, now: datetime) -> tuple[ColumnElement[bool], ...]:
    return web_links.c.digest == _digest(secret), web_links.c.used_at.is_(None), web_links.c.expires_at > now


def _digest(secret: str) -> str:
    return hashlib.sha256(b"botservice browser\0" + secret.encode("utf-8", "surrogatepass")).hexdigest()
