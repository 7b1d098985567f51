"""The memory of an agent's own work: items in their order, and the steps of an agent as its model sees them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from botservice.conversation.chat_messages import step_messages
from botservice.conversation.field_codec import dumps, loads
from botservice.conversation.items import MemoryItem, checked_item, declared_fields, is_marked, revision_of
from botservice.conversation.readable_values import plain
from botservice.conversation.steps import ActionStep, FailedStep, FinalAnswerStep, SystemPromptStep, TaskStep
from botservice.core.errors import InvalidField

if TYPE_CHECKING:
    from rich.console import Console

_VERSION = 1

Count = Callable[[Sequence[dict[str, Any]]], int]
"""Returns how many tokens messages take."""


class Memory:
    """An ordered list of items.

    Append to `content`, insert into it and delete from it; the memory keeps the same list.
    None entries are ignored. Two memories are equal if their content is equal.
    """

    def __init__(self, content: Iterable[MemoryItem | Mapping[str, Any]] = ()) -> None:
        self._content: list[MemoryItem] = []
        self.load(content)

    @property
    def content(self) -> list[MemoryItem]:
        """The items. Assigning a list copies its items."""
        return self._content

    @content.setter
    def content(self, content: Iterable[MemoryItem | Mapping[str, Any]]) -> None:
        self.load(content)

    @property
    def length(self) -> int:
        """The number of items."""
        return sum(1 for _ in self._items())

    @property
    def list_content(self) -> list[dict[str, Any]]:
        """Convert the items into records; see `MemoryItem.to_dict`."""
        return [item.to_dict() for item in self._items()]

    def is_empty(self) -> bool:
        """Whether there is no item."""
        return next(self._items(), None) is None

    def get_latest_item(self) -> MemoryItem | None:
        """Get the last item, or None."""
        return next((item for item in reversed(self._content) if item is not None), None)

    def add_memory_item(self, memory_item: MemoryItem) -> None:
        """Append an item.

        Raises:
            InvalidField: it is not a MemoryItem.
        """
        self._content.append(checked_item(memory_item))

    def load(self, content: Iterable[MemoryItem | Mapping[str, Any]]) -> None:
        """Replace all items by those of content; the list itself is copied.

        Args:
            content: Items, or their records from `to_dict`.

        Raises:
            InvalidField: content has something else; nothing is changed.
        """
        if isinstance(content, str | bytes | Mapping) or not isinstance(content, Iterable):
            raise InvalidField(f"a memory loads a list of items, not a {type(content).__name__}")
        self._content[:] = [MemoryItem.from_dict(i) if isinstance(i, Mapping) else checked_item(i) for i in content]

    def clear(self) -> None:
        """Remove every item."""
        self._content.clear()

    def delete_memory_item(self, step: int) -> None:
        """Remove the items with this step number, if there are any."""
        self._content[:] = [item for item in self._items() if not _has_step(item, [step])]

    def filter_memory_from_steps(self, steps: Iterable[int]) -> list[dict[str, Any]]:
        """List the records of the items with one of these step numbers."""
        wanted = list(steps)
        return [item.to_dict() for item in self._items() if _has_step(item, wanted)]

    def filter_memory_from_keys(self, keys: Iterable[str]) -> list[dict[str, Any]]:
        """Reduce each item to these keys; see `MemoryItem.filter`."""
        wanted = keys if isinstance(keys, str) else list(keys)
        return [item.filter(wanted) for item in self._items()]

    def to_json(self) -> str:
        """Serialise the items as a JSON list; `from_json` is the inverse."""
        return dumps(self.list_content)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Restore a memory from `to_json`.

        Raises:
            InvalidField: text was not written by `to_json`.
        """
        new = cls()
        new.load(loads(text))
        return new

    def _items(self) -> Iterator[MemoryItem]:
        return (checked_item(item) for item in self._content if item is not None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory) or type(other) is not type(self):
            return NotImplemented
        return list(self._items()) == list(other._items())

    __hash__ = None  # type: ignore[assignment]  # as for every class whose equal instances may change

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._content)} items)"


@dataclass(slots=True)
class RenderedStep:
    """The chat-completions messages of one step.

    Attributes:
        sizes: Their tokens, by the name of the encoding.
    """

    step: MemoryItem
    revision: int
    messages: list[dict[str, Any]]
    sizes: dict[str, int] = field(default_factory=dict)

    def size(self, encoding: str, count: Count) -> int:
        """Return the tokens of the messages; they are counted once for each encoding."""
        size = self.sizes.get(encoding)
        if size is None:
            size = self.sizes[encoding] = count(self.messages)
        return size


