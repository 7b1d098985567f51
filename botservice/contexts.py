"""One conversation with everything that belongs to it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from botservice.errors import InvalidContextKeys, StorageError
from botservice.history import ChatHistory
from botservice.history.chat_history import find_last_user_message
from botservice.llm.chat import BeforeCall, TextSink
from botservice.memory import ActionStep, AgentMemory, TaskStep
from botservice.memory.agent_memory import completed_steps
from botservice.memory.prompt_log import PromptLog
from botservice.memory.step_records import LAST_POSITION, StepRecords, StoredStep, find_last_position, read_steps
from botservice.memory.step_view import StepView
from botservice.messages import Message, storable
from botservice.storage import Storage
from botservice.storage.blobs import read_blobs
from botservice.storage.interleaving import interleave
from botservice.storage.statements import execute
from botservice.storage.tables import contexts, turns

# Statements are made once: making one anew for every call takes SQLAlchemy longer than running it.
_CONTEXT_ID = select(contexts.c.id).where(contexts.c.key_hash == bindparam("key_hash"))
_CONTEXT_KEYS = select(contexts.c.context_keys).where(contexts.c.id == bindparam("context"))
_STEPS_TAKEN = select(turns.c.steps_taken).where(turns.c.id == bindparam("turn"))
_LAST_STEP_NUMBER = (
    select(turns.c.last_step_number)
    .where(turns.c.context_id == bindparam("context"), turns.c.last_step_number.is_not(None))
    .order_by(turns.c.id.desc())
    .limit(1)
)
_STATE = select(
    contexts.c.context_keys,
    contexts.c.metadata,
    _LAST_STEP_NUMBER.scalar_subquery().label("last_step_number"),
    LAST_POSITION.scalar_subquery().label("last_position"),
).where(contexts.c.id == bindparam("context"))


@dataclass(frozen=True, slots=True)
class ContextKeys:
    """What identifies a context: pairs of strings, in one canonical order."""

    values: Mapping[str, str]
    digest: str

    @classmethod
    def of(cls, keys: Mapping[str, str]) -> "ContextKeys":
        """Return keys in their canonical form.

        Raises:
            InvalidContextKeys: keys are empty, or something in them is not a string.
        """
        if not isinstance(keys, Mapping) or not keys:
            raise InvalidContextKeys("context keys must be a non-empty mapping, such as {'chat_id': '42'}")
        for key, value in keys.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise InvalidContextKeys(
                    f"context keys and values must be strings: {key!r} has {type(value).__name__}; use str(…)"
                )
        values = {_without_halves(key): _without_halves(value) for key, value in sorted(keys.items())}
        # Of what was given, not of what is stored: two keys that are stored alike are two contexts all the same.
        text = json.dumps(dict(keys), sort_keys=True, separators=(",", ":"))
        return cls(MappingProxyType(values), hashlib.sha256(text.encode()).hexdigest())


def _without_halves(text: str) -> str:
    """Return text with U+FFFD for lone surrogates. NUL stays: JSON keeps it, and what is read is the same key."""
    return "\0".join(map(storable, text.split("\0")))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a context holds at one moment."""

    context_keys: Mapping[str, str]
    metadata: dict[str, Any]
    last_user_message: Message | None
    turn_id: int | None
    system_prompt: str
    steps: list[StoredStep]
    logs: dict[int, PromptLog]
    floor: float
    steps_taken: int
    last_step_number: int


