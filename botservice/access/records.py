"""How access lies in its tables: roles, refusals, codes and invitations."""

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, and_, bindparam, delete, or_, select, true, update
from sqlalchemy.dialects import postgresql, sqlite

from botservice.access.values import AccessRole, Entry, Kind, Subject
from botservice.people.names import PERSON_NAMES, person_parts
from botservice.storage.statements import execute
from botservice.storage.tables.access import access_codes, access_invitations, access_refusals, access_roles

CODE_LASTS: Final = timedelta(hours=1)
Owe = Callable[[Connection, int, Sequence[Any], datetime], None]
"""Has messages sent in the chat of a turn; the moment is the present one."""
_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # pragma: allowlist secret - without what looks alike
_CODE_LENGTH: Final = 8

_ROLES = select(access_roles.c.kind, access_roles.c.role).where(
    or_(
        and_(access_roles.c.kind == "person", access_roles.c.subject.in_(bindparam("persons", expanding=True))),
        and_(access_roles.c.kind == "chat", access_roles.c.subject == bindparam("chat")),
    )
)
_INVITER = select(access_invitations.c.person).where(access_invitations.c.chat == bindparam("chat"))
_CODE = select(access_codes.c.code).where(
    access_codes.c.person == bindparam("person"), access_codes.c.expires_at > bindparam("now")
)
_BLOCKED = select(access_roles.c.subject).where(access_roles.c.role == AccessRole.BLOCKED.value).limit(1)
_DIALECTS = (("sqlite", sqlite), ("postgresql", postgresql))
_TELL = {
    name: dialect.insert(access_refusals).on_conflict_do_nothing().returning(access_refusals.c.subject)
    for name, dialect in _DIALECTS
}


def _upserting(dialect: Any, table: Any, *keys: str) -> Any:
    new = dialect.insert(table)
    changed = {column.name: new.excluded[column.name] for column in table.columns if column.name not in keys}
    return new.on_conflict_do_update(index_elements=list(keys), set_=changed)


_GRANT = {name: _upserting(dialect, access_roles, "kind", "subject") for name, dialect in _DIALECTS}
_ISSUE = {name: _upserting(dialect, access_codes, "person") for name, dialect in _DIALECTS}
_INVITE = {name: _upserting(dialect, access_invitations, "chat") for name, dialect in _DIALECTS}


def read_names(connection: Connection, person: str) -> list[str]:
    """Return what a person is called on every platform that was linked."""
    if not person:
        return []
    return [row.name for row in execute(connection, PERSON_NAMES, person_parts(person)).all()]


def read_roles(connection: Connection, persons: Sequence[str], chat: str) -> tuple[set[AccessRole], AccessRole | None]:
    """Return the roles of a person, under all of their names, and the one of a chat."""
    rows = execute(connection, _ROLES, {"persons": list(persons) or [""], "chat": chat}).all()
    of_chat = next((AccessRole(row.role) for row in rows if row.kind == Kind.CHAT), None)
    return {AccessRole(row.role) for row in rows if row.kind == Kind.PERSON}, of_chat


def read_inviter(connection: Connection, chat: str) -> str | None:
    """Return who brought the service into a chat last."""
    return execute(connection, _INVITER, {"chat": chat}).scalar_one_or_none()


def is_anybody_blocked(connection: Connection) -> bool:
    """Return whether anybody at all is."""
    return connection.execute(_BLOCKED).first() is not None


def read_code(connection: Connection, person: str, now: datetime) -> str | None:
    """Return the code that somebody may show the owner."""
    return execute(connection, _CODE, {"person": person, "now": now}).scalar_one_or_none()


def new_code() -> str:
    """Return a code that nobody can guess, in a form that can be read out."""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def as_code(text: str) -> str | None:
    """Return what somebody typed as a code; None where it is none."""
    letters = text.upper().replace("-", "").replace(" ", "")
    if len(letters) != _CODE_LENGTH or not set(letters) <= set(_ALPHABET):
        return None
    return f"{letters[:4]}-{letters[4:]}"