class AgentMemory(Memory):
    """The system prompt and the steps of an agent.

    `steps` and `content` are one list: append, insert and delete there. Assigning another list copies it in.
    """

    _system_prompt: str | SystemPromptStep

    def __init__(
        self, system_prompt: str | SystemPromptStep = "", steps: Iterable[MemoryItem | Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(steps)
        self.system_prompt = system_prompt
        self._rendered: dict[tuple[str, ...], dict[int, RenderedStep]] = {}

    @property
    def system_prompt(self) -> SystemPromptStep:
        """The system prompt; you may assign a string."""
        if isinstance(self._system_prompt, str):  # hardly anybody asks
            self._system_prompt = SystemPromptStep(self._system_prompt)
        return self._system_prompt

    @system_prompt.setter
    def system_prompt(self, value: str | SystemPromptStep) -> None:
        is_kept = type(value) is str or isinstance(value, SystemPromptStep)
        self._system_prompt = value if is_kept else SystemPromptStep(value)

    @property
    def steps(self) -> list[MemoryItem]:
        """The steps, oldest first: the same list as `content`."""
        return self._content

    @steps.setter
    def steps(self, steps: Iterable[MemoryItem | Mapping[str, Any]]) -> None:
        self.load(steps)

    def reset(self) -> None:
        """Remove every step and keep the system prompt."""
        self.clear()

    def get_full_steps(self) -> list[dict[str, Any]]:
        """Convert the steps into plain dictionaries, with None for declared fields that are unset.

        `timing` has `start_time` and `end_time` in seconds since 1970 and `duration` in seconds, `token_usage` has
        `input_tokens`, `output_tokens` and `total_tokens`. Use `to_json` for data that can be loaded again.
        """
        return [_in_full(item) for item in self._items()]

    def get_succinct_steps(self) -> list[dict[str, Any]]:
        """Convert the steps like `get_full_steps`, without the model's input."""
        full = self.get_full_steps()
        return [{key: value for key, value in step.items() if key != "model_input_messages"} for step in full]

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[dict[str, Any]]:  # noqa: FBT001, FBT002 - contract
        """Convert the memory into chat-completions messages, the system prompt first.

        Args:
            summary_mode: Leave out the system prompt, plans and the text that the model wrote along with calls.
        """
        steps = [self.system_prompt, *self._items()]
        return [message for step in steps for message in step_messages(step, summary_mode=summary_mode)]

    def newest_rendered(self, start: int, end: int, memory_keys: tuple[str, ...] = ()) -> Iterator[RenderedStep]:
        """Yield the messages of steps[start:end] that the model sees, newest first.

        Unchanged steps yield the same objects again.
        """
        known = self._rendered.setdefault(memory_keys, {})
        for place in range(end - 1, start - 1, -1):
            step: MemoryItem | None = self._content[place]
            if step is None:
                continue
            rendered = known.get(id(step))
            if rendered is None or rendered.step is not step or rendered.revision != revision_of(step):
                messages = step_messages(step, memory_keys=memory_keys)
                rendered = known[id(step)] = RenderedStep(step, revision_of(step), messages)
            if rendered.messages:
                yield rendered

    def replay(self, detailed: bool = False, *, console: "Console | None" = None) -> None:  # noqa: FBT001, FBT002 - contract
        """Print the steps for a person.

        Args:
            detailed: Show everything in full, including the model's input.
            console: The console to print to; by default standard output.
        """
        from botservice.conversation.replay import replay

        replay(self, detailed=detailed, console=console)

    def to_json(self) -> str:
        """Serialise the system prompt and the steps as a JSON object; `from_json` is the inverse."""
        system_prompt = self.system_prompt.to_dict()
        return dumps({"version": _VERSION, "system_prompt": system_prompt, "steps": self.list_content})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Restore a memory from `to_json`.

        Raises:
            InvalidField: text was not written by `to_json`, or by a newer version.
        """
        data = loads(text)
        if not isinstance(data, dict) or not {"version", "system_prompt", "steps"} <= data.keys():
            raise InvalidField("this is not the JSON of an AgentMemory; Memory.from_json reads a list of items")
        if data["version"] != _VERSION:
            raise InvalidField(f"an AgentMemory of version {data['version']!r} needs a newer version of botservice")
        return cls(SystemPromptStep.from_dict(data["system_prompt"]), data["steps"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AgentMemory):
            return NotImplemented
        return self.system_prompt == other.system_prompt and super().__eq__(other)

    __hash__ = None


def completed_steps(memory: Memory, task: TaskStep | None = None) -> list[ActionStep]:
    """Return the action steps of the work on the current prompt, oldest first; see `start_of_work`."""
    return [
        item
        for item in memory.content[start_of_work(memory, task) :]
        if isinstance(item, ActionStep) and not isinstance(item, FailedStep)
    ]


def start_of_work(memory: Memory, task: TaskStep | None = None) -> int:
    """Return the place in a memory's content at which the work on the current prompt begins.

    Args:
        task: The current prompt's own step: the work comes after it. Where it was taken out, the work comes after the
            last answer. By default it is the last task.
    """
    content = memory.content
    for place in range(len(content), 0, -1):
        item = content[place - 1]
        if item is task or (task is None and isinstance(item, TaskStep)):
            return place
    answers = (place for place in range(len(content), 0, -1) if isinstance(content[place - 1], FinalAnswerStep))
    return next(answers, 0) if task is not None else 0


def _in_full(item: MemoryItem) -> dict[str, Any]:
    record = item.to_dict()
    marks = {name: record[name] for name in ("kind", "version")} if is_marked(record) else {}
    values = {**declared_fields(item), **{name: item.get_value(name) for name in item.attributes}}
    return {**marks, **{f"${name}" if name in marks else name: plain(each) for name, each in values.items()}}


def _has_step(item: MemoryItem, steps: list[int]) -> bool:
    step = item.get_value("step")
    return step is not None and step in steps
