"""The tools that a model may call: the agent's own and those of its toolsets, and which of them are offered."""

import asyncio
import itertools
import logging
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from botservice.agent.tool import Tool
from botservice.agent.tool_rights import find_allowed, note_withheld
from botservice.conversation.context import AgentContext
from botservice.conversation.steps import ActionStep
from botservice.core.argument_checks import adopt, check_listed
from botservice.core.messages import ToolCall
from botservice.people.names import is_guest
from botservice.search.grammar import FUNCTION_WORDS
from botservice.search.tokens import tokenize


class Toolset(ABC):
    """A source of tools that may change while the service runs: a server, a folder, a database.

    Only `tools` is required, and an object with it need not inherit. A source that is down loses its own tools:
    `tools` returns the available ones and raises nothing.
    """

    @abstractmethod
    async def tools(self) -> Sequence[Tool]:
        """List the available tools, always in the same order. Starts its connections at the first call."""

    async def tools_for(self, context: AgentContext) -> Sequence[Tool]:  # noqa: ARG002 - others need it
        """List the tools for one conversation and the person who asks; by default those of `tools`."""
        return await self.tools()

    async def close(self) -> None:
        """Stop everything that it started. A later call of `tools` starts it again."""

    def explain_missing(self, name: str) -> str | None:  # noqa: ARG002 - others need it
        """Explain why one of its tools cannot be called now; None if it can."""
        return None

    @property
    def names(self) -> Sequence[str]:
        """The names of its sources, such as servers."""
        return ()

    async def wait(self, seconds: float) -> None:
        """Wait until every connection of `tools` has been tried, or until the time limit."""

    def problems(self) -> Mapping[str, str | None]:
        """Map each of `names` to the reason why it does not work, or to None."""
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


MOST_FROM_TOOLSETS: Final = 40
"""How many tools of toolsets are offered as they are; beyond that, `find_tool` finds the others."""
MOST_IN_A_REQUEST: Final = 128  # OpenAI API reference, tools
FIND_TOOL: Final = "find_tool"
_MOST_FOUND: Final = 8
_LISTED: Final = re.compile(r"^- ([a-zA-Z0-9_-]{1,64}): ", re.MULTILINE)
_LONGEST_LINE: Final = 200
_LISTED_HEADING: Final = "Found, best first. From now on you may call them by their names:"

_IN_NAME: Final = 3  # a word of the name counts like so many of the description
_ENOUGH: Final = 1.2  # BM25's k1: how soon a word that comes again says nothing new

logger = logging.getLogger(__name__)


class Toolbox:
    """The tools of one agent's toolsets next to its own."""

    def __init__(self, toolsets: Iterable[Toolset]) -> None:
        given = check_listed("toolsets=", toolsets, remedy="give a list: toolsets=[…]")
        remedy = "give objects such as MCPServers"
        self.toolsets = tuple(adopt(Toolset, each, "one of toolsets=", remedy=remedy) for each in given)
        self._said: dict[str, frozenset[str]] = {}
        self._failing: set[Toolset] = set()

    async def callable_tools(self, own: Mapping[str, Tool], context: AgentContext | None = None) -> Mapping[str, Tool]:
        """Collect all tools that can be called now, by name; the role of who asks is judged where a call runs.

        Args:
            context: Where; without it, only what may be called anywhere.
        """
        own = _fit_for(context, own)
        if not self.toolsets:
            return own
        foreign = await self._foreign(own, context)
        finder = [_finder(await _allowed(foreign, context))] if len(foreign) > MOST_FROM_TOOLSETS else []
        return Tools([*own.values(), *finder, *foreign], self.toolsets)

    async def offered_tools(
        self, own: Mapping[str, Tool], done: Iterable[ActionStep], context: AgentContext | None = None
    ) -> list[Tool]:
        """Return the tools that a model is told of.

        Args:
            done: The steps of this prompt: what was found or called in them is offered as well.
        """
        own = _fit_for(context, own)
        foreign = await self._foreign(own, context) if self.toolsets else []
        if context is not None:
            allowed = {each.name for each in await note_withheld([*own.values(), *foreign], context)}
            own = {name: each for name, each in own.items() if each.name in allowed}
            foreign = [each for each in foreign if each.name in allowed]
        offered = list(own.values())
        if len(foreign) <= MOST_FROM_TOOLSETS:
            offered += foreign
        else:
            known = {tool.name: tool for tool in foreign}
            wanted = [known[name] for name in _named_in(done) if name in known]
            offered += dict.fromkeys([_finder(foreign), *wanted, *foreign[:MOST_FROM_TOOLSETS]])
        self._say("tools.not_all_offered", (tool.name for tool in offered[MOST_IN_A_REQUEST:]))
        return offered[:MOST_IN_A_REQUEST]

    async def close(self) -> None:
        """Close the toolsets, side by side."""
        for result in await asyncio.gather(*(each.close() for each in self.toolsets), return_exceptions=True):
            if isinstance(result, Exception):
                logger.warning("toolset.close_failed", exc_info=result)

    async def _foreign(self, own: Mapping[str, Tool], context: AgentContext | None) -> list[Tool]:
        """Return the tools of toolsets that may be called in a conversation."""
        found = await asyncio.gather(*(self._tools_of(each, context) for each in self.toolsets))
        merged = self._merge(own, found)
        return list(_fit_for(context, {tool.name: tool for tool in merged}).values())

    async def _tools_of(self, toolset: Toolset, context: AgentContext | None) -> Sequence[Tool]:
        try:
            found = await (toolset.tools() if context is None else toolset.tools_for(context))
        except Exception as error:  # a border: a toolset is foreign code, and costs its own tools only
            if toolset not in self._failing:
                logger.warning("toolset.failed", exc_info=error, extra={"toolset": type(toolset).__name__})
            self._failing.add(toolset)
            return ()
        self._failing.discard(toolset)
        return found

    def _merge(self, own: Mapping[str, Tool], groups: Sequence[Sequence[Tool]]) -> list[Tool]:
        """Return the tools of toolsets in turn, each name once."""
        merged: dict[str, Tool] = {}
        for tool in in_turn(groups):
            if tool.name not in own and tool.name != FIND_TOOL:
                merged.setdefault(tool.name, tool)
        self._say("tools.name_taken", (tool.name for tool in in_turn(groups) if merged.get(tool.name) is not tool))
        return list(merged.values())

    def _say(self, event: str, names: Iterable[str]) -> None:
        """Log which tools are left out, once per change."""
        found = frozenset(names)
        if found != self._said.get(event, frozenset()):
            self._said[event] = found
            if found:
                logger.warning(event, extra={"tools": ", ".join(sorted(found))})