class AgentContext:
    """A conversation: its history, the agent's memory of the current prompt, and its metadata.

    Attributes:
        id: Its id in storage.
        context_keys: What it was asked for by; read-only.
        metadata: JSON values that stay with the context; `save_metadata` or the end of a turn stores them.
        chat_history: What people and the assistant said.
        memory: The agent's steps for the current prompt, or for the last one where none is open.
        before_call: Awaited with the prompt and the tools before a model is asked; None where nobody limits calls.
        on_text: Takes the pieces of an answer while a model writes it; None where nobody listens.
        on_thought: Takes what a model says that it thinks, where it does; None where nobody listens.
        language: Two letters, of whoever began the current turn; None where that is not known.
        turn_id: The turn that memory belongs to.
        task: The step of memory that says what the current prompt asks; the work on it comes after.
        open_step: A step of memory's turn whose calls have not all ended; it is in no list yet.
        steps_taken: How many action steps the current turn has begun, also those that were deleted since.
        last_step_number: Steps are numbered through all prompts of a context.
    """

    def __init__(self, storage: Storage, context_id: int, keys: ContextKeys) -> None:
        self.storage = storage
        self.id = context_id
        self.context_keys = keys.values
        self.metadata: dict[str, Any] = {}
        self.chat_history = ChatHistory(storage, context_id)
        self.memory = AgentMemory()
        self.records = StepRecords(context_id, 0)
        self.step_view = StepView()
        self.before_call: BeforeCall | None = None
        self.on_text: TextSink | None = None
        self.on_thought: TextSink | None = None
        self.language: str | None = None
        self.turn_id: int | None = None
        self.task: TaskStep | None = None
        self.open_step: StoredStep | None = None
        self.steps_taken = 0
        self.last_step_number = 0
        self._saved_metadata = "{}"

    def __repr__(self) -> str:
        return f"AgentContext({self.id}, {dict(self.context_keys)!r})"

    @classmethod
    async def get_or_create(cls, storage: Storage, context_keys: Mapping[str, str]) -> "AgentContext":
        """Return the context with exactly these keys, in whatever order; make it where there is none.

        Raises:
            InvalidContextKeys: a key or a value is no string, or there is none.
        """
        keys = ContextKeys.of(context_keys)
        context_id = await storage.read(lambda connection: find_context(connection, keys))
        if context_id is None:
            now = storage.now()
            context_id = await storage.write(
                lambda connection: find_or_insert_context(connection, keys, now), sort_key=(keys.digest,)
            )
        context = cls(storage, context_id, keys)
        await context.refresh()
        return context

    @classmethod
    async def load(cls, storage: Storage, context_id: int, turn_id: int | None = None) -> "AgentContext":
        """Return a context by its id, with the memory of a turn, of the newest by default.

        Raises:
            StorageError: there is no such context.
        """
        return await storage.read(lambda connection: cls.read(storage, connection, context_id, turn_id))

    @classmethod
    def read(
        cls,
        storage: Storage,
        connection: Connection,
        context_id: int,
        turn_id: int | None = None,
        *,
        with_steps: bool = True,
    ) -> "AgentContext":
        """Return a context through a connection; without steps, its memory is empty."""
        snapshot = read_snapshot(connection, context_id, turn_id, with_steps=with_steps)
        context = cls(storage, context_id, ContextKeys.of(snapshot.context_keys))
        context._show(snapshot)
        return context

    @property
    def completed_steps(self) -> list[ActionStep]:
        """The finished action steps of the current prompt; changing this list changes nothing."""
        return completed_steps(self.memory, self.task)

    async def load_memory(self) -> AgentMemory:
        """Return the steps of all prompts of this context, oldest first."""

        def query(connection: Connection) -> AgentMemory:
            stored = read_steps(connection, self.id)
            return AgentMemory(_read_system_prompt(connection, self.id), [each.item for each in stored])

        return await self.storage.read(query)

    async def save_metadata(self) -> None:
        """Store metadata now."""
        changed = self.changed_metadata()
        if changed is not None:
            await self.storage.write(lambda connection: write_metadata(connection, self.id, changed))
            self.confirm_metadata(changed)

    async def refresh(self, turn_id: int | None = None, *, with_steps: bool = True) -> None:
        """Bring everything up to date with storage.

        Args:
            turn_id: The turn whose memory to load; by default the newest one.
            with_steps: Otherwise memory is empty: a new turn is about to begin.
        """
        self._show(
            await self.storage.read(
                lambda connection: read_snapshot(connection, self.id, turn_id, with_steps=with_steps)
            )
        )

    def begin_turn(self, system_prompt: str, task: TaskStep | None, *, keeps_steps: bool) -> None:
        """Make room for the steps of a new turn; the earlier ones stay in view where it keeps them."""
        if keeps_steps:
            self.records.assign_turn(0)
        else:
            self.records = StepRecords(self.id, 0, self.records.last_position)
        self.memory = AgentMemory(system_prompt, self.memory.steps if keeps_steps else [])
        if task is not None:
            self.memory.steps.append(task)
        self.task = task
        self.step_view = StepView()
        self.open_step = None
        self.steps_taken = 0

    def assign_turn(self, turn_id: int) -> None:
        """Take note of the id of the turn that has begun."""
        self.turn_id = turn_id
        self.records.assign_turn(turn_id)

    def changed_metadata(self) -> str | None:
        """Return metadata as JSON where it differs from what is stored."""
        text = json.dumps(self.metadata, sort_keys=True)
        return None if text == self._saved_metadata else text

    def confirm_metadata(self, text: str) -> None:
        """Take note that text is stored."""
        self._saved_metadata = text

    def _show(self, snapshot: Snapshot) -> None:
        self.metadata = snapshot.metadata
        self._saved_metadata = json.dumps(snapshot.metadata, sort_keys=True)
        self.steps_taken = snapshot.steps_taken
        self.last_step_number = snapshot.last_step_number
        self.chat_history.remember_last(snapshot.last_user_message)
        self._load_steps(snapshot)

    def _load_steps(self, snapshot: Snapshot) -> None:
        self.turn_id = snapshot.turn_id
        self.records = StepRecords(self.id, snapshot.turn_id or 0, snapshot.floor, snapshot.logs)
        for stored in snapshot.steps:
            self.records.note(stored)
        self.task = _find_task(snapshot.steps, snapshot.turn_id)
        self.open_step = next((stored for stored in snapshot.steps if stored.is_open), None)
        self.memory = AgentMemory(
            snapshot.system_prompt, [stored.item for stored in snapshot.steps if not stored.is_open]
        )
        self.step_view = StepView()


