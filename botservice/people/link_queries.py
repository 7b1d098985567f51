"""Every statement of links between accounts: codes of /link, and the links and logins of browsers.

Of a code, a link or a login, the database has the digest alone. A login is valid as long as the account that asked for
the link and the account in the browser belong to one person.
"""

import hashlib
from datetime import datetime

from sqlalchemy import ColumnElement, Update, and_, delete, func, insert, or_, select, update

from botservice.core.messages import Author
from botservice.people.identities import (
    CODE_LIFETIME,
    GUESSING,
    LINK_LIFETIME,
    LOGIN_LIFETIME,
    MAX_GUESSES,
    MOST_LINKS,
    MOST_LOGINS,
    PLATFORM,
    Browser,
    Identity,
    LinkProblem,
    Offer,
)
from botservice.people.names import browser_account, is_browser_account
from botservice.people.queries import IDENTITIES, ensure_identity, identities_of, ids_of, join_identities
from botservice.storage.database import Connection, Row
from botservice.storage.tables.people import identities, link_codes, persons, web_links, web_logins

# Linking codes


def offer_link(connection: Connection, asker: Identity, code: str, now: datetime) -> None:
    """Store the digest of a linking code of the asker, which voids their older ones."""
    connection.execute(delete(link_codes).where(link_codes.c.identity_id == asker.id))
    connection.execute(delete(link_codes).where(link_codes.c.expires_at <= now))
    values = {"identity_id": asker.id, "code_hash": _digest_of_code(code), "expires_at": now + CODE_LIFETIME}
    connection.execute(insert(link_codes).values(values))


def take_code(connection: Connection, giver: Identity, code: str, now: datetime) -> Offer | LinkProblem:
    """Record that a person entered a code; nothing is joined yet. A code works only for the first who enters it."""
    failed, since = connection.execute(
        select(persons.c.failed_guesses, persons.c.guessing_since)
        .where(persons.c.id == giver.person_id)
        .with_for_update()  # their guesses in other chats are counted before this one
    ).one()
    is_fresh = since is None or since <= now - GUESSING
    if failed >= MAX_GUESSES and not is_fresh:
        return LinkProblem.GUESSING
    is_good = and_(
        link_codes.c.code_hash == _digest_of_code(code),
        link_codes.c.expires_at > now,
        link_codes.c.identity_id != giver.id,
        or_(link_codes.c.other_identity_id.is_(None), link_codes.c.other_identity_id == giver.id),
    )
    asker_id = connection.execute(select(link_codes.c.identity_id).where(is_good)).scalar_one_or_none()
    if asker_id is not None and _read_identity(connection, asker_id).person_id == giver.person_id:
        return LinkProblem.SAME
    taking = update(link_codes).where(is_good).values(other_identity_id=giver.id).returning(link_codes)
    taken = connection.execute(taking).one_or_none()  # another process may have been faster since
    if taken is None:
        change = update(persons).where(persons.c.id == giver.person_id)
        guesses = {"failed_guesses": 1, "guessing_since": now} if is_fresh else {"failed_guesses": failed + 1}
        connection.execute(change.values(guesses))
        return LinkProblem.UNKNOWN
    return _offer(connection, taken)


def accept_offer(connection: Connection, giver: Identity, offer_id: int, now: datetime) -> Offer | None:
    """Record that the person who entered a code agrees; return None if the offer is not theirs or expired."""
    change = update(link_codes).where(
        link_codes.c.id == offer_id, link_codes.c.other_identity_id == giver.id, link_codes.c.expires_at > now
    )
    row = connection.execute(change.values(is_accepted=True).returning(link_codes)).one_or_none()
    return None if row is None else _offer(connection, row)


def offer_of(connection: Connection, asker: Identity, now: datetime) -> Offer | None:
    """Return the open offer of the asker."""
    query = select(link_codes).where(link_codes.c.identity_id == asker.id, link_codes.c.expires_at > now)
    row = connection.execute(query).one_or_none()
    return None if row is None else _offer(connection, row)


def confirm_offer(connection: Connection, asker: Identity, offer_id: int, now: datetime) -> Identity | None:
    """Join two accounts whose persons both agreed; return the other one, or None if there was no such offer."""
    offer = offer_of(connection, asker, now)
    if offer is None or offer.id != offer_id or offer.giver is None or not offer.is_accepted:
        return None
    connection.execute(delete(link_codes).where(link_codes.c.id == offer.id))
    join_identities(connection, offer.asker, offer.giver)
    return offer.giver


def _offer(connection: Connection, row: Row[*tuple[object, ...]]) -> Offer:
    giver = None if row.other_identity_id is None else _read_identity(connection, row.other_identity_id)
    return Offer(row.id, _read_identity(connection, row.identity_id), giver, row.is_accepted)


def _read_identity(connection: Connection, identity_id: int) -> Identity:
    return Identity(*connection.execute(IDENTITIES.where(identities.c.id == identity_id)).one())


def _digest_of_code(code: str) -> str:
    letters = "".join(letter for letter in code.upper() if letter.isalnum())
    return hashlib.sha256(b"botservice link code\0" + letters.encode()).hexdigest()


# Logins of browsers

_ACCOUNT = identities.alias("account")


def offer_browser(connection: Connection, asker: Identity, secret: str, now: datetime) -> None:
    """Store the digest of a new link, which voids the person's older ones."""
    connection.execute(delete(web_links).where(web_links.c.expires_at <= now))
    connection.execute(_voiding(now).where(web_links.c.identity_id == asker.id))
    values = {"digest": _digest_of_secret(secret), "identity_id": asker.id, "expires_at": now + LINK_LIFETIME}
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
    values = {"digest": _digest_of_secret(cookie), "identity_id": asker.id, "account_id": account.id, "created_at": now}
    connection.execute(insert(web_logins).values(values | {"expires_at": now + LOGIN_LIFETIME}))
    return Browser(asker, account.platform_id)


def find_browser(connection: Connection, cookie: str, now: datetime) -> Browser | None:
    """Return the browser that a cookie logs in, or None if the cookie is unknown or expired."""
    query = (
        IDENTITIES.add_columns(_ACCOUNT.c.platform_id.label("account"))
        .join(web_logins, web_logins.c.identity_id == identities.c.id)
        .join(_ACCOUNT, (_ACCOUNT.c.id == web_logins.c.account_id) & (_ACCOUNT.c.person_id == identities.c.person_id))
        .where(web_logins.c.digest == _digest_of_secret(cookie), web_logins.c.expires_at > now)
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
    connection.execute(delete(web_logins).where(web_logins.c.digest == _digest_of_secret(cookie)))


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
    return web_links.c.digest == _digest_of_secret(secret), web_links.c.used_at.is_(None), web_links.c.expires_at > now


def _digest_of_secret(secret: str) -> str:
    return hashlib.sha256(b"botservice browser\0" + secret.encode("utf-8", "surrogatepass")).hexdigest()
