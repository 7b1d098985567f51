"""Every statement of a conversation: contexts, steps, prompts, what a model refuses, and feedback."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, delete, exists, insert, select, update
from sqlalchemy.exc import IntegrityError

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.metadata_changes import MetadataChanges, with_key
from botservice.core.errors import StorageError
from botservice.core.messages import Author, Message
from botservice.core.states import PendingKind
from botservice.history.queries import LAST_OF_A_PERSON
from botservice.history.rows import read_messages
from botservice.people.access_queries import read_names, read_roles
from botservice.people.access_values import AccessRole
from botservice.people.names import person_name
from botservice.storage.blobs import read_blobs
from botservice.storage.database import Connection
from botservice.storage.statements import execute_each
from botservice.storage.tables.conditions import (
    CALL_IS_OPEN,
    CALL_IS_UNDECIDED,
    TURN_IS_NUMBERED,
    TURN_IS_OPEN,
    TURN_IS_RUNNING,
)
from botservice.storage.tables.conversations import contexts, prompt_log, steps, turns
from botservice.storage.tables.people import identities
from botservice.storage.tables.services import feedback
from botservice.storage.tables.waiting import pending_calls

# Statements are made once: making one again for every call takes SQLAlchemy longer than running it.
_CONTEXT_ID = select(contexts.c.id).where(contexts.c.key_hash == bindparam("key_hash"))
_CONTEXT_KEYS = select(contexts.c.context_keys).where(contexts.c.id == bindparam("context"))
_METADATA = select(contexts.c.metadata).where(contexts.c.id == bindparam("context"))
_KEYS_AND_METADATA = select(contexts.c.context_keys, contexts.c.metadata).where(contexts.c.id == bindparam("context"))
_METADATA_BY_KEYS = select(contexts.c.id, contexts.c.metadata).where(contexts.c.key_hash == bindparam("key_hash"))
_LOCKED_METADATA = _METADATA.with_for_update()
_IS_SHARED = select(contexts.c.is_shared).where(contexts.c.id == bindparam("context"))
_AUDIENCE = (
    select(contexts.c.context_keys, contexts.c.is_shared, identities.c.platform, identities.c.platform_id)
    .outerjoin(identities, identities.c.id == contexts.c.only_identity_id)
    .where(contexts.c.id == bindparam("context"))
)
_NOTE_UNTRUSTED = (
    update(contexts).where(contexts.c.id == bindparam("context")).values(untrusted_at=contexts.c.last_position)
)


def find_context(connection: Connection, keys: ContextKeys) -> int | None:
    """Return the id of the context with these keys."""
    found: int | None = connection.execute(_CONTEXT_ID, {"key_hash": keys.digest}).scalar_one_or_none()
    return found


def find_or_insert_context(connection: Connection, keys: ContextKeys, now: datetime) -> int:
    """Return the id of the context with these keys; make it where there is none."""
    known = find_context(connection, keys)
    if known is not None:
        return known
    keys.check_size()
    new = insert(contexts).values(key_hash=keys.digest, context_keys=dict(keys.values), metadata={}, created_at=now)
    savepoint = connection.begin_nested()  # an error until here is of another statement
    try:
        with savepoint:
            return int(connection.execute(new.returning(contexts.c.id)).scalar_one())
    except IntegrityError:  # another replica made it at the same moment
        return int(connection.execute(_CONTEXT_ID, {"key_hash": keys.digest}).scalar_one())


def rename_context(connection: Connection, old: ContextKeys, new: ContextKeys) -> bool:
    """Give the context with old keys new ones; return whether it was there and the new ones were free."""
    if find_context(connection, new) is not None:
        return False
    change = update(contexts).where(contexts.c.key_hash == old.digest)
    renamed = connection.execute(change.values(key_hash=new.digest, context_keys=dict(new.values)))
    return renamed.rowcount > 0


def read_context_keys(connection: Connection, context_id: int) -> Mapping[str, Any]:
    """Return the keys of a context.

    Raises:
        StorageError: there is no such context.
    """
    keys: Mapping[str, Any] | None = connection.execute(_CONTEXT_KEYS, {"context": context_id}).scalar_one_or_none()
    if keys is None:
        raise StorageError(f"there is no context {context_id}")
    return keys


def read_is_shared(connection: Connection, context_id: int) -> bool:
    """Return whether more than one person was seen in a conversation, or the platform says that others read it."""
    return bool(connection.execute(_IS_SHARED, {"context": context_id}).scalar_one_or_none())


def find_audience(connection: Connection, context_id: int) -> Any | None:
    """Return the row of a context with its keys, whether it is shared, and the account of its only person, if any."""
    return connection.execute(_AUDIENCE, {"context": context_id}).one_or_none()


def note_untrusted(connection: Connection, context_id: int) -> None:
    """Take note that a tool has given what strangers wrote, after all that was said until now."""
    connection.execute(_NOTE_UNTRUSTED, {"context": context_id})


def read_metadata(connection: Connection, context_id: int) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return a context's keys and metadata; empty ones for one that is gone."""
    found = connection.execute(_KEYS_AND_METADATA, {"context": context_id}).one_or_none()
    return ({}, {}) if found is None else (found.context_keys, found.metadata)


