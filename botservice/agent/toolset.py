"""Tools that come from somewhere and may change while the service runs."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

from botservice.agent.tool import Tool
from botservice.conversation.context import AgentContext


class Toolset(ABC):
    """A source of tools that may change while the service runs: a server, a folder, a database.

    `tools` is needed. An object that has it and does not inherit is taken as well.
    What is down costs its own tools: `tools` returns what there is and raises nothing.
    """

    @abstractmethod
    async def tools(self) -> Sequence[Tool]:
        """Return the tools that there are now, always in the same order. Starts what it needs when first called."""

    async def tools_for(self, context: AgentContext) -> Sequence[Tool]:  # noqa: ARG002 - others need it
        """Return what takes the place of `tools` in one conversation, for the person who asks there."""
        return await self.tools()

    async def close(self) -> None:
        """End what it started. A later call of `tools` starts it again."""

    def explain_missing(self, name: str) -> str | None:  # noqa: ARG002 - others need it
        """Return why a tool of it cannot be called at this moment, or None."""
        return None

    @property
    def names(self) -> Sequence[str]:
        """What its tools come from, as people know it, such as the names of servers."""
        return ()

    async def wait(self, seconds: float) -> None:
        """Return once everything has been tried that `tools` starts, or after so long."""

    def problems(self) -> Mapping[str, str | None]:
        """Return what keeps each of `names` from answering, None where it answers."""
        return {}


class Tools(dict[str, Tool]):
    """Tools by name, which say why one is missing."""

    def __init__(self, tools: Iterable[Tool], toolsets: Sequence[Toolset]) -> None:
        super().__init__((tool.name, tool) for tool in tools)
        self._toolsets = toolsets

    def explain_missing(self, name: str) -> str | None:
        """Return why there is no tool of that name, where a toolset knows."""
        return next((reason for each in self._toolsets if (reason := each.explain_missing(name))), None)


def in_turn(groups: Iterable[Sequence[Tool]]) -> Iterator[Tool]:
    """Yield the tools of several groups in turn, so that none crowds others out."""
    for each in itertools.zip_longest(*groups):
        yield from (tool for tool in each if tool is not None)
