"""What an agent is to the rest of the service: something that says what to do next."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from botservice.contexts import AgentContext
from botservice.llm.chat import ChatMessage
from botservice.messages import Attachment, Message, TokenUsage, ToolCall
from botservice.tools import Tool


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One message of a prompt, and where it comes from.

    Attributes:
        section: system, found, window, earlier (steps of prompts before this one), question or steps.
        source: The message of the history that it shows.
        origin: What it is a copy of, where that is the same object in one prompt after the other.
    """

    message: ChatMessage
    section: str
    source: Message | None = None
    origin: ChatMessage | None = None


class Prompt(list[ChatMessage]):
    """The chat-completions messages that a model is sent. Whoever overrides `build_prompt` may change the list.

    Attributes:
        parts: What was in it when it was built.
    """

    def __init__(self, parts: Iterable[PromptPart] = (), *, tail: Iterable[ChatMessage] = ()) -> None:
        self.parts = tuple(parts)
        super().__init__([*(part.message for part in self.parts), *tail])

    def known_parts(self) -> list[PromptPart | None]:
        """Return one for each message that is in it now; None for those that were added later."""
        by_identity = {id(part.message): part for part in self.parts}
        return [by_identity.get(id(message)) for message in self]

    def sections(self) -> dict[str, tuple[int, int]]:
        """Return the place of each section's first message, and the one after its last."""
        found: dict[str, tuple[int, int]] = {}
        for place, part in enumerate(self.known_parts()):
            if part is not None:
                first, _ = found.get(part.section, (place, place))
                found[part.section] = first, place + 1
        return found


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
