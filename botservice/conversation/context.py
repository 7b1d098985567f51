"""One conversation with everything that belongs to it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from botservice.conversation.agent_memory import AgentMemory, completed_steps
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.items import MemoryItem, checked_item
from botservice.conversation.metadata_changes import MetadataChanges, as_texts, find_changes, only_json, with_key
from botservice.conversation.pausing import Pause, last_to_end
from botservice.conversation.prompt_exclusions import UNBOUNDED
from botservice.conversation.queries import (
    find_context,
    find_or_insert_context,
    read_system_prompt,
    set_metadata,
    write_metadata,
)
from botservice.conversation.snapshots import NOTHING_STORED, Snapshot, find_task, read_snapshot
from botservice.conversation.step_records import StepRecords, StoredStep, read_steps
from botservice.conversation.steps import ActionStep, FailedStep, TaskStep
from botservice.core.errors import InvalidField
from botservice.core.messages import Author, Message, storable
from botservice.core.personas import PROMPT, prompt_of, system_prompt
from botservice.history.chat_history import ChatHistory
from botservice.history.note_queries import read_notes
from botservice.history.notes import Note
from botservice.history.recent import RecentMessages
from botservice.llm.chat import BeforeCall, TextSink
from botservice.llm.structured_output import OutputForm
from botservice.storage.database import Connection, Storage


class AgentContext:
    """A conversation: its history, the agent's memory of the current prompt, and its metadata.

    Attributes:
        id: Its id in storage.
        context_keys: The keys that identify it; read-only.
        metadata: JSON values that belong to the context; `save_metadata`, the next turn or its next step stores them.
        chat_history: The messages of people and the assistant.
        memory: The agent's steps for the current prompt, or for the last one if none is open. Items that you add
            before a prompt come before its question.
        before_call: Awaited with the prompt and the tools before each model call; None if calls are not limited.
        bounds: Limits for the next prompt, because the previous one was refused.
        on_text: Receives the pieces of an answer while the model writes it; None without a listener.
        on_thought: Receives the thoughts that a model shows; None without a listener.
        delegate: Delegates a task to another agent while a turn runs; None otherwise.
        find_roles: Finds the roles of each person who asks in the turn that runs; None otherwise.
        unlimited_tools: The names of the tools that run in the current turn whatever roles they want.
        withheld_tools: The tools that were last not offered because of a role, with the roles that they want.
        language: The two-letter language of the person who started the turn; None if unknown.
        turn_id: The turn of the memory.
        looking_at: The page or document that the person has open while they ask; it is not stored.
        output_form: The form that the answer of the current turn has to have; None for any.
        only_tools: The names of the tools that may run in the current turn; None for all.
        question_parts: The earlier messages of a question that came as several.
        asked_by: The person who asks, if another person wrote the answered message.
        task: The step of memory with the question; the work on it follows.
        open_step: A step of the turn whose calls have not all ended; it is not in the list yet.
        steps_taken: The number of action steps that the turn has started, including deleted ones.
        last_step_number: The last step number; steps are numbered through all prompts of a context.
        has_read_untrusted: Whether the current step is based on words of strangers that no message shows. Then tools
            that a person always allows ask again.
        has_open_calls: Whether a call awaits approval or a result, as of the last refresh.
        chat_pause: The pause of the whole chat, for a thread or topic of it.
    """

    metadata: dict[str, Any]
    memory: AgentMemory
    records: StepRecords
    task: TaskStep | None
    open_step: StoredStep | None
    turn_id: int | None
    asked_by: Author | None
    steps_taken: int
    last_step_number: int
    has_open_calls: bool
    chat_pause: Pause | None
    _saved_metadata: Mapping[str, str]

    def __init__(
        self, storage: Storage, context_id: int, context_keys: Mapping[str, Any], snapshot: Snapshot = NOTHING_STORED
    ) -> None:
        self.storage = storage
        self.id = context_id
        self.context_keys = context_keys
        self.chat_history = ChatHistory(storage, context_id)
        self.before_call: BeforeCall | None = None
        self.bounds = UNBOUNDED
        self.on_text: TextSink | None = None
        self.on_thought: TextSink | None = None
        self.delegate: Callable[..., Any] | None = None
        self.find_roles: Callable[[], Awaitable[Sequence[frozenset[str]]]] | None = None
        self.unlimited_tools: frozenset[str] = frozenset()
        self.withheld_tools: Mapping[str, Sequence[str]] = {}
        self.language: str | None = None
        self.looking_at: str | None = None
        self.output_form: OutputForm | None = None
        self.only_tools: frozenset[str] | None = None
        self.question_parts: Sequence[Message] = ()
        self.has_read_untrusted = False
        self._take(snapshot, None, ())

    def __repr__(self) -> str:
        return f"AgentContext({self.id}, {dict(self.context_keys)!r})"

    @classmethod
    async def get_or_create(cls, storage: Storage, context_keys: Mapping[str, Any]) -> "AgentContext":
        """Get the context with exactly these keys, in any order, or create it.

        Args:
            context_keys: A JSON object, at most 4 kB and 8 levels deep. `1`, `1.0`, `true` and `"1"` differ.

        Raises:
            InvalidContextKeys: they are no such object.
        """
        keys = ContextKeys.of(context_keys)

        def read(connection: Connection) -> tuple[int, Snapshot] | None:
            known = find_context(connection, keys)
            return (
                None if known is None else (known, read_snapshot(connection, known, recents=RecentMessages.of(storage)))
            )

        found = await storage.read(read)
        if found is None:
            now = storage.now()
            context_id = await storage.write(
                lambda connection: find_or_insert_context(connection, keys, now), sort_key=(keys.digest,)
            )
            return await cls.load(storage, context_id)
        context_id, snapshot = found
        return cls(storage, context_id, keys.values, snapshot)

    @classmethod
    async def load(cls, storage: Storage, context_id: int, turn_id: int | None = None) -> "AgentContext":
        """Load a context by its id, with the memory of a turn; by default of the newest.

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
        with_last_message: bool = True,
    ) -> "AgentContext":
        """Load a context through a connection; without steps, its memory is empty."""
        snapshot = read_snapshot(
            connection,
            context_id,
            turn_id,
            with_steps=with_steps,
            with_last_message=with_last_message,
            recents=RecentMessages.of(storage),
        )
        return cls(storage, context_id, MappingProxyType(dict(sorted(snapshot.context_keys.items()))), snapshot)

    @property
    def pause(self) -> Pause | None:
        """The pause of this conversation or of its chat, also one that is over; None without one."""
        return last_to_end(Pause.of(self.metadata), self.chat_pause)

    @property
    def completed_steps(self) -> list[ActionStep]:
        """The finished action steps of the current prompt, as a copy."""
        return completed_steps(self.memory, self.task)

    @property
    def last_author(self) -> Author | None:
        """The author of the last message of a person."""
        question = self.chat_history.last_user_message
        return None if question is None else question.author

    @property
    def asker(self) -> Author | None:
        """The author of the answered message, or of the newest one; for a suspended call, the author of the call."""
        return self.asked_by if self.asked_by is not None else self.last_author

    @property
    def is_unasked(self) -> bool:
        """Whether nobody asked: a model decided that the assistant has something to say in a group."""
        return self.task is not None and self.task.unasked_by is not None

    @property
    def has_several_askers(self) -> bool:
        """Whether several people ask: they sent parts of the question, or one wants that of another answered again."""
        asking = [*(each.author for each in self.question_parts), self.last_author, self.asker]
        return len({None if each is None else (each.platform, each.id) for each in asking}) > 1

    def system_prompt_for(self, prompt: str, skills: str = "") -> str:
        """Build the system prompt of this conversation for an agent with this prompt and list of skills."""
        return system_prompt(prompt, self.metadata, skills) if self.metadata or skills else prompt

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[dict[str, Any]]:  # noqa: FBT001, FBT002 - contract
        """Convert memory into chat-completions messages; see `AgentMemory.write_memory_to_messages`."""
        return self.memory.write_memory_to_messages(summary_mode)

    async def load_memory(self) -> AgentMemory:
        """Load the steps of all prompts of this context, oldest first."""

        def query(connection: Connection) -> AgentMemory:
            stored = read_steps(connection, self.id)
            return AgentMemory(read_system_prompt(connection, self.id), [each.item for each in stored])

        return await self.storage.read(query, is_long=True)

    async def notes(self) -> list[Note]:
        """List the notes of this conversation, oldest first."""
        return [each.note for each in await self.storage.read(lambda connection: read_notes(connection, self.id))]

    @property
    def prompt(self) -> str | None:
        """The system prompt of this conversation that replaces the agent's; see `set_prompt`."""
        return prompt_of(self.metadata)

    async def set_prompt(self, text: str | None) -> None:
        """Replace the agent's system prompt in this conversation; None removes the replacement.

        It is stored at once, as `metadata["prompt"]`, and applies from the next model call. A persona from /persona
        follows it.
        """
        value = None if text is None or not text.strip() else storable(text)
        await self.storage.write(
            lambda connection: set_metadata(connection, context_id=self.id, key=PROMPT, value=value)
        )
        self.metadata = with_key(self.metadata, PROMPT, value)
        stored = as_texts(with_key({}, PROMPT, value))
        self._saved_metadata = {**with_key(self._saved_metadata, PROMPT, None), **stored}

    async def save_metadata(self) -> None:
        """Store the changes of metadata now; changes of others stay.

        Raises:
            InvalidField: a value cannot be represented as JSON.
        """
        changed = self.changed_metadata()
        if changed is not None:
            await self.storage.write(lambda connection: write_metadata(connection, self.id, changed))
            self.confirm_metadata(changed)

    async def refresh(self, turn_id: int | None = None, *, with_steps: bool = True) -> None:
        """Reload everything from storage; unsaved items of memory and metadata stay.

        Args:
            turn_id: The turn whose memory to load; by default the newest one.
            with_steps: Whether to load steps; without them memory is empty, for a new turn.
        """
        read = partial(
            read_snapshot,
            context_id=self.id,
            turn_id=turn_id,
            with_steps=with_steps,
            recents=RecentMessages.of(self.storage),
        )
        self.show(await self.storage.read(read))

    def show(self, snapshot: Snapshot) -> None:
        """Set everything to what `read_snapshot` has read, with what a program put in and nobody has stored yet.

        Raises:
            InvalidField: there is no JSON for a value of metadata, or something that is no item was put into memory.
        """
        self._take(snapshot, self.changed_metadata(), self.unsaved_steps())

    def _take(self, snapshot: Snapshot, changed: MetadataChanges | None, put_in: Sequence[MemoryItem]) -> None:
        self.metadata = dict(snapshot.metadata) if changed is None else changed.applied_to(snapshot.metadata)
        self._saved_metadata = as_texts(snapshot.metadata)
        self.steps_taken = snapshot.steps_taken
        self.last_step_number = snapshot.last_step_number
        self.has_open_calls = snapshot.has_open_calls
        self.chat_pause = snapshot.chat_pause
        if snapshot.knows_last_message:
            self.chat_history.remember_last(snapshot.last_user_message)
        self.asked_by = snapshot.asked_by
        self.turn_id = snapshot.turn_id
        self.records = StepRecords(
            self.id, snapshot.turn_id or 0, snapshot.logs, snapshot.last_position, snapshot.stride
        )
        # An open step of another turn in view is what that one waits with.
        shown = [each for each in snapshot.steps if not each.is_open or each.turn_id == snapshot.turn_id]
        for stored in shown:
            self.records.note(stored)
        self.task = find_task(shown, snapshot.turn_id) if shown else None
        self.open_step = next((stored for stored in shown if stored.is_open), None) if shown else None
        closed = [stored.item for stored in shown if not stored.is_open]
        self.memory = AgentMemory(self.records.log.system_prompt, [*closed, *put_in])

    def unsaved_steps(self) -> list[MemoryItem]:
        """List the steps that callers added and that are not stored yet; the next run stores them.

        Raises:
            InvalidField: memory has something that is not an item.
        """
        return [item for item in self.memory.steps if item is not None and self._is_put_in(checked_item(item))]

    def put_in_task(self) -> TaskStep | None:
        """Return the newest task that a program put into memory and no run has begun with yet."""
        return _newest_task(self.unsaved_steps())

    def begin_turn(self, system_prompt: str, task: TaskStep | None, *, keeps_steps: bool) -> list[MemoryItem]:
        """Make room for the steps of a new turn; the earlier ones stay in view where it keeps them.

        Returns:
            What callers put in that the turn itself does not begin with.
        """
        put_in = self.unsaved_steps()
        self.records.begin_turn(system_prompt, keeps_steps=keeps_steps)
        self.memory = AgentMemory(system_prompt, self.memory.steps if keeps_steps else put_in)
        if task is not None:
            given = _newest_task(put_in)
            if given is None or given.task != task.task:
                self.memory.steps.append(task)
            else:  # a program has put the question in by itself, maybe with steps behind it
                given.task_images = given.task_images or task.task_images
                task = given
        self.task = task
        self.question_parts = ()
        self.open_step = None
        self.steps_taken = 0
        return [item for item in put_in if item is not task]

    def assign_turn(self, turn_id: int) -> None:
        """Set the id of the turn that has begun."""
        self.turn_id = turn_id
        self.records.assign_turn(turn_id)

    def changed_metadata(self) -> MetadataChanges | None:
        """Return what of metadata is not stored yet.

        Raises:
            InvalidField: a value cannot be represented as JSON.
        """
        try:
            return find_changes(self.metadata, self._saved_metadata)
        except InvalidField:  # it is said once, and stands in nobody's way then
            self.metadata = only_json(self.metadata)
            raise

    def confirm_metadata(self, changes: MetadataChanges) -> None:
        """Remember changes of metadata as stored."""
        self._saved_metadata = changes.texts

    def _is_put_in(self, item: MemoryItem) -> bool:
        """Whether an item is neither stored nor what a run left behind that could not store it."""
        is_left = item is self.task or isinstance(item, FailedStep) or self.records.is_own(item)
        return not is_left and self.records.row_id(item) is None


def _newest_task(items: Sequence[MemoryItem]) -> TaskStep | None:
    return next((item for item in reversed(items) if isinstance(item, TaskStep)), None)
