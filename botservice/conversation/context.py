"""One conversation with everything that belongs to it."""

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from botservice.conversation.agent_memory import AgentMemory, completed_steps
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.items import MemoryItem, checked_item
from botservice.conversation.kept_out import UNBOUNDED
from botservice.conversation.metadata_changes import (
    NO_METADATA,
    MetadataChanges,
    as_json,
    find_changes,
    only_json,
    with_key,
)
from botservice.conversation.queries import (
    find_context,
    find_or_insert_context,
    read_system_prompt,
    set_metadata,
    write_metadata,
)
from botservice.conversation.snapshots import Snapshot, find_task, read_snapshot
from botservice.conversation.step_records import StepRecords, StoredStep, read_steps
from botservice.conversation.steps import ActionStep, FailedStep, TaskStep
from botservice.core.errors import InvalidField
from botservice.core.messages import Author, Message, storable
from botservice.core.personas import PROMPT, prompt_of, system_prompt
from botservice.history.chat_history import ChatHistory
from botservice.history.note_queries import read_notes
from botservice.history.notes import Note
from botservice.llm.chat import BeforeCall, TextSink
from botservice.llm.output_form import OutputForm
from botservice.storage.database import Connection, Storage


class AgentContext:
    """A conversation: its history, the agent's memory of the current prompt, and its metadata.

    Attributes:
        id: Its id in storage.
        context_keys: What it was asked for by; read-only.
        metadata: JSON values that stay with the context; `save_metadata`, the next turn or its next step stores them.
        chat_history: What people and the assistant said.
        memory: The agent's steps for the current prompt, or for the last one where none is open. What is put in here
            before a prompt comes before its question.
        before_call: Awaited with the prompt and the tools before a model is asked; None if nobody limits calls.
        bounds: What the next prompt is to keep to, because the one before it was refused.
        on_text: Takes the pieces of an answer while a model writes it; None if nobody listens.
        on_thought: Takes what a model says that it thinks, where it does; None if nobody listens.
        delegate: Has another agent work on a task, while a turn runs; None elsewhere.
        language: Two letters, of the person who began the current turn; None if it is not known.
        turn_id: The turn that memory belongs to.
        looking_at: What the person who began the current turn has open while they ask; it is stored nowhere.
        output_form: The form that the answer of the current turn has to have; None for any.
        only_tools: The names of the tools that may run in the current turn; None for all.
        question_parts: The messages of the current turn's question before the last one, if it came as several.
        asked_by: Who asks in the current turn, where that is not who wrote the message that is answered.
        task: The step of memory that says what the current prompt asks; the work on it comes after.
        open_step: A step of memory's turn whose calls have not all ended; it is in no list yet.
        steps_taken: How many action steps the current turn has begun, also those that were deleted since.
        last_step_number: Steps are numbered through all prompts of a context.
        has_read_untrusted: Whether the step that is taken rests on what strangers wrote and no message says so: then no
            tool runs by what a person allowed for always.
        has_open_calls: Whether a call waits here for a word or a result, as far as it was looked.
    """

    def __init__(self, storage: Storage, context_id: int, context_keys: Mapping[str, Any]) -> None:
        self.storage = storage
        self.id = context_id
        self.context_keys = context_keys
        self.metadata: dict[str, Any] = {}
        self.chat_history = ChatHistory(storage, context_id)
        self.memory = AgentMemory()
        self.records = StepRecords(context_id, 0)
        self.before_call: BeforeCall | None = None
        self.bounds = UNBOUNDED
        self.on_text: TextSink | None = None
        self.on_thought: TextSink | None = None
        self.delegate: Callable[..., Any] | None = None
        self.language: str | None = None
        self.looking_at: str | None = None
        self.output_form: OutputForm | None = None
        self.only_tools: frozenset[str] | None = None
        self.turn_id: int | None = None
        self.asked_by: Author | None = None
        self.question_parts: Sequence[Message] = ()
        self.task: TaskStep | None = None
        self.open_step: StoredStep | None = None
        self.steps_taken = 0
        self.last_step_number = 0
        self.has_read_untrusted = False
        self.has_open_calls = True
        self._saved_metadata = NO_METADATA

    def __repr__(self) -> str:
        return f"AgentContext({self.id}, {dict(self.context_keys)!r})"

    @classmethod
    async def get_or_create(cls, storage: Storage, context_keys: Mapping[str, Any]) -> "AgentContext":
        """Return the context with exactly these keys, in any order; create it if there is none.

        Args:
            context_keys: A JSON object, at most 4 kB and 8 levels deep. `1`, `1.0`, `true` and `"1"` differ.

        Raises:
            InvalidContextKeys: they are no such object.
        """
        keys = ContextKeys.of(context_keys)
        context_id = await storage.read(lambda connection: find_context(connection, keys), is_short=True)
        if context_id is None:
            now = storage.now()
            context_id = await storage.write(
                lambda connection: find_or_insert_context(connection, keys, now), sort_key=(keys.digest,)
            )
        context = cls(storage, context_id, keys.values)
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
        context = cls(storage, context_id, MappingProxyType(dict(sorted(snapshot.context_keys.items()))))
        context.show(snapshot)
        return context

    @property
    def completed_steps(self) -> list[ActionStep]:
        """The finished action steps of the current prompt; changing this list changes nothing."""
        return completed_steps(self.memory, self.task)

    @property
    def last_author(self) -> Author | None:
        """The author of the last message of a person."""
        question = self.chat_history.last_user_message
        return None if question is None else question.author

    @property
    def asker(self) -> Author | None:
        """The author of the message that is answered, or of the newest one; for a call that waited, its own author."""
        return self.asked_by if self.asked_by is not None else self.last_author

    def system_prompt_for(self, prompt: str, skills: str = "") -> str:
        """Return what stands at the top of prompts here, for an agent whose own prompt and list of skills are these."""
        return system_prompt(prompt, self.metadata, skills) if self.metadata or skills else prompt

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[dict[str, Any]]:  # noqa: FBT001, FBT002 - contract
        """Return memory as chat-completions messages; see `AgentMemory.write_memory_to_messages`."""
        return self.memory.write_memory_to_messages(summary_mode)

    async def load_memory(self) -> AgentMemory:
        """Return the steps of all prompts of this context, oldest first."""

        def query(connection: Connection) -> AgentMemory:
            stored = read_steps(connection, self.id)
            return AgentMemory(read_system_prompt(connection, self.id), [each.item for each in stored])

        return await self.storage.read(query, is_long=True)

    async def notes(self) -> list[Note]:
        """Return what is noted of this conversation, oldest first."""
        return [each.note for each in await self.storage.read(lambda connection: read_notes(connection, self.id))]

    @property
    def prompt(self) -> str | None:
        """What stands in place of the agent's prompt in this conversation; see `set_prompt`."""
        return prompt_of(self.metadata)

    async def set_prompt(self, text: str | None) -> None:
        """Give this conversation a system prompt of its own, in place of the agent's; None takes it back.

        It is stored at once, as `metadata["prompt"]`, and counts from the next prompt of a model. A persona that people
        gave with /persona comes behind it.
        """
        value = None if text is None or not text.strip() else storable(text)
        await self.storage.write(
            lambda connection: set_metadata(connection, context_id=self.id, key=PROMPT, value=value)
        )
        self.metadata = with_key(self.metadata, PROMPT, value)
        self._saved_metadata = as_json(with_key(json.loads(self._saved_metadata), PROMPT, value))

    async def save_metadata(self) -> None:
        """Store now what was changed in metadata; what others changed in it meanwhile stays.

        Raises:
            InvalidField: there is no JSON for a value.
        """
        changed = self.changed_metadata()
        if changed is not None:
            await self.storage.write(lambda connection: write_metadata(connection, self.id, changed))
            self.confirm_metadata(changed)

    async def refresh(self, turn_id: int | None = None, *, with_steps: bool = True) -> None:
        """Bring everything up to date with storage; what was put into memory or metadata and is not stored stays.

        Args:
            turn_id: The turn whose memory to load; by default the newest one.
            with_steps: Otherwise memory is empty: a new turn is about to begin.
        """
        self.show(
            await self.storage.read(
                lambda connection: read_snapshot(connection, self.id, turn_id, with_steps=with_steps),
                is_short=not with_steps,
            )
        )

    def show(self, snapshot: Snapshot) -> None:
        """Set everything to what `read_snapshot` has read, with what a program put in and nobody has stored yet.

        Raises:
            InvalidField: there is no JSON for a value of metadata, or something that is no item was put into memory.
        """
        changed = self.changed_metadata()
        self.metadata = snapshot.metadata if changed is None else changed.applied_to(snapshot.metadata)
        self._saved_metadata = as_json(snapshot.metadata) if snapshot.metadata else NO_METADATA
        self.steps_taken = snapshot.steps_taken
        self.last_step_number = snapshot.last_step_number
        self.has_open_calls = snapshot.has_open_calls
        if snapshot.knows_last_message:
            self.chat_history.remember_last(snapshot.last_user_message)
        self.asked_by = snapshot.asked_by
        self._load_steps(snapshot)

    def unsaved_steps(self) -> list[MemoryItem]:
        """Return the steps that callers put into memory and that no run has stored yet; the next run stores them.

        Raises:
            InvalidField: something that is no item was put in.
        """
        return [item for item in self.memory.steps if item is not None and self._is_put_in(checked_item(item))]

    def put_in_task(self) -> TaskStep | None:
        """Return the newest task that a program put into memory and no run has begun with yet."""
        return next((item for item in reversed(self.unsaved_steps()) if isinstance(item, TaskStep)), None)

    def begin_turn(self, system_prompt: str, task: TaskStep | None, *, keeps_steps: bool) -> None:
        """Make room for the steps of a new turn; the earlier ones stay in view where it keeps them."""
        kept = self.memory.steps if keeps_steps else self.unsaved_steps()
        if keeps_steps:
            self.records.system_prompt = system_prompt
            self.records.assign_turn(0)
        else:
            self.records = StepRecords(self.id, 0, self.records.last_position, system_prompt=system_prompt)
        self.memory = AgentMemory(system_prompt, kept)
        if task is not None:
            given = self.put_in_task()
            if given is None or given.task != task.task:
                self.memory.steps.append(task)
            else:  # a program has put the question in by itself, maybe with steps behind it
                given.task_images = given.task_images or task.task_images
                task = given
        self.task = task
        self.question_parts = ()
        self.open_step = None
        self.steps_taken = 0

    def assign_turn(self, turn_id: int) -> None:
        """Set the id of the turn that has begun."""
        self.turn_id = turn_id
        self.records.assign_turn(turn_id)

    def changed_metadata(self) -> MetadataChanges | None:
        """Return what of metadata is not stored yet.

        Raises:
            InvalidField: there is no JSON for a value.
        """
        if not self.metadata and self._saved_metadata == NO_METADATA:
            return None
        try:
            return find_changes(self.metadata, self._saved_metadata)
        except InvalidField:  # it is said once, and stands in nobody's way then
            self.metadata = only_json(self.metadata)
            raise

    def confirm_metadata(self, changes: MetadataChanges) -> None:
        """Remember changes of metadata as stored."""
        self._saved_metadata = changes.text

    def _is_put_in(self, item: MemoryItem) -> bool:
        """Whether an item is neither stored nor what a run left behind that could not store it."""
        is_left = item is self.task or isinstance(item, FailedStep) or self.records.is_own(item)
        return not is_left and self.records.row_id(item) is None

    def _load_steps(self, snapshot: Snapshot) -> None:
        put_in = self.unsaved_steps()
        self.turn_id = snapshot.turn_id
        self.records = StepRecords(
            self.id,
            snapshot.turn_id or 0,
            snapshot.floor,
            snapshot.logs,
            stride=snapshot.stride,
            system_prompt=snapshot.system_prompt,
        )
        # An open step of another turn in view is what that one waits with.
        shown = [each for each in snapshot.steps if not each.is_open or each.turn_id == snapshot.turn_id]
        for stored in shown:
            self.records.note(stored)
        self.task = find_task(shown, snapshot.turn_id)
        self.open_step = next((stored for stored in shown if stored.is_open), None)
        closed = [stored.item for stored in shown if not stored.is_open]
        self.memory = AgentMemory(snapshot.system_prompt, [*closed, *put_in])
