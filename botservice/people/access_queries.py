"""Every statement of access: roles, refusals, invitations, and the codes that newcomers show the owner."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, and_, bindparam, delete, func, insert, or_, select, true, tuple_, update

from botservice.core.messages import Author
from botservice.people.access_values import AccessEntry, AccessRole, Subject, SubjectKind
from botservice.people.names import BUILT_IN, transport_of
from botservice.people.queries import PERSON_NAMES, ensure_identity, lock_person, person_parts
from botservice.storage.database import Connection
from botservice.storage.statements import of_each_database, upserting
from botservice.storage.tables.conversations import contexts
from botservice.storage.tables.people import (
    access_codes,
    access_invitations,
    access_listening,
    access_refusals,
    access_roles,
    ended_logins,
    identities,
    person_roles,
)

_OWNERS = select(access_roles.c.subject).where(
    access_roles.c.role == AccessRole.OWNER.value, access_roles.c.kind == SubjectKind.PERSON.value
)
_LOCKED_OWNERS = _OWNERS.order_by(access_roles.c.subject).with_for_update()
CODE_LASTS: Final = timedelta(hours=1)
Owe = Callable[[Connection, int, Sequence[Any], datetime], None]
"""Has messages sent in the chat of a turn; the moment is the present one."""

_ROLES = select(access_roles.c.kind, access_roles.c.role).where(
    or_(
        and_(
            access_roles.c.kind == SubjectKind.PERSON.value,
            access_roles.c.subject.in_(bindparam("persons", expanding=True)),
        ),
        and_(access_roles.c.kind == SubjectKind.CHAT.value, access_roles.c.subject == bindparam("chat")),
    )
)
_THEIR_IDENTITIES = select(identities.c.id).where(
    identities.c.person_id.in_(
        select(identities.c.person_id).where(
            identities.c.platform == bindparam("platform"), identities.c.platform_id == bindparam("platform_id")
        )
    )
)
_PERSON_ROLES = select(person_roles.c.role).where(person_roles.c.identity_id.in_(_THEIR_IDENTITIES))
_ROLE_HOLDERS = (
    select(identities.c.platform, identities.c.platform_id, person_roles.c.role)
    .join(identities, identities.c.id == person_roles.c.identity_id)
    .order_by(identities.c.id, person_roles.c.role)
)
_INVITER = select(access_invitations.c.person).where(access_invitations.c.chat == bindparam("chat"))
_ANYBODY_BLOCKED = select(access_roles.c.subject).where(access_roles.c.role == AccessRole.BLOCKED.value).limit(1)
_tell = of_each_database(
    lambda insert: insert(access_refusals).on_conflict_do_nothing().returning(access_refusals.c.subject)
)
_grant = upserting(access_roles, "kind", "subject")
_invite = upserting(access_invitations, "chat")
_IS_LISTENING = select(access_listening.c.is_on).where(access_listening.c.chat == bindparam("chat"))
_listen = upserting(access_listening, "chat")
_issue = upserting(access_codes, "person")


def read_names(connection: Connection, person: str) -> list[str]:
    """Return what a person is called on every platform that was linked."""
    if not person:
        return []
    return [row.name for row in connection.execute(PERSON_NAMES, person_parts(person)).all()]


def read_roles(connection: Connection, persons: Sequence[str], chat: str) -> tuple[set[AccessRole], AccessRole | None]:
    """Return the roles of a person, under all of their names, and the one of a chat."""
    rows = connection.execute(_ROLES, {"persons": list(persons) or [""], "chat": chat}).all()
    of_chat = next((AccessRole(row.role) for row in rows if row.kind == SubjectKind.CHAT), None)
    return {AccessRole(row.role) for row in rows if row.kind == SubjectKind.PERSON}, of_chat


def read_decided_at(connection: Connection, person: str) -> datetime | None:
    """Return when a person last gave a person roles or access, by any of their accounts; None for never."""
    is_theirs = access_roles.c.subject.in_(read_names(connection, person))
    decided = select(func.max(access_roles.c.granted_at)).where(
        access_roles.c.kind == SubjectKind.PERSON.value, is_theirs
    )
    decided_at: datetime | None = connection.execute(decided).scalar_one()
    return decided_at


def read_inviter(connection: Connection, chat: str) -> str | None:
    """Return who brought the service into a chat last."""
    return connection.execute(_INVITER, {"chat": chat}).scalar_one_or_none()


def tell_once(connection: Connection, subject: Subject, now: datetime) -> bool:
    """Take note that a person or chat is told of its refusal; return whether this is the first time."""
    values = {"kind": subject.kind.value, "subject": subject.name, "told_at": now}
    return connection.execute(_tell(connection), values).scalar_one_or_none() is not None


def grant(connection: Connection, subject: Subject, role: AccessRole, by: str, now: datetime) -> None:
    """Give a person or chat a role; one that is blocked later is told so again."""
    values = {
        "kind": subject.kind.value,
        "subject": subject.name,
        "role": role.value,
        "granted_by": by,
        "granted_at": now,
    }
    connection.execute(_grant(connection), values)
    connection.execute(delete(access_refusals).where(_is_of(subject, access_refusals)))


def _is_of(subject: Subject, table: Table) -> ColumnElement[bool]:
    return and_(table.c.kind == subject.kind.value, table.c.subject == subject.name)


def list_person_roles(connection: Connection, person: str) -> Sequence[str]:
    """Return the roles of the owner's own naming that a person has, by any of their accounts."""
    return connection.execute(_PERSON_ROLES, person_parts(person)).scalars().all()


