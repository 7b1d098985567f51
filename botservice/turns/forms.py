"""Which forms of messages a platform has refused in a conversation, so that they are not tried there again."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, exists, select

from botservice.contexts.context import ContextKeys, find_context
from botservice.storage.tables.forms import refused_forms

_IS_REFUSED: Final = select(
    exists().where(refused_forms.c.context_id == bindparam("context"), refused_forms.c.form == bindparam("form"))
)


def is_refused(connection: Connection, context_keys: Mapping[str, str], form: str) -> bool:
    """Return whether a conversation has refused a form of messages before."""
    context_id = find_context(connection, ContextKeys.of(context_keys))
    if context_id is None:
        return False
    return bool(connection.execute(_IS_REFUSED, {"context": context_id, "form": form}).scalar_one())


def note_refused(connection: Connection, context_keys: Mapping[str, str], form: str, now: datetime) -> bool:
    """Take note that a conversation refuses a form; return whether that was news."""
    context_id = find_context(connection, ContextKeys.of(context_keys))
    if context_id is None or connection.execute(_IS_REFUSED, {"context": context_id, "form": form}).scalar_one():
        return False
    connection.execute(refused_forms.insert().values(context_id=context_id, form=form, refused_at=now))
    return True
