"""How often a tool may be called for one prompt."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from botservice.agent.tool import Tool
from botservice.agent.tool_executor import ToolOutcome, refused
from botservice.conversation.steps import ActionStep
from botservice.core.messages import ToolCall


def find_too_many(
    tools: Mapping[str, Tool], calls: Sequence[ToolCall], done: Iterable[ActionStep]
) -> dict[int, ToolOutcome]:
    """Return the outcomes of the calls that exceed a limit, by their place among calls."""
    if all(tool.max_calls is None for tool in tools.values()):
        return {}
    counts = Counter(call.name for step in done for call in step.tool_calls or () if isinstance(call, ToolCall))
    outcomes = {}
    for index, call in enumerate(calls):
        counts[call.name] += 1
        limit = tools[call.name].max_calls if call.name in tools else None
        if limit is not None and counts[call.name] > limit:
            times = "once" if limit == 1 else f"{limit} times"
            outcomes[index] = refused(f"{call.name} may be called {times} for one prompt, and was; go on without it")
    return outcomes
