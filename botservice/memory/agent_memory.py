"""The memory of an agent's own work."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from botservice.errors import InvalidField
from botservice.memory.chat_messages import step_messages
from botservice.memory.container import Memory
from botservice.memory.fields.codec import dumps, encode, encode_in_full, loads
from botservice.memory.items import MemoryItem, declared_fields
from botservice.memory.steps import ActionStep, FailedStep, FinalAnswerStep, SystemPromptStep, TaskStep

if TYPE_CHECKING:
    from rich.console import Console

_VERSION = 1
_COUNTED = ("timing", "token_usage")


class AgentMemory(Memory):
    """The system prompt and the steps of an agent.

    `steps` and `content` are one list: append, insert and delete there. Assigning another list copies it in.
    """

    def __init__(
        self, system_prompt: str | SystemPromptStep = "", steps: Iterable[MemoryItem | Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(steps)
        self.system_prompt = system_prompt

    @property
    def system_prompt(self) -> SystemPromptStep:
        """What the agent was told to be; a string may be assigned too."""
        return self._system_prompt

    @system_prompt.setter
    def system_prompt(self, value: str | SystemPromptStep) -> None:
        self._system_prompt = value if isinstance(value, SystemPromptStep) else SystemPromptStep(value)

    @property
    def steps(self) -> list[MemoryItem]:
        """The steps, oldest first; the same list as `content`."""
        return self._content

    @steps.setter
    def steps(self, steps: Iterable[MemoryItem | Mapping[str, Any]]) -> None:
        self.load(steps)

    def reset(self) -> None:
        """Remove every step and keep the system prompt."""
        self.clear()

    def get_full_steps(self) -> list[dict[str, Any]]:
        """Return the records of the steps; declared fields that are unset are there as None.

        A timing has its `duration_seconds`, and a token usage its `total_tokens`.
        """
        return [_in_full(item) for item in self._items()]

    def get_succinct_steps(self) -> list[dict[str, Any]]:
        """Return what `get_full_steps` does, without the model's input."""
        full = self.get_full_steps()
        return [{key: value for key, value in step.items() if key != "model_input_messages"} for step in full]

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[dict[str, Any]]:  # noqa: FBT001, FBT002 - contract
        """Return the memory as chat-completions messages, the system prompt first.

        Args:
            summary_mode: Leave out the system prompt, plans and what the model said beside its calls.
        """
        steps = [self.system_prompt, *self._items()]
        return [message for step in steps for message in step_messages(step, summary_mode=summary_mode)]

    def replay(self, detailed: bool = False, *, console: "Console | None" = None) -> None:  # noqa: FBT001, FBT002 - contract
        """Print the steps for a person.

        Args:
            detailed: Show everything uncut, and what the model was given.
            console: Where to; standard output by default.
        """
        from botservice.memory.replay import replay

        replay(self, detailed=detailed, console=console)

    def to_json(self) -> str:
        """Return the system prompt and the steps as a JSON object; `from_json` is the inverse."""
        system_prompt = self.system_prompt.to_dict()
        return dumps({"version": _VERSION, "system_prompt": system_prompt, "steps": self.list_content})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the memory that `to_json` was asked for.

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
    told = {key: encode_in_full(value) for key in _COUNTED if (value := item.get_value(key)) is not None}
    return {**item.to_dict(), **_unset(item), **told}


def _unset(item: MemoryItem) -> dict[str, Any]:
    is_set = set(item.attributes)
    return {name: encode(default) for name, default in declared_fields(item).items() if name not in is_set}