def tell_once(connection: Connection, subject: Subject, now: datetime) -> bool:
    """Return whether somebody is to be told that they are not let in: they were not before, and are from now on."""
    values = {"kind": subject.kind.value, "subject": subject.name, "told_at": now}
    told = connection.execute(_TELL[connection.dialect.name], values)
    return told.scalar_one_or_none() is not None


def issue_code(
    connection: Connection,
    person: str,
    code: str,
    name: str | None,
    turn_id: int,
    welcome: Sequence[Any],
    now: datetime,
) -> bool:
    """Return whether a code is the one that somebody may show; it is not where another was given out meanwhile."""
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
    connection.execute(_ISSUE[connection.dialect.name], values)
    return True


def grant(connection: Connection, subject: Subject, role: AccessRole, by: str, now: datetime) -> None:
    """Give somebody a role. Whoever is let in and later taken out is told so anew."""
    values = {
        "kind": subject.kind.value,
        "subject": subject.name,
        "role": role.value,
        "granted_by": by,
        "granted_at": now,
    }
    connection.execute(_GRANT[connection.dialect.name], values)
    told = (access_refusals.c.kind == subject.kind.value) & (access_refusals.c.subject == subject.name)
    connection.execute(delete(access_refusals).where(told))


def take_code(connection: Connection, code: str, now: datetime, owe: Owe) -> Entry | None:
    """Return the newcomer who has a code, and welcome them where they were refused; the code is used up."""
    query = select(access_codes).where(access_codes.c.code == code, access_codes.c.expires_at > now)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    connection.execute(delete(access_codes).where(access_codes.c.code == code))
    owe(connection, row.turn_id, row.welcome, now)
    return Entry(Subject(Kind.PERSON, row.person), None, name=row.name)


def list_entries(connection: Connection, now: datetime) -> list[Entry]:
    """Return everybody whom somebody has decided about, and the newcomers."""
    roles = connection.execute(select(access_roles).order_by(access_roles.c.granted_at)).all()
    decided = [
        Entry(Subject(Kind(row.kind), row.subject), AccessRole(row.role), source=row.granted_by) for row in roles
    ]
    codes = select(access_codes).where(access_codes.c.expires_at > now).order_by(access_codes.c.expires_at)
    newcomers = [
        Entry(Subject(Kind.PERSON, row.person), None, name=row.name, code=row.code, until=row.expires_at)
        for row in connection.execute(codes).all()
    ]
    return [*decided, *newcomers]


def note_invitation(connection: Connection, chat: str, person: str, now: datetime) -> None:
    """Take note of who has brought the service into a chat."""
    connection.execute(_INVITE[connection.dialect.name], {"chat": chat, "person": person, "invited_at": now})


def note_departure(connection: Connection, chat: str) -> None:
    """Take note that the service was taken out of a chat: whoever brings it back answers for that anew."""
    connection.execute(delete(access_invitations).where(access_invitations.c.chat == chat))
    was_let_in = and_(access_roles.c.kind == "chat", access_roles.c.subject == chat)
    connection.execute(delete(access_roles).where(was_let_in, access_roles.c.role != AccessRole.BLOCKED.value))
    connection.execute(
        delete(access_refusals).where(access_refusals.c.kind == "chat", access_refusals.c.subject == chat)
    )


def move_chat(connection: Connection, old: str, new: str) -> None:
    """Have what was decided about a chat count under its new name, unless something was decided about that already."""
    for column, is_chat in (
        (access_roles.c.subject, access_roles.c.kind == "chat"),
        (access_refusals.c.subject, access_refusals.c.kind == "chat"),
        (access_invitations.c.chat, true()),
    ):
        is_there = connection.execute(select(column).where(column == new, is_chat)).first() is not None
        if not is_there:
            connection.execute(update(column.table).where(column == old, is_chat).values({column.name: new}))
