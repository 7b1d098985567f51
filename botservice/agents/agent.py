"""What an agent is to the rest of the service: something that says what to do next."""

import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from botservice.agents.checks import FinalAnswerCheck
from botservice.contexts.context import AgentContext
from botservice.history.shown import Source
from botservice.llm.chat import ChatMessage, ModelItem, SaidMessage
from botservice.messages import Attachment, TokenUsage, ToolCall
from botservice.tools import Tool, Toolset
from botservice.tools.tool import NeedsApproval

T = TypeVar("T")
SUB_AGENT_TIMEOUT_SECONDS = 600.0
_NOT_KEPT = "[what the person had open: not kept]"


class Prompt(list[ChatMessage]):
    """The chat-completions messages that a model is sent, and where they come from.

    Whoever overrides `build_prompt` may change the list: what is said of its messages follows them.

    Attributes:
        model: The name of the model that it is made for, where it has one.
        cache_key: The same for all prompts of one conversation, and it says nothing about it: servers look for what
            they have read before among prompts of the same key. None where nobody gave one.
        facts: How it was made, as JSON values without anybody's words: for whoever looks into it later.
    """

    model: str | None = None
    cache_key: str | None = None

    def __init__(self, messages: Iterable[ChatMessage] = ()) -> None:
        super().__init__(messages)
        self.facts: dict[str, Any] = {}
        self._built: list[ChatMessage] = list(self)
        self._sections: list[tuple[str, int]] = []
        self._sources: dict[int, Source] = {}
        self._origins: dict[int, ChatMessage] = {}
        self._passing: list[ChatMessage] = []

    def add_section(
        self,
        name: str,
        messages: Iterable[ChatMessage],
        *,
        sources: Iterable[Source] = (),
        is_copied: bool = False,
        is_kept: bool = True,
    ) -> None:
        """Put messages at the end.

        Args:
            name: system, notes, window, earlier (steps of prompts before this one), person, waiting, looking_at, found,
                question or steps.
            sources: What of the history they show.
            is_copied: Put in copies, and take note of what they are copies of: the same objects come again with the
                next prompt, and what somebody does to this one's must not reach them.
            is_kept: Whether the record of what was sent may hold them.
        """
        first = len(self)
        given = list(messages)
        if not given:
            return
        self.extend(map(_copied, given) if is_copied else given)
        self._built.extend(self[first:])
        self._sections.append((name, first))
        self._sources.update(enumerate(sources, first))
        if is_copied:
            self._origins.update(enumerate(given, first))
        if not is_kept:
            self._passing.extend(self[first:])

    def kept(self) -> list[ChatMessage]:
        """Return it as it may be recorded: what passes with the turn is named, and no more."""
        passing = {id(message) for message in self._passing}
        return [{**each, "content": _NOT_KEPT} if id(each) in passing else each for each in self]

    def sections(self) -> dict[str, tuple[int, int]]:
        """Return the place of each section's first message, and the one after its last."""
        places = self._places()
        found: dict[str, tuple[int, int]] = {}
        for (name, first), (_, end) in itertools.pairwise([*self._sections, ("", len(self._built))]):
            now = [place for place in (places or range(len(self._built)))[first:end] if place is not None]
            if now:
                found[name] = min(now), max(now) + 1
        return found

    @property
    def breakpoints(self) -> list[int]:
        """The places of the messages after which a server had better keep what it has read: at most three, in order.

        They are the end of the instructions, the last message of a person in the window, and where it is found again:
        the one that was the last in the prompt before this. That is the question, once there are steps.
        """
        sections = self.sections()
        instructions = sections.get("notes") or sections.get("system")
        window = range(*sections.get("window", (0, 0)))
        before, last = _last_of_people([str(self[place]["role"]) for place in window])
        found = [None if place is None else window[place] for place in (before, last)]
        question = sections.get("question")
        if question is not None and len(self) > question[1]:
            found = [found[1], question[1] - 1]
        return [place for place in (instructions and instructions[1] - 1, *found) if place is not None]

    def sources(self) -> dict[int, Source]:
        """Return what of the history stands in it, by its place."""
        return self._moved(self._sources)

    def origins(self) -> dict[int, ChatMessage]:
        """Return what its messages are copies of, by their place."""
        return self._moved(self._origins)

    def _places(self) -> list[int | None] | None:
        """Return where each message that it was built of stands now; None where nothing has moved."""
        if len(self) == len(self._built) and all(map(operator.is_, self, self._built)):
            return None
        by_identity = {id(message): place for place, message in enumerate(self)}
        return [by_identity.get(id(message)) for message in self._built]

    def _moved(self, by_place: dict[int, T]) -> dict[int, T]:
        places = self._places()
        if places is None:
            return by_place
        return {new: value for old, value in by_place.items() if (new := places[old]) is not None}