async def _allowed(tools: Sequence[Tool], context: AgentContext | None) -> Sequence[Tool]:
    if context is None:
        return tools
    return list((await find_allowed({each.name: each for each in tools}, context)).values())


def has_fewer_tools(context: AgentContext) -> bool:
    """Return whether not every tool may be called in a conversation now."""
    return context.only_tools is not None or is_guest(context.context_keys)


def _fit_for(context: AgentContext | None, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
    """Return the tools that may be called in a conversation now.

    Where the bot is a guest, none gets the conversation, with what is known of people there, or may have to ask: what
    comes of it is read by anybody, and nobody can be asked there.
    """
    if context is None or not has_fewer_tools(context):
        return tools
    named = context.only_tools
    fit = {name: each for name, each in tools.items() if named is None or name in named}
    if not is_guest(context.context_keys):
        return fit
    return {name: each for name, each in fit.items() if not each.takes_context and each.needs_approval is False}


def _finder(foreign: Sequence[Tool]) -> Tool:
    """Return the tool that finds tools among those of toolsets that may be called."""

    async def find(query: str) -> str:
        """Find tools that you have besides those that you see, by what they do.

        Args:
            query: A few words for what you want to do, in English, such as: create calendar event.
        """
        found = await asyncio.to_thread(find_tools, query, foreign, most=_MOST_FOUND)
        if not found:
            return f"No tool was found for {query!r}. Try other words."
        lines = (f"- {tool.name}: {' '.join(tool.description.split())[:_LONGEST_LINE]}" for tool in found)
        return "\n".join([_LISTED_HEADING, *lines])

    return Tool(find, name=FIND_TOOL, idempotent=True)


def _named_in(done: Iterable[ActionStep]) -> list[str]:
    """Return the names of tools that were found or called in steps, the newest first."""
    names: list[str] = []
    for step in done:
        names += [call.name for call in step.tool_calls or () if isinstance(call, ToolCall)]
        for call, result in zip(step.tool_calls or (), step.tool_results or (), strict=False):
            if isinstance(call, ToolCall) and call.name == FIND_TOOL and not result.is_error:
                names += reversed(_LISTED.findall(result.text))
    return list(dict.fromkeys(reversed(names)))


def find_tools(query: str, tools: Sequence[Tool], *, most: int) -> list[Tool]:
    """Return the tools whose words are those of query, the best first, or none if no word is."""
    texts = [_words(tool) for tool in tools]
    having = Counter(word for words in texts for word in words)
    wanted = {word: math.log1p(len(tools) / having[word]) for word in _stems(query) if word in having}
    scores = [sum(worth * words[word] / (words[word] + _ENOUGH) for word, worth in wanted.items()) for words in texts]
    best = sorted(range(len(tools)), key=lambda place: (-scores[place], place))[:most]
    return [tools[place] for place in best if scores[place] > 0]


def _words(tool: Tool) -> Counter[str]:
    words = Counter(_stems(tool.description))
    for word in _stems(tool.name.replace("_", " ")):
        words[word] += _IN_NAME
    return words


def _stems(text: str) -> list[str]:
    from botservice.search.languages import CODES, stem_all

    words = [word for word in tokenize(text) if word not in FUNCTION_WORDS["en"]]
    return stem_all(words, CODES.index("en"))
