"""What an agent is to the rest of the service: something that says what to do next."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from botservice.contexts import AgentContext
from botservice.llm.chat import ChatMessage
from botservice.messages import Attachment, Message, TokenUsage, ToolCall
from botservice.tools import Tool


class Prompt(list[ChatMessage]):
    """The chat-completions messages that a model is sent, and where they come from.

    Attributes:
        found: Messages that stand in it because searching found them.
        window: Messages that stand in it because the selector took them, by their place in the list.
    """

    def __init__(
        self,
        messages: Iterable[ChatMessage] = (),
        *,
        found: Sequence[Message] = (),
        window: Mapping[int, Message] | None = None,
    ) -> None:
        super().__init__(messages)
        self.found = tuple(found)
        self.window = dict(window or {})


@dataclass(frozen=True, slots=True)
class Action:
    """The wish to run tools.

    Attributes:
        model_output: What the model said beside it.
        prompt: What it was said to.
    """

    tool_calls: Sequence[ToolCall]
    model_output: str | None = None
    prompt: Sequence[ChatMessage] = ()
    token_usage: TokenUsage | None = None


@dataclass(frozen=True, slots=True)
class FinishAction:
    """The wish to answer with output."""

    output: str
    attachments: Sequence[Attachment] = ()
    prompt: Sequence[ChatMessage] = ()
    token_usage: TokenUsage | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What the agent means to do over its next steps."""

    text: str
    prompt: Sequence[ChatMessage] = ()
    token_usage: TokenUsage | None = None


class Agent(ABC):
    """Says what to do next, from what is stored and from nothing else; so a turn that was cut off can go on anywhere.

    One agent serves every context at once and keeps nothing of any.

    Attributes:
        tools: What it may run, by name.
        prompt: What stands at the top of its prompts.
        planning_interval: A plan comes before the first step and after every so many; None for no plans.
    """

    tools: Mapping[str, Tool] = {}
    prompt: str = ""
    planning_interval: int | None = None

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