def find_metadata(connection: Connection, keys: ContextKeys) -> tuple[int, Mapping[str, Any]] | None:
    """Return the id and the metadata of the context with these keys; None where there is none."""
    found = connection.execute(_METADATA_BY_KEYS, {"key_hash": keys.digest}).one_or_none()
    return None if found is None else (found.id, found.metadata)


def lock_metadata(connection: Connection, context_id: int) -> Mapping[str, Any]:
    """Return a context's metadata, which no other transaction changes before this one ends."""
    stored: Mapping[str, Any] = connection.execute(_LOCKED_METADATA, {"context": context_id}).scalar_one()
    return stored


def set_metadata(connection: Connection, *, context_id: int, key: str, value: Any) -> None:
    """Store one key of a context's metadata, None to take it away."""
    _change_metadata(connection, context_id, lambda stored: with_key(stored, key, value))


def write_metadata(connection: Connection, context_id: int, changes: MetadataChanges) -> None:
    """Store changes of a context's metadata; its other keys stay as they are."""
    _change_metadata(connection, context_id, changes.applied_to)


def _change_metadata(
    connection: Connection, context_id: int, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> None:
    stored = lock_metadata(connection, context_id)
    connection.execute(update(contexts).where(contexts.c.id == context_id).values(metadata=change(stored)))


# What a context holds at one moment

_LAST_POSITION = (
    select(steps.c.position)
    .where(steps.c.context_id == bindparam("context"))
    .order_by(steps.c.position.desc())
    .limit(1)
)
# Not "equal", and ordered by both: Postgres would go through the turns of all contexts for the newest of one.
_IN_CONTEXT = turns.c.context_id.between(bindparam("context"), bindparam("context"))
_NEWEST_FIRST = (turns.c.context_id.desc(), turns.c.id.desc())
_LAST_STEP_NUMBER = (
    select(turns.c.last_step_number).where(_IN_CONTEXT, TURN_IS_NUMBERED).order_by(*_NEWEST_FIRST).limit(1)
)
_STATE = select(
    contexts.c.context_keys,
    contexts.c.metadata,
    contexts.c.deletion_version,
    _LAST_STEP_NUMBER.scalar_subquery().label("last_step_number"),
    _LAST_POSITION.scalar_subquery().label("last_position"),
    exists().where(CALL_IS_OPEN, pending_calls.c.context_id == bindparam("context")).label("has_open_calls"),
    exists().where(TURN_IS_OPEN, TURN_IS_RUNNING, turns.c.context_id == bindparam("context")).label("has_running_turn"),
).where(contexts.c.id == bindparam("context"))
_ASKED_BY = (
    select(pending_calls.c.author_platform, pending_calls.c.author_id, pending_calls.c.author_name)
    .where(pending_calls.c.turn_id == bindparam("turn"))
    .order_by(pending_calls.c.id)
    .limit(1)
)
_NEWEST_TURNS = (
    select(*turns.c["id", "keeps_steps", "steps_taken", "question_id"])
    .where(_IN_CONTEXT, turns.c.started_at.is_not(None), turns.c.id < bindparam("before"))
    .order_by(*_NEWEST_FIRST)
    .limit(bindparam("most"))
)
_SYSTEM_PROMPT = (
    select(turns.c.system_prompt)
    .where(_IN_CONTEXT, turns.c.system_prompt.is_not(None))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_WAITING_CALLS = (
    select(pending_calls.c.id, pending_calls.c.tool)
    .where(
        CALL_IS_OPEN,
        pending_calls.c.context_id == bindparam("context"),
        pending_calls.c.turn_id != bindparam("turn"),
        pending_calls.c.kind == PendingKind.APPROVAL.value,
        CALL_IS_UNDECIDED,
        pending_calls.c.expires_at > bindparam("now"),
    )
    .order_by(pending_calls.c.id)
    .limit(bindparam("most"))
)


def find_state(connection: Connection, context_id: int, *, with_last_message: bool) -> tuple[Any, Message | None]:
    """Return the row of a context's state, None if it is gone, and a person's last message, if it is to be found."""
    found = connection.execute(_STATE, {"context": context_id})
    last_of_a_person = connection.execute(LAST_OF_A_PERSON, {"context": context_id}) if with_last_message else None
    state = found.one_or_none()
    rows = [] if last_of_a_person is None else last_of_a_person.all()  # it has travelled with the other
    last = read_messages(connection, context_id, rows)[0] if rows else None
    return state, last


def find_asked_by(connection: Connection, turn_id: int) -> Author | None:
    """Return on whose behalf a turn has waited."""
    row = connection.execute(_ASKED_BY, {"turn": turn_id}).one_or_none()
    return None if row is None else Author(*row)


def list_newest_turns(connection: Connection, context_id: int, before: int, limit: int) -> Sequence[Any]:
    """Return the newest turns of a context that have started, newest first.

    Each has whether it keeps the steps before it, how many it has taken, and what it answers after it has waited.
    """
    return connection.execute(_NEWEST_TURNS, {"context": context_id, "before": before, "most": limit}).all()


def read_system_prompt(connection: Connection, context_id: int) -> str:
    """Return the newest system prompt of a context; an empty text if none is stored."""
    digest = connection.execute(_SYSTEM_PROMPT, {"context": context_id}).scalar_one_or_none()
    return "" if digest is None else read_blobs(connection, context_id, [digest]).get(digest, b"").decode()


def list_waiting_calls(
    connection: Connection, context_id: int, turn_id: int | None, now: datetime, limit: int
) -> Sequence[Any]:
    """Return the number and the tool of the calls that other turns of a context wait with for a person's word."""
    sought = {"context": context_id, "turn": turn_id or 0, "now": now, "most": limit}
    return connection.execute(_WAITING_CALLS, sought).all()


# Steps and prompts

_INSERT_STEP = insert(steps).returning(steps.c.id, sort_by_parameter_order=True)
_UPDATE_STEP = update(steps).where(steps.c.id == bindparam("row"))
_NEXT_POSITION = (
    select(steps.c.position)
    .where(steps.c.context_id == bindparam("context"), steps.c.position > bindparam("after"))
    .order_by(steps.c.position)
    .limit(1)
)
_STEPS = select(*steps.c["id", "turn_id", "position", "is_open", "data", "prompt", "step_number"]).order_by(
    steps.c.position, steps.c.id
)
_STEPS_OF_CONTEXT = _STEPS.where(steps.c.context_id == bindparam("context"))
# A sum, so that no index is chosen by it: SQLite would look through all steps of the context in their order.
_STEPS_OF_TURNS = _STEPS.where(
    steps.c.context_id + 0 == bindparam("context"), steps.c.turn_id.in_(bindparam("turns", expanding=True))
)
_INSERT_PROMPT = insert(prompt_log)
_PROMPTS = (
    select(prompt_log.c.seq, prompt_log.c.content)
    .where(prompt_log.c.turn_id == bindparam("turn"))
    .order_by(prompt_log.c.seq)
)
_DIGEST_OF_SYSTEM_PROMPT = select(turns.c.system_prompt).where(turns.c.id == bindparam("turn"))


def insert_steps(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Store steps and return the ids of their rows."""
    return list(connection.execute(_INSERT_STEP, rows).scalars()) if rows else []


def update_steps(connection: Connection, values: Sequence[Mapping[str, Any]]) -> None:
    """Change steps, each by the id of its `row`."""
    if values:
        execute_each(connection, _UPDATE_STEP, values)


def delete_steps(connection: Connection, row_ids: Collection[int]) -> None:
    """Delete steps."""
    if row_ids:
        connection.execute(delete(steps).where(steps.c.id.in_(row_ids)))


def delete_steps_of_turn(connection: Connection, turn_id: int) -> None:
    """Delete the steps of a turn, and its prompts."""
    for table in (steps, prompt_log):
        connection.execute(delete(table).where(table.c.turn_id == turn_id))


def list_steps(connection: Connection, context_id: int, turn_ids: Iterable[int] | None = None) -> Sequence[Any]:
    """Return the rows of the steps of turns, of all by default, in their order."""
    if turn_ids is None:
        return connection.execute(_STEPS_OF_CONTEXT, {"context": context_id}).all()
    return connection.execute(_STEPS_OF_TURNS, {"context": context_id, "turns": list(turn_ids)}).all()


def read_step_data(connection: Connection, step_id: int) -> bytes | None:
    """Return the record of a step; None if it is gone."""
    found: bytes | None = connection.execute(select(steps.c.data).where(steps.c.id == step_id)).scalar_one_or_none()
    return found


def find_next_position(connection: Connection, context_id: int, position: float) -> float | None:
    """Return the position of the next step of a context behind one; None if that is the last."""
    sought = {"context": context_id, "after": position}
    found: float | None = connection.execute(_NEXT_POSITION, sought).scalar_one_or_none()
    return found


def insert_prompts(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store what prompts of turns have that those before them had not."""
    if rows:
        execute_each(connection, _INSERT_PROMPT, rows)


def list_prompts(connection: Connection, turn_id: int) -> Sequence[Any]:
    """Return the rows of what a turn sent to its model, in their order."""
    return connection.execute(_PROMPTS, {"turn": turn_id}).all()


def find_system_prompt(connection: Connection, turn_id: int) -> str | None:
    """Return the digest of a turn's system prompt."""
    digest: str | None = connection.execute(_DIGEST_OF_SYSTEM_PROMPT, {"turn": turn_id}).scalar_one_or_none()
    return digest


# Feedback

VERDICTS: Final = ("good", "bad")
_INSERT_VERDICT = insert(feedback)
_DELETE_VERDICT = delete(feedback).where(
    feedback.c.turn_id == bindparam("turn"),
    feedback.c.platform == bindparam("of_platform"),
    feedback.c.person_id == bindparam("person"),
)


def write_feedback(connection: Connection, turn_id: int, author: Author, verdict: str | None, now: datetime) -> bool:
    """Store an author's verdict on a turn's answer in place of their earlier one; return whether they may give one.

    Args:
        verdict: One of `VERDICTS`; None to take it back.
    """
    roles, _ = read_roles(connection, read_names(connection, person_name(author)), "")
    if AccessRole.BLOCKED in roles or author.id is None or author.is_chat:
        return False
    connection.execute(_DELETE_VERDICT, {"turn": turn_id, "of_platform": author.platform, "person": author.id})
    if verdict is not None:
        row = {"turn_id": turn_id, "platform": author.platform, "person_id": author.id}
        connection.execute(_INSERT_VERDICT, row | {"verdict": verdict, "created_at": now})
    return True
