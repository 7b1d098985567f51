"""Every statement of accounts: persons, their accounts on platforms, who is seen in a chat, and links between accounts.

Of a code, a link or a login, the database has the digest alone. A login is valid as long as the account that asked for
the link and the account in the browser belong to one person.
"""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from botservice.core.messages import Author, storable
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
    is_browser_of,
)
from botservice.people.names import browser_account, is_browser_account
from botservice.storage.database import Connection, Row
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conditions import MESSAGE_HAS_AUTHOR, MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import contexts, messages
from botservice.storage.tables.people import identities, link_codes, persons, web_links, web_logins

# Persons and their accounts

# The names of a person on all linked platforms; the name on this platform is always among them.
PERSON_NAMES: Final = select(bindparam("person", type_=Text).label("name")).union_all(
    select(identities.c.platform + ":" + identities.c.platform_id).where(
        identities.c.person_id.in_(
            select(identities.c.person_id).where(
                identities.c.platform == bindparam("platform"), identities.c.platform_id == bindparam("platform_id")
            )
        )
    )
)


def person_parts(person: str) -> dict[str, str]:
    """Return what `PERSON_NAMES` takes."""
    platform, _, platform_id = person.partition(":")
    return {"person": person, "platform": platform, "platform_id": platform_id}


IDENTITIES = select(*identities.c["id", "person_id", "platform", "platform_id", "name"])
"""Of each row, what an Identity is made of."""

_OF_ACCOUNT = IDENTITIES.where(
    identities.c.platform == bindparam("platform"), identities.c.platform_id == bindparam("platform_id")
)
_identify = of_each_database(lambda insert: insert(identities).on_conflict_do_nothing().returning(identities.c.id))
_AUDIENCE = select(contexts.c.is_shared, contexts.c.only_identity_id).where(contexts.c.id == bindparam("context"))


def find_identity(connection: Connection, author: Author | None) -> Identity | None:
    """Return the identity of an author, or None if they have no account or never wrote."""
    if author is None or not author.platform or not author.id:
        return None
    sought = {"platform": storable(author.platform), "platform_id": storable(author.id)}
    row = connection.execute(_OF_ACCOUNT, sought).one_or_none()
    return None if row is None else Identity(*row)


def ensure_identity(connection: Connection, author: Author | None, now: datetime) -> Identity | None:
    """Return the identity of an author, stored at the first message, or None if they have no account."""
    if author is None or not author.platform or not author.id:
        return None
    name = author.name and storable(author.name)
    known = find_identity(connection, author)
    if known is None:
        return _insert_identity(connection, author, name, now)
    if name is not None and name != known.name:
        connection.execute(update(identities).where(identities.c.id == known.id).values(name=name))
    return known


def identities_of(connection: Connection, person_id: int) -> list[Identity]:
    """Return the identities of a person, oldest first."""
    query = IDENTITIES.where(identities.c.person_id == person_id).order_by(identities.c.id)
    return [Identity(*row) for row in connection.execute(query)]


def lock_person(connection: Connection, person_id: int) -> None:
    """Lock a person's row, so that processes write what is theirs one after the other."""
    connection.execute(select(persons.c.id).where(persons.c.id == person_id).with_for_update())


_NAMES = select(identities.c.id, identities.c.name).where(identities.c.id.in_(bindparam("ids", expanding=True)))


def list_names(connection: Connection, identity_ids: Sequence[int]) -> dict[int, str | None]:
    """Return what identities are called."""
    return {row.id: row.name for row in connection.execute(_NAMES, {"ids": identity_ids})} if identity_ids else {}


def ids_of(person_id: int) -> Select[int]:
    """Return the query for the ids of a person's identities."""
    return select(identities.c.id).where(identities.c.person_id == person_id)


def join_identities(connection: Connection, first: Identity, second: Identity) -> None:
    """Join the persons of two identities into one, with the facts of both."""
    older, newer = sorted((first.person_id, second.person_id))
    if older != newer:
        connection.execute(update(identities).where(identities.c.person_id == newer).values(person_id=older))


def part_identity(connection: Connection, identity: Identity, now: datetime) -> bool:
    """Give an identity a person of its own again, with its facts and its browsers.

    Return whether it was linked.
    """
    known = identities_of(connection, identity.person_id)
    own = [each.id for each in known if each.id == identity.id or is_browser_of(each, identity)]
    if len(known) == len(own):
        return False
    person_id = _insert_person(connection, now)
    connection.execute(update(identities).where(identities.c.id.in_(own)).values(person_id=person_id))
    return True


def note_audience(
    connection: Connection,
    context_id: int,
    received: Iterable[tuple[Author | None, Identity | None]],
    *,
    is_private: bool,
) -> None:
    """Record who is seen in a context: private facts must not be told where others listen.

    Args:
        received: Who said something just now, with their identities.
        is_private: Whether the platform says that no other person listens.
    """
    # A person without a name is the program itself, such as one that reminds; a name without identity is a stranger.
    seen = [(author, identity) for author, identity in received if author is not None]
    if is_private and not seen:
        return
    state = connection.execute(_AUDIENCE, {"context": context_id}).one_or_none()
    if state is None or state.is_shared:
        return
    ids = {None if identity is None else identity.id for _, identity in seen}
    if not is_private or len(ids) > 1:
        _share(connection, context_id)
    elif ids and ids != {state.only_identity_id}:
        ((author, identity), *_) = seen
        if state.only_identity_id is not None or _is_known_to_others(connection, context_id, author):
            _share(connection, context_id)
        elif identity is not None:
            change = update(contexts).where(contexts.c.id == context_id)
            connection.execute(change.values(only_identity_id=identity.id))


def _share(connection: Connection, context_id: int) -> None:
    connection.execute(update(contexts).where(contexts.c.id == context_id).values(is_shared=True))


def _is_known_to_others(connection: Connection, context_id: int, author: Author | None) -> bool:
    """Return whether other people ever wrote in a context; asked once, when its first identity is recorded."""
    if author is None or author.id is None:
        return False
    platform, author_id = storable(author.platform or ""), storable(author.id)
    is_theirs = (messages.c.author_platform == platform) & (messages.c.author_id == author_id)
    others = select(messages.c.id).where(
        messages.c.context_id == context_id,
        MESSAGE_IS_OF_A_PERSON,
        or_(MESSAGE_HAS_AUTHOR, messages.c.author_name.is_not(None)),
        messages.c.author_id.is_(None) | ~is_theirs,
    )
    return bool(connection.execute(select(exists(others))).scalar_one())


def _insert_identity(connection: Connection, author: Author, name: str | None, now: datetime) -> Identity | None:
    person_id = _insert_person(connection, now)
    values = {
        "person_id": person_id,
        "platform": storable(author.platform or ""),
        "platform_id": storable(author.id or ""),
        "name": name,
        "created_at": now,
    }
    if connection.execute(_identify(connection), values).scalar_one_or_none() is None:
        # Another replica made it at the same moment.
        connection.execute(delete(persons).where(persons.c.id == person_id))
    return find_identity(connection, author)


def _insert_person(connection: Connection, now: datetime) -> int:
    return int(connection.execute(insert(persons).values(created_at=now).returning(persons.c.id)).scalar_one())


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
