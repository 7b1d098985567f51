"""An agent as a tool of another one."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from botservice.agent.agent import Agent, adopted_agent
from botservice.agent.tool import Tool
from botservice.conversation.context import AgentContext
from botservice.core.errors import BotServiceError, InvalidTool


async def _work_on(task: str, context: AgentContext) -> None:
    """Take a task.

    Args:
        task: What to do, with everything that has to be known for it: nothing else of this conversation is seen.
    """


class AgentTool(Tool):
    """A tool whose calls are worked on by an agent with steps and a memory of its own.

    Attributes:
        agent: Works on the tasks.
        max_steps: How many steps of a task may run tools.
    """

    def __init__(self, agent: Agent, *, max_steps: int = 10, **options: Any) -> None:
        """Wrap agent; the options are those of `Tool`.

        Raises:
            InvalidTool: max_steps is negative, or an option is not as `Tool` takes it.
        """
        super().__init__(_work_on, **options)
        if max_steps < 0:
            raise InvalidTool(f"max_steps of {self.name} must be 0 or more, not {max_steps}")
        self.agent = agent = adopted_agent(agent)
        self.max_steps = max_steps
        # What a toolset offers is not known before a turn.
        reads = any(each.reads_untrusted for each in agent.tools.values())
        self.reads_untrusted = self.reads_untrusted or reads or bool(agent.toolsets)

    def bind(self, arguments: Mapping[str, Any], context: AgentContext) -> Callable[[], Awaitable[Any] | Any]:
        """Return the work on a task.

        Raises:
            ArgumentsError: the arguments are not a task.
            BotServiceError: no turn runs, or agents ask agents too deep.
        """
        task = self._signature.bind(arguments, context)["task"]
        if context.delegate is None:
            raise BotServiceError(f"{self.name} works within a turn: an AgentService has to run it")
        work: Callable[[], Awaitable[Any]] = context.delegate(self, task)
        return work


def agents_among(tools: Iterable[Tool]) -> Iterator[Agent]:
    """Yield the agents that are tools."""
    return (tool.agent for tool in tools if isinstance(tool, AgentTool))