def find_context(connection: Connection, keys: ContextKeys) -> int | None:
    """Return the id of the context with these keys."""
    found: int | None = execute(connection, _CONTEXT_ID, {"key_hash": keys.digest}).scalar_one_or_none()
    return found


def find_or_insert_context(connection: Connection, keys: ContextKeys, now: datetime) -> int:
    """Return the id of the context with these keys; make it where there is none."""
    known = find_context(connection, keys)
    if known is not None:
        return known
    new = insert(contexts).values(key_hash=keys.digest, context_keys=dict(keys.values), metadata={}, created_at=now)
    savepoint = connection.begin_nested()  # an error until here is somebody else's
    try:
        with savepoint:
            return int(connection.execute(new.returning(contexts.c.id)).scalar_one())
    except IntegrityError:  # another replica made it at the same moment
        return int(execute(connection, _CONTEXT_ID, {"key_hash": keys.digest}).scalar_one())


def rename_context(connection: Connection, old: ContextKeys, new: ContextKeys) -> bool:
    """Give the context with old keys new ones; return whether it was there, and nobody else had them."""
    if find_context(connection, new) is not None:
        return False
    change = update(contexts).where(contexts.c.key_hash == old.digest)
    renamed = connection.execute(change.values(key_hash=new.digest, context_keys=dict(new.values)))
    return renamed.rowcount > 0


def read_context_keys(connection: Connection, context_id: int) -> Mapping[str, str]:
    """Return the keys of a context.

    Raises:
        StorageError: there is no such context.
    """
    keys: Mapping[str, str] | None = execute(connection, _CONTEXT_KEYS, {"context": context_id}).scalar_one_or_none()
    if keys is None:
        raise StorageError(f"there is no context {context_id}")
    return keys


def write_metadata(connection: Connection, context_id: int, text: str) -> None:
    """Store a context's metadata, given as JSON."""
    connection.execute(update(contexts).where(contexts.c.id == context_id).values(metadata=json.loads(text)))


def read_snapshot(
    connection: Connection, context_id: int, turn_id: int | None = None, *, with_steps: bool = True
) -> Snapshot:
    """Return what a context holds, with the steps in view of a turn, of the newest by default."""
    state, last_user_message = interleave(
        lambda: execute(connection, _STATE, {"context": context_id}).one_or_none(),
        lambda: find_last_user_message(connection, context_id),
    )
    if state is None:
        known = f"there is no context {context_id}"
        raise StorageError(f"{known}; where it was deleted: get it anew with AgentContext.get_or_create")
    in_view = _turns_in_view(connection, context_id, turn_id) if with_steps else []
    logs: dict[int, PromptLog] = {}
    stored = read_steps(connection, context_id, turn_ids=in_view, logs=logs) if in_view else []
    current = in_view[0] if in_view else None
    if current is not None and current not in logs:
        logs[current] = PromptLog.load(connection, context_id, current)
    floor = state.last_position or 0.0
    if in_view:
        floor = find_last_position(connection, context_id, without_turns=in_view)
    return Snapshot(
        state.context_keys,
        state.metadata,
        last_user_message,
        current,
        _read_system_prompt(connection, context_id, current) if in_view else "",
        stored,
        logs,
        floor,
        _read_steps_taken(connection, current) if current is not None else 0,
        state.last_step_number or 0,
    )


def _find_task(stored: list[StoredStep], turn_id: int | None) -> TaskStep | None:
    """Return the task that a turn began with: the first that was stored; others were put in later."""
    own = [each for each in stored if each.turn_id == turn_id and isinstance(each.item, TaskStep)]
    first = min(own, key=lambda each: each.row_id, default=None)
    return first.item if first is not None and isinstance(first.item, TaskStep) else None


def _read_steps_taken(connection: Connection, turn_id: int) -> int:
    return execute(connection, _STEPS_TAKEN, {"turn": turn_id}).scalar_one_or_none() or 0


def _turns_in_view(connection: Connection, context_id: int, turn_id: int | None) -> list[int]:
    """Return the turns whose steps are in view, the newest first: back to the last one that began anew."""
    query = (
        select(turns.c.id, turns.c.keeps_steps)
        .where(turns.c.context_id == context_id, turns.c.started_at.is_not(None))
        .order_by(turns.c.id.desc())
    )
    if turn_id is not None:
        query = query.where(turns.c.id <= turn_id)
    in_view = []
    with connection.execute(query) as rows:
        for row in rows:
            in_view.append(row.id)
            if not row.keeps_steps:
                break
    return in_view


def _read_system_prompt(connection: Connection, context_id: int, turn_id: int | None = None) -> str:
    query = (
        select(turns.c.system_prompt)
        .where(turns.c.context_id == context_id, turns.c.system_prompt.is_not(None))
        .order_by(turns.c.id.desc())
        .limit(1)
    )
    if turn_id is not None:
        query = query.where(turns.c.id == turn_id)
    digest = connection.execute(query).scalar_one_or_none()
    if digest is None:
        return ""
    return read_blobs(connection, context_id, [digest]).get(digest, b"").decode()
