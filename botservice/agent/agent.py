"""What an agent is to the rest of the service: something that says what to do next."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from botservice.agent.final_answer_checks import FinalAnswerCheck
from botservice.agent.prompt import Prompt
from botservice.agent.tool import NeedsApproval, Tool
from botservice.agent.toolbox import Toolset
from botservice.conversation.callbacks import StepCallbacks
from botservice.conversation.context import AgentContext
from botservice.core.argument_checks import adopt
from botservice.core.errors import BotServiceError, InvalidTool
from botservice.core.messages import Attachment, Button, TokenUsage, ToolCall
from botservice.history.window import MessageSelector
from botservice.llm.chat import ChatLLM, ChatMessage, ModelItem

DEFAULT_MAX_STEPS: Final = 10
SUB_AGENT_TIMEOUT_SECONDS = 600.0
_GIVE_MODEL: Final = "give a model, such as OpenAIChatLLM() or ScriptedChatLLM([...])"


@dataclass(frozen=True, slots=True)
class Action:
    """A request to run tools.

    Attributes:
        model_output: The text that the model wrote along with the calls.
        prompt: The prompt that it answers.
        model: The model that answered, with the reason why its answer ended and the items that it needs again.
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
    """An answer: output is a text, or a JSON value whose text people read.

    Attributes:
        buttons: What the person may press under it, after what tools offer.
        not_seen: The names of pictures of the question that the model could not be shown, empty for those without a
            name. The person is told.
        is_without_earlier: Whether an earlier message is left out from now on because the model refuses it. The person
            is told.
    """

    output: Any
    attachments: Sequence[Attachment] = ()
    buttons: Sequence[Button] = ()
    prompt: Sequence[ChatMessage] = ()
    token_usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    model_items: Sequence[ModelItem] = ()
    not_seen: Sequence[str] = ()
    is_without_earlier: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The agent's plan for its next steps."""

    text: str
    prompt: Sequence[ChatMessage] = ()
    token_usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    model_items: Sequence[ModelItem] = ()


ModelReply: TypeAlias = Action | FinishAction | Plan
"""What an agent took from an answer of its model."""


def rests_on_others(said: Action | FinishAction) -> bool:
    """Return whether what a model said may rest on words of others that no message of this turn holds.

    Its server has searched the web for it, or what was found for its prompt holds some.
    """
    if isinstance(said.prompt, Prompt) and said.prompt.holds_others:
        return True
    is_counted = said.token_usage is not None and bool(said.token_usage.web_searches)
    return is_counted or any(item.get("type") == "web_search_call" for item in said.model_items)


class Agent(ABC):
    """Decides on the next action from stored data alone, so that any process can continue an interrupted turn.

    One agent serves all contexts at once and keeps no state of any.

    Attributes:
        name: Its name as a tool of another agent; `description` then describes it to the other model.
        tools: Its own tools, by name.
        toolsets: The sources of more tools.
        prompt: The system prompt.
        planning_interval: A plan comes before the first step and after every so many; None for no plans.
        final_answer_checks: The checks that an answer has to pass before it is shown; see `FinalAnswerCheck`.
        max_steps: How many steps of a prompt may run tools, unless the service says so.
        step_callbacks: Called after a step is stored, before those of the service.
        message_selector: Selects the messages of the chat for its prompts, if it uses one.
        notes_tokens: How many tokens of notes its prompts contain; None for the value of the settings.
        announces_calls: Whether it awaits `context.before_call` before each model call; otherwise budgets estimate the
            length of its prompts.
    """

    name: str | None = None
    description: str | None = None
    tools: Mapping[str, Tool] = {}
    toolsets: Sequence[Toolset] = ()
    prompt: str = ""
    planning_interval: int | None = None
    final_answer_checks: Sequence[FinalAnswerCheck] = ()
    max_steps: int | None = None
    step_callbacks: StepCallbacks = StepCallbacks()
    message_selector: MessageSelector | None = None
    notes_tokens: int | None = None
    announces_calls: bool = False
    _llm: ChatLLM | None = None

    @property
    def llm(self) -> ChatLLM | None:
        """The model; an assigned object need not inherit from `ChatLLM`."""
        return self._llm

    @llm.setter
    def llm(self, given: ChatLLM | None) -> None:
        self._llm = None if given is None else adopt(ChatLLM, given, "llm=", remedy=_GIVE_MODEL)

    def as_tool(  # noqa: PLR0913 - what one may say of a tool
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        max_steps: int | None = None,
        is_final: bool = False,
        idempotent: bool = False,
        timeout_seconds: float = SUB_AGENT_TIMEOUT_SECONDS,
        max_calls: int | None = None,
        needs_approval: NeedsApproval = False,
        roles: Iterable[str] | None = None,
    ) -> Tool:
        """Build a tool with which another agent delegates a task to this one. This agent sees only the task.

        Args:
            name: By default the agent's own.
            description: The description for the other model; by default the agent's own.
            max_steps: How many steps of a task may run tools; by default as the agent says, or else 10.
            idempotent: Whether an interrupted task starts again from its beginning. Otherwise the other agent is told
                that the outcome is unknown.

        Raises:
            InvalidTool: there is no name or description, the name cannot be sent to a model, or a number is out of
                range.
        """
        name, description = name or self.name, description or self.description
        if not name or not description:
            raise InvalidTool("an agent as a tool needs a name and a description: agent.as_tool(name, description)")
        steps = self.max_steps if max_steps is None else max_steps
        return AgentTool(
            self,
            name=name,
            description=description,
            max_steps=DEFAULT_MAX_STEPS if steps is None else steps,
            is_final=is_final,
            idempotent=idempotent,
            timeout_seconds=timeout_seconds,
            max_calls=max_calls,
            needs_approval=needs_approval,
            roles=roles,
        )

    async def tools_now(self) -> Mapping[str, Tool]:
        """Collect all tools that can be called now, by name: `tools` and those of toolsets."""
        return self.tools

    async def tools_for(self, context: AgentContext) -> Mapping[str, Tool]:
        """Collect all tools that can be called in a conversation now, by name."""
        tools, named = await self.tools_now(), context.only_tools
        return tools if named is None else {name: tool for name, tool in tools.items() if name in named}

    async def close(self) -> None:
        """Stop what its toolsets started; a later turn starts them again."""
        for toolset in self.toolsets:
            await toolset.close()

    @abstractmethod
    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Decide on the next action. Changes nothing.

        Raises:
            LLMError: the model did not answer.
        """

    @abstractmethod
    async def finish(self, context: AgentContext) -> FinishAction:
        """Answer without further tools, because the steps are used up. Changes nothing."""

    async def plan(self, context: AgentContext) -> Plan:
        """Plan the next steps. Changes nothing."""
        raise NotImplementedError(f"{type(self).__name__} has a planning_interval and no plan()")


def adopted_agent(given: Agent) -> Agent:
    """Return an agent whose model and sources of tools have what their base classes promise.

    Raises:
        InvalidArgument: it, or one of those, cannot do what it is asked for.
    """
    agent = adopt(Agent, given, "agent", remedy="give an agent: FunctionsBasedAgent(llm=…)")
    if agent.llm is not None and not isinstance(agent.llm, ChatLLM):  # an attribute of the class
        agent.llm = adopt(ChatLLM, agent.llm, "llm of the agent", remedy=_GIVE_MODEL)
    if not all(isinstance(each, Toolset) for each in agent.toolsets):
        agent.toolsets = tuple(adopt(Toolset, each, "one of toolsets=") for each in agent.toolsets)
    return agent


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
