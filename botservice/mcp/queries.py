"""Every statement of sign-ins to servers, and of the states of those that have begun."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, and_, delete, exists, insert, select, update

from botservice.storage.database import Connection
from botservice.storage.tables.people import identities, tool_sign_in_states, tool_sign_ins

_states: Final = tool_sign_in_states.c


def find_sign_in(connection: Connection, identity_id: int, server: str) -> Any | None:
    """Return the id and the sealed data of an account's sign-in, or None."""
    query = select(tool_sign_ins.c.id, tool_sign_ins.c.data).where(_is_of(tool_sign_ins, identity_id, server))
    return connection.execute(query).one_or_none()


def lock_sign_in(connection: Connection, sign_in_id: int) -> Any | None:
    """Return the row of a sign-in, locked against other processes, or None if it is gone."""
    query = select(tool_sign_ins).where(tool_sign_ins.c.id == sign_in_id).with_for_update()
    return connection.execute(query).one_or_none()


def store_sign_in(connection: Connection, identity_id: int, server: str, data: bytes, now: datetime) -> bool:
    """Store a sign-in in place of the account's earlier one; return whether the account still exists."""
    if not _lock_account(connection, identity_id):
        return False
    connection.execute(delete(tool_sign_ins).where(_is_of(tool_sign_ins, identity_id, server)))
    values = {"identity_id": identity_id, "server": server, "data": data, "created_at": now, "updated_at": now}
    connection.execute(insert(tool_sign_ins), values)
    return True


def change_sign_in(
    connection: Connection, sign_in_id: int, *, unless_changed_from: bytes | None = None, **values: Any
) -> bool:
    """Change a sign-in; return whether it was there, and had the data that was seen, where that is given."""
    change = update(tool_sign_ins).where(tool_sign_ins.c.id == sign_in_id)
    if unless_changed_from is not None:
        change = change.where(tool_sign_ins.c.data == unless_changed_from)
    return connection.execute(change.values(**values)).rowcount > 0


def delete_sign_in(connection: Connection, sign_in_id: int) -> None:
    """Delete a sign-in."""
    connection.execute(delete(tool_sign_ins).where(tool_sign_ins.c.id == sign_in_id))


def store_state(connection: Connection, values: Mapping[str, Any], now: datetime) -> None:
    """Store the state of a sign-in that begins, in place of the account's earlier one; delete those that have expired.

    Nothing is stored for an account that is gone: what leads back to nobody is good for nothing.
    """
    connection.execute(delete(tool_sign_in_states).where(_states.expires_at < now))
    if _lock_account(connection, values["identity_id"]):
        is_earlier = _is_of(tool_sign_in_states, values["identity_id"], values["server"])
        connection.execute(delete(tool_sign_in_states).where(is_earlier))
        connection.execute(insert(tool_sign_in_states), values)


def has_state(connection: Connection, digest: str) -> bool:
    """Return whether a state is known."""
    return bool(connection.execute(select(exists().where(_states.digest == digest))).scalar_one())


def take_state(connection: Connection, server: str, digest: str) -> Any | None:
    """Delete a state; return its account, its data and when it expires, or None if there was none."""
    taken = delete(tool_sign_in_states).where(_states.digest == digest, _states.server == server)
    return connection.execute(taken.returning(_states.identity_id, _states.data, _states.expires_at)).one_or_none()


def _is_of(table: Table, identity_id: int, server: str) -> ColumnElement[bool]:
    return and_(table.c.identity_id == identity_id, table.c.server == server)


def _lock_account(connection: Connection, identity_id: int) -> bool:
    """Lock an account against other processes; return whether it still exists."""
    query = select(identities.c.id).where(identities.c.id == identity_id).with_for_update(key_share=True)
    return connection.execute(query).one_or_none() is not None
