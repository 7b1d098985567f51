"""Every statement of accounts: persons, their accounts on platforms, and who is seen in a chat."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Select, Text, bindparam, delete, exists, insert, select, update

from botservice.core.messages import Author, Role, storable
from botservice.people.identities import Identity, is_browser_of
from botservice.storage.database import Connection
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conversations import contexts, messages
from botservice.storage.tables.people import identities, persons

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
    connection: Connection, context_id: int, heard: Iterable[tuple[Author | None, Identity | None]], *, is_private: bool
) -> None:
    """Record who is seen in a context: private facts must not be told where others listen.

    Args:
        heard: Who said something just now, with their identities.
        is_private: Whether the platform says that nobody else listens.
    """
    # Somebody without a name is the program itself, such as one that reminds; a name without identity is a stranger.
    seen = [(author, identity) for author, identity in heard if author is not None]
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
        messages.c.role == Role.USER.value,
        messages.c.author_id.is_not(None) | messages.c.author_name.is_not(None),
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
