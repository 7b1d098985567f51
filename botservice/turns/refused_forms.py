"""Which forms of messages a platform has refused in a conversation, so that they are not tried there again."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, select

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.storage.database import Connection
from botservice.storage.tables.conversations import refused_forms

_REFUSED: Final = select(refused_forms.c.form).where(refused_forms.c.context_id == bindparam("context"))


def refused_in(connection: Connection, context_keys: Mapping[str, str]) -> set[str]:
    """Return the forms of messages that a conversation has refused."""
    context_id = find_context(connection, ContextKeys.of(context_keys))
    return set() if context_id is None else set(connection.execute(_REFUSED, {"context": context_id}).scalars())


def note_refused(connection: Connection, context_keys: Mapping[str, str], form: str, now: datetime) -> bool:
    """Take note that a conversation refuses a form; return whether that was news."""
    context_id = find_context(connection, ContextKeys.of(context_keys))
    if context_id is None or form in connection.execute(_REFUSED, {"context": context_id}).scalars():
        return False
    connection.execute(refused_forms.insert().values(context_id=context_id, form=form, refused_at=now))
    return True
