"""Codes that newcomers show the owner to be admitted: issued, recognised, and used up."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, select

from botservice.people.access_values import AccessEntry, Subject, SubjectKind
from botservice.people.linking import LENGTH, LETTERS, spell
from botservice.storage.statements import upserting
from botservice.storage.tables.access import access_codes

CODE_LASTS: Final = timedelta(hours=1)
Owe = Callable[[Connection, int, Sequence[Any], datetime], None]
"""Has messages sent in the chat of a turn; the moment is the present one."""

_CODE = select(access_codes.c.code).where(
    access_codes.c.person == bindparam("person"), access_codes.c.expires_at > bindparam("now")
)
_issue = upserting(access_codes, "person")


def read_code(connection: Connection, person: str, now: datetime) -> str | None:
    """Return the valid code of a person, or None."""
    return connection.execute(_CODE, {"person": person, "now": now}).scalar_one_or_none()


def as_code(text: str) -> str | None:
    """Return a typed text as a code, or None if it is none."""
    letters = text.upper().replace("-", "").replace(" ", "")
    return spell(letters) if len(letters) == LENGTH and set(letters) <= set(LETTERS) else None


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
