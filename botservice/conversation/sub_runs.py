"""What an agent did for another one: its own steps, kept with the step that called it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from botservice.conversation.agent_memory import AgentMemory
from botservice.conversation.field_codec import decode, encode
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import listed
from botservice.conversation.steps import SystemPromptStep
from botservice.core.messages import TokenUsage


@dataclass(frozen=True, slots=True)
class SubRun:
    """The work of an agent that another one called as a tool.

    Attributes:
        call_id: The `id` of its `ToolCall`.
        name: The tool's name.
        memory: Its own steps, from its task to its answer.
    """

    call_id: str
    name: str
    memory: AgentMemory


def write_sub_run(name: str, memory: AgentMemory) -> dict[str, Any]:
    """Return the work of an agent as values that a field of a step keeps."""
    steps = [_values(step) for step in memory.steps if step is not None]
    return {"name": name, "system_prompt": memory.system_prompt.system_prompt, "steps": steps}


def sub_runs(step: MemoryItem) -> list[SubRun]:
    """List the work of other agents for a step, in the order of its calls."""
    kept = [each for each in listed(step.get_value("sub_runs")) if isinstance(each, Mapping)]
    return [
        SubRun(
            each.get("call_id", ""),
            each.get("name", ""),
            AgentMemory(SystemPromptStep(each.get("system_prompt", "")), map(_item, each.get("steps", ()))),
        )
        for each in kept
    ]


def usage_of(steps: Iterable[MemoryItem]) -> TokenUsage | None:
    """Return the tokens of steps and of the agents that worked for them; None if none are known."""
    usages = list(_usages(steps))
    if not usages:
        return None
    counts = {each.name: [getattr(usage, each.name) for usage in usages] for each in fields(TokenUsage)}
    known = {name: [count for count in each if count is not None] for name, each in counts.items()}
    return TokenUsage(**{name: sum(each) for name, each in known.items() if each})


def _usages(steps: Iterable[MemoryItem]) -> Iterable[TokenUsage]:
    for step in steps:
        usage = None if step is None else step.get_value("token_usage")
        if isinstance(usage, TokenUsage):
            yield usage
        if step is not None and step.get_value("sub_runs"):
            for run in sub_runs(step):
                yield from _usages(run.memory.steps)


def _values(step: MemoryItem) -> dict[str, Any]:
    # Sealed items serve while a model works on its task; a record of the work has no use for them.
    return {key: decode(value) for key, value in step.to_dict().items() if key != "model_items"}


def _item(values: Mapping[str, Any]) -> MemoryItem:
    return MemoryItem.from_dict({key: encode(value) for key, value in values.items()})