def replace_roles(connection: Connection, person: str, roles: Iterable[str], now: datetime) -> None:
    """Give a person exactly these roles of the owner's own naming, and no access by any account; a block stays."""
    platform, _, number = person.partition(":")
    identity = ensure_identity(connection, Author(platform, number), now)
    if identity is None:
        return
    lock_person(connection, identity.person_id)  # two owners at once: one after the other
    names = read_names(connection, person)
    theirs = (access_roles.c.kind == SubjectKind.PERSON.value) & access_roles.c.subject.in_(names)
    connection.execute(delete(access_roles).where(theirs, access_roles.c.role != AccessRole.BLOCKED.value))
    take_roles(connection, person)
    rows = [{"identity_id": identity.id, "role": each, "granted_at": now} for each in roles]
    if rows:
        connection.execute(insert(person_roles), rows)


def take_roles(connection: Connection, person: str) -> None:
    """Take all of those roles from a person, whichever account they came through."""
    connection.execute(
        delete(person_roles).where(person_roles.c.identity_id.in_(_THEIR_IDENTITIES)), person_parts(person)
    )


def list_entries(connection: Connection, now: datetime) -> list[AccessEntry]:
    """Return all persons and chats with a role, and the newcomers."""
    roles = connection.execute(select(access_roles).order_by(access_roles.c.granted_at)).all()
    held: dict[str, list[str]] = {}
    for row in connection.execute(_ROLE_HOLDERS).all():
        held.setdefault(f"{row.platform}:{row.platform_id}", []).append(row.role)
    decided = [
        AccessEntry(
            Subject(SubjectKind(row.kind), row.subject),
            AccessRole(row.role),
            source=row.granted_by,
            roles=held.get(row.subject, ()) if row.kind == SubjectKind.PERSON else (),
        )
        for row in roles
    ]
    codes = select(access_codes).where(access_codes.c.expires_at > now).order_by(access_codes.c.expires_at)
    newcomers = [
        AccessEntry(Subject(SubjectKind.PERSON, row.person), None, name=row.name, code=row.code, until=row.expires_at)
        for row in connection.execute(codes).all()
    ]
    return [*decided, *newcomers]


def list_owners(connection: Connection, *, is_locking: bool = False) -> Sequence[str]:
    """Return the persons whom an owner made owners.

    Args:
        is_locking: Whether they stay owners until the end of the transaction, unless it takes that from them itself.
    """
    return connection.execute(_LOCKED_OWNERS if is_locking else _OWNERS).scalars().all()


def find_private_chats(connection: Connection, persons: Iterable[Iterable[str]]) -> list[int]:
    """Return the private chat in which each person has last written to the bot, of those who have one.

    Args:
        persons: Of each the names, such as "telegram:42".
    """
    found: list[int] = []
    for names in persons:
        accounts = [(platform, number) for platform, _, number in (each.partition(":") for each in names)]
        are_theirs = tuple_(identities.c.platform, identities.c.platform_id).in_(accounts)
        private = (
            select(contexts.c.id, contexts.c.context_keys, identities.c.platform)
            .join(identities, identities.c.id == contexts.c.only_identity_id)
            .where(are_theirs, contexts.c.is_shared.is_(False))
            .order_by(contexts.c.last_message_id.desc())
        )
        rows = connection.execute(private.limit(20)).all()
        # The others are those in which a program asked for them.
        found += [row.id for row in rows if transport_of(row.context_keys) == row.platform][:1]
    return list(dict.fromkeys(found))


def note_invitation(connection: Connection, chat: str, person: str, now: datetime) -> None:
    """Take note of who has brought the service into a chat."""
    connection.execute(_invite(connection), {"chat": chat, "person": person, "invited_at": now})


