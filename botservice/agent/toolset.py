"""Tools that come from somewhere and may change while the service runs."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from botservice.agent.tool import Tool


@runtime_checkable
class Toolset(Protocol):
    """A source of tools that may change while the service runs: a server, a folder, a database.

    What is down costs its own tools: `tools` returns what there is and raises nothing. A toolset may have two more
    methods: `explain_missing(name)` returns why a tool of it cannot be called at this moment, or None, and the async
    `tools_for(context)` what takes the place of `tools` in one conversation, for the person who asks there.
    """

    async def tools(self) -> Sequence[Tool]:
        """Return the tools that there are now, always in the same order. Starts what it needs when first called."""

    async def close(self) -> None:
        """End what it started. A later call of `tools` starts it again."""


class Tools(dict[str, Tool]):
    """Tools by name, which say why one is missing."""

    def __init__(self, tools: Iterable[Tool], toolsets: Sequence[Toolset]) -> None:
        super().__init__((tool.name, tool) for tool in tools)
        self._toolsets = toolsets

    def explain_missing(self, name: str) -> str | None:
        """Return why there is no tool of that name, where a toolset knows."""
        explain = (getattr(each, "explain_missing", None) for each in self._toolsets)
        return next((reason for each in explain if each is not None and (reason := each(name))), None)


def in_turn(groups: Iterable[Sequence[Tool]]) -> Iterator[Tool]:
    """Yield the tools of several groups in turn, so that none crowds others out."""
    for each in itertools.zip_longest(*groups):
        yield from (tool for tool in each if tool is not None)