def _copied(message: ChatMessage) -> ChatMessage:
    return message.copy() if isinstance(message, SaidMessage) else dict(message)


def _last_of_people(roles: Sequence[str]) -> tuple[int | None, int | None]:
    """Return the place of a person's last message at the turn before and now, in a window of these roles.

    The turn before ended with the assistant's last message, which answered the person's last one before that; its
    window ended before that one.
    """
    people = [place for place, role in enumerate(roles) if role == "user"]
    answers = [place for place, role in enumerate(roles) if role == "assistant"]
    asked = [place for place in people if answers and place < answers[-1]]
    return asked[-2] if len(asked) > 1 else None, people[-1] if people else None


@dataclass(frozen=True, slots=True)
class Action:
    """The wish to run tools.

    Attributes:
        model_output: What the model said beside it.
        prompt: What it was said to.
        model: The model that answered; with it why its answer ended, and the items that it wants to read again.
    """

    tool_calls: Sequence[ToolCall]
    model_output: str | None = None
    prompt: Sequence[ChatMessage] = ()
    token_usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    model_items: Sequence[ModelItem] = ()


@dataclass(frozen=True, slots=True)
class FinishAction:
    """The wish to answer with output: a text, or a JSON value, whose text is what people read."""

    output: Any
    attachments: Sequence[Attachment] = ()
    prompt: Sequence[ChatMessage] = ()
    token_usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    model_items: Sequence[ModelItem] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What the agent means to do over its next steps."""

    text: str
    prompt: Sequence[ChatMessage] = ()
    token_usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    model_items: Sequence[ModelItem] = ()


class Agent(ABC):
    """Says what to do next, from what is stored and from nothing else; so a turn that was cut off can go on anywhere.

    One agent serves every context at once and keeps nothing of any.

    Attributes:
        tools: What it may run of its own, by name.
        toolsets: Where more tools come from.
        prompt: What stands at the top of its prompts.
        planning_interval: A plan comes before the first step and after every so many; None for no plans.
        final_answer_checks: What an answer has to pass before anybody sees it; see `FinalAnswerCheck`.
        announces_calls: Whether it awaits `context.before_call` before each call of a model; otherwise a budget has to
            guess how long its prompts are.
    """

    tools: Mapping[str, Tool] = {}
    toolsets: Sequence[Toolset] = ()
    prompt: str = ""
    planning_interval: int | None = None
    final_answer_checks: Sequence[FinalAnswerCheck] = ()
    announces_calls: bool = False

    def as_tool(
        self,
        name: str,
        description: str,
        *,
        max_steps: int = 10,
        is_final: bool = False,
        idempotent: bool = False,
        timeout_seconds: float = SUB_AGENT_TIMEOUT_SECONDS,
        max_calls: int | None = None,
        needs_approval: NeedsApproval = False,
    ) -> Tool:
        """Return a tool by which another agent has this one work on a task, which is all that this one is told.

        Args:
            description: What the other model is told of it.
            max_steps: How many steps of a task may run tools.
            idempotent: Whether a task that a kill cut off is worked on anew, from its beginning. Otherwise the other
                agent is told that the outcome is unknown.

        Raises:
            InvalidTool: the name cannot be sent to a model, or a number is out of range.
        """
        from botservice.agents.agent_tool import AgentTool

        return AgentTool(
            self,
            name=name,
            description=description,
            max_steps=max_steps,
            is_final=is_final,
            idempotent=idempotent,
            timeout_seconds=timeout_seconds,
            max_calls=max_calls,
            needs_approval=needs_approval,
        )

    async def tools_now(self) -> Mapping[str, Tool]:
        """Return everything that may be called at this moment, by name; `tools` and what comes from elsewhere."""
        return self.tools

    async def tools_for(self, context: AgentContext) -> Mapping[str, Tool]:  # noqa: ARG002 - others need it
        """Return everything that may be called in a conversation at this moment, by name."""
        return await self.tools_now()

    async def close(self) -> None:
        """End what its toolsets started; a later turn starts it again."""
        for toolset in self.toolsets:
            await toolset.close()

    @abstractmethod
    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return what to do next. Changes nothing.

        Raises:
            LLMError: the model did not answer.
        """

    @abstractmethod
    async def finish(self, context: AgentContext) -> FinishAction:
        """Return an answer without any more tools, because the steps are used up. Changes nothing."""

    async def plan(self, context: AgentContext) -> Plan:
        """Return what to do over the next steps. Changes nothing."""
        raise NotImplementedError(f"{type(self).__name__} has a planning_interval and no plan()")