def read_listening(connection: Connection, chat: str) -> bool | None:
    """Return whether an owner has the bot listen to a group; None if nobody has said anything."""
    return connection.execute(_IS_LISTENING, {"chat": chat}).scalar_one_or_none()


def set_listening(connection: Connection, chat: str, now: datetime, *, is_on: bool) -> None:
    """Have the bot listen to a group, or not."""
    connection.execute(_listen(connection), {"chat": chat, "is_on": is_on, "set_at": now})


def note_departure(connection: Connection, chat: str) -> None:
    """Take note that the service was removed from a chat: the next inviter answers for it."""
    connection.execute(delete(access_invitations).where(access_invitations.c.chat == chat))
    connection.execute(delete(access_listening).where(access_listening.c.chat == chat))
    subject = Subject(SubjectKind.CHAT, chat)
    was_let_in = _is_of(subject, access_roles) & (access_roles.c.role != AccessRole.BLOCKED.value)
    connection.execute(delete(access_roles).where(was_let_in))
    connection.execute(delete(access_refusals).where(_is_of(subject, access_refusals)))


def move_chat(connection: Connection, old: str, new: str) -> None:
    """Have what was decided about a chat count under its new name, unless something was decided about that already."""
    for column, is_chat in (
        (access_roles.c.subject, access_roles.c.kind == SubjectKind.CHAT.value),
        (access_refusals.c.subject, access_refusals.c.kind == SubjectKind.CHAT.value),
        (access_invitations.c.chat, true()),
        (access_listening.c.chat, true()),
    ):
        is_there = connection.execute(select(column).where(column == new, is_chat)).first() is not None
        if not is_there:
            connection.execute(update(column.table).where(column == old, is_chat).values({column.name: new}))


def is_anybody_blocked(connection: Connection) -> bool:
    """Return whether anybody is blocked at all."""
    return connection.execute(_ANYBODY_BLOCKED).first() is not None


def is_platform_seen(connection: Connection, platform: str) -> bool:
    """Return whether a person on a platform has written, or has a role."""
    seen = select(identities.c.id).where(identities.c.platform == platform)
    named = select(access_roles.c.subject).where(access_roles.c.subject.startswith(f"{platform}:", autoescape=True))
    return any(connection.execute(each.limit(1)).first() is not None for each in (seen, named))


def read_code(connection: Connection, person: str, now: datetime) -> str | None:
    """Return the valid code of a person, or None."""
    valid = select(access_codes.c.code).where(access_codes.c.person == person, access_codes.c.expires_at > now)
    return connection.execute(valid).scalar_one_or_none()


def issue_code(
    connection: Connection,
    person: str,
    code: str,
    name: str | None,
    turn_id: int,
    welcome: Sequence[Any],
    now: datetime,
) -> bool:
    """Store a code for a person; return False if another one was issued to them meanwhile."""
    connection.execute(delete(access_codes).where(access_codes.c.expires_at <= now))
    known = read_code(connection, person, now)
    if known is not None and known != code:
        return False
    values = {
        "person": person,
        "code": code,
        "name": name,
        "turn_id": turn_id,
        "welcome": list(welcome),
        "expires_at": now + CODE_LASTS,
    }
    connection.execute(_issue(connection), values)
    return True


def take_code(connection: Connection, code: str, now: datetime, owe: Owe) -> AccessEntry | None:
    """Use up a code; return its newcomer, and send them a welcome in the chat in which they were refused."""
    is_good = (access_codes.c.code == code, access_codes.c.expires_at > now)
    row = connection.execute(delete(access_codes).where(*is_good).returning(access_codes)).one_or_none()
    if row is None:
        return None
    owe(connection, row.turn_id, row.welcome, now)
    return AccessEntry(Subject(SubjectKind.PERSON, row.person), None, name=row.name)


def is_platform_known(connection: Connection, platform: str) -> bool:
    """Return whether a platform is built in, or a person there has written or is named: own transports have others."""
    return platform in BUILT_IN or is_platform_seen(connection, platform)


# Logins of the owner that have ended

_insert_ended_login = upserting(ended_logins, "digest")


def store_ended_login(connection: Connection, digest: str, now: datetime, expires_at: datetime) -> None:
    """Store that a login was ended, and delete those that have expired."""
    connection.execute(delete(ended_logins).where(ended_logins.c.expires_at < now))
    connection.execute(_insert_ended_login(connection), {"digest": digest, "expires_at": expires_at})


def is_login_ended(connection: Connection, digest: str) -> bool:
    """Return whether a login was ended."""
    ended = select(ended_logins.c.digest).where(ended_logins.c.digest == digest)
    return connection.execute(ended).first() is not None
