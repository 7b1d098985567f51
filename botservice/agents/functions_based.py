"""The agent that lets a model choose among functions."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from botservice.agents.agent import Action, Agent, FinishAction, Plan
from botservice.agents.agent_tool import agents_among
from botservice.agents.checks import FinalAnswerCheck, checked_checks
from botservice.agents.isolation import Isolation, IsolationRecord, KeptOut, find_not_seen, may_be_one_message
from botservice.agents.prompt import Prompt, PromptBuilder, estimate_tokens
from botservice.agents.sources import with_sources
from botservice.checking.arguments import check, check_can, check_listed
from botservice.contexts.context import AgentContext
from botservice.errors import ContextOverflow, InvalidTool, LLMError
from botservice.history import MessageSelector, SteadyWindowMessageSelector
from botservice.history.notes import NOTES_TOKENS
from botservice.llm.asking import ask, offered_to
from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, FinishReason, ToolSchema
from botservice.memory import MemoryStep, ShowSteps, StepCallbacks
from botservice.messages import Message, is_blank
from botservice.people.names import is_guest
from botservice.texts import in_language
from botservice.tools import Tool, Toolset
from botservice.tools.skills import Skills
from botservice.tools.tool import ToolFunction
from botservice.tools.toolbox import FIND_TOOL, MOST_IN_A_REQUEST, Toolbox

logger = logging.getLogger(__name__)

DEFAULT_PROMPT = (
    "You are a helpful assistant in a chat. Answer briefly and to the point, in the language of the person who asks. "
    "Use what is remembered of this chat where it helps. If it does not answer and you have the tool recall, search "
    "with other words, or for each part of the question, before you say plainly that you do not know."
)
_UNNAMED = "You are a helpful assistant in a chat."
DEFAULT_WINDOW_TOKENS = 4000
DEFAULT_SEARCH_K = 24
DEFAULT_SEARCH_TOKENS = 1000
DEFAULT_MAX_PROMPT_TOKENS = 100_000
_SHRINKING = (0.5, 0.25, 0.125)
_PLAN_REQUEST = (
    "Before you go on: write down in a few lines what is known, what is still missing, and the steps that you will "
    "take. Do not take them yet."
)
_RESULTS_READ = "I have read the results."


def prompt_of(name: str) -> str:
    """Return the standard prompt of a bot that has a name."""
    return DEFAULT_PROMPT.replace(_UNNAMED, f"You are {name}, a helpful assistant in a chat.")


class FunctionsBasedAgent(Agent):
    """Builds a prompt from searched and windowed history and from the steps so far; the model calls or answers."""

    announces_calls = True

    def __init__(  # noqa: PLR0913 - each is a choice of the user's
        self,
        tools: Iterable[Tool | ToolFunction | Agent] = (),
        llm: ChatLLM | None = None,
        *,
        toolsets: Iterable[Toolset] = (),
        message_selector: MessageSelector | None = None,
        search_k: int | None = None,
        search_tokens: int | None = None,
        notes_tokens: int = NOTES_TOKENS,
        prompt: str = DEFAULT_PROMPT,
        planning_interval: int | None = None,
        memory_keys: Iterable[str] = (),
        max_prompt_tokens: int = DEFAULT_MAX_PROMPT_TOKENS,
        final_answer_checks: Iterable[FinalAnswerCheck] = (),
        skills: Skills | None = None,
        name: str | None = None,
        description: str | None = None,
        max_steps: int | None = None,
        step_callbacks: Iterable[Callable[..., Any]] | Mapping[type, Any] | None = None,
        verbosity_level: int = 0,
    ) -> None:
        """Make an agent; it holds no state and may serve any number of contexts at once.

        Args:
            tools: Functions, tools, and agents that have a name and a description.
            toolsets: Where more tools come from, such as `MCPServers.load("mcp.json")`. At most 40 of theirs are
                offered as they are; where there are more, the model finds the others with a tool `find_tool`.
            message_selector: Which messages of the chat stand in the prompt; by default 2000 to 4000 tokens of the
                newest, beginning at the same message for many turns.
            search_k: How many messages to look for in all that was said before, besides those that stand in the prompt
                anyway; 0 for none. By itself it is exact; by default the best that fit search_tokens, at most 24.
            search_tokens: How many tokens they may take together, 1000 by default.
            notes_tokens: How many tokens of notes of the chat, which an `Observer` makes, stand before the window.
            memory_keys: Flexible fields of the steps in view that the model sees.
            max_prompt_tokens: Older steps, then older messages, are left out of a prompt that would be longer.
            final_answer_checks: What an answer has to pass before anybody sees it. One that fails goes back to the
                model; answers are not shown while they are written.
            skills: Texts that the model reads when it needs them; their list stands below the agent's prompt.
            name: What it is called where it is a tool of another agent.
            description: What the other agent's model is told of it.
            max_steps: How many steps of a prompt may run tools, for a service that does not say so itself.
            step_callbacks: Called after a step is stored, before those of the service; see `AgentService`.
            verbosity_level: 1 prints each step on standard error as it happens, 2 also what the model was given; 0
                prints nothing.

        Raises:
            InvalidArgument: something is given that cannot do what it is asked for.
            InvalidField: a check cannot be called with an answer, or a callback with a step.
            InvalidTool: two tools have one name, or one has that of `find_tool`.
            ValueError: a number is out of range, or there is no model.
        """
        if llm is None:
            raise ValueError("a FunctionsBasedAgent needs llm=, such as OpenAIChatLLM() or ScriptedChatLLM([...])")
        _check_counts(search_k=search_k, search_tokens=search_tokens, notes_tokens=notes_tokens, max_steps=max_steps)
        if planning_interval is not None and planning_interval < 1:
            raise ValueError(f"planning_interval must be 1 or more, or None, not {planning_interval}")
        if verbosity_level not in (0, 1, 2):
            raise ValueError(f"verbosity_level must be 0, 1 or 2, not {verbosity_level!r}")
        self.llm = llm
        self.name, self.description, self.max_steps = name, description, max_steps
        printing = {MemoryStep: ShowSteps(detailed=verbosity_level > 1)} if verbosity_level else None
        self.step_callbacks = StepCallbacks(printing).followed_by(StepCallbacks(step_callbacks))
        self.prompt = prompt or ""
        self.message_selector = message_selector or SteadyWindowMessageSelector(DEFAULT_WINDOW_TOKENS)
        self.search_k = DEFAULT_SEARCH_K if search_k is None else search_k
        self.search_tokens = DEFAULT_SEARCH_TOKENS if search_k is None and search_tokens is None else search_tokens
        self.notes_tokens = notes_tokens
        self.planning_interval = planning_interval
        self.memory_keys = tuple(memory_keys)
        self.max_prompt_tokens = max_prompt_tokens
        self.final_answer_checks = checked_checks(final_answer_checks)
        self.skills = skills or Skills()
        own_tools = check_listed("tools=", tools, remedy="give a list: tools=[…]")
        self.toolsets = check_listed("toolsets=", toolsets, remedy="give a list: toolsets=[…]")
        self._check_parts()
        self._isolated = IsolationRecord()
        self.tools = _by_name([*own_tools, *self.skills.tools])
        self._toolbox = Toolbox(self.toolsets)
        if self.toolsets and FIND_TOOL in self.tools:
            raise InvalidTool(f"{FIND_TOOL} finds tools of toolsets: give yours another name=")

    def _check_parts(self) -> None:
        """Return if every part can do what it is asked for."""
        check_can("llm=", self.llm, "chat", remedy="give a model, such as OpenAIChatLLM() or ScriptedChatLLM([...])")
        check("prompt=", self.prompt, is_right=isinstance(self.prompt, str), remedy="give a text")
        check_can("message_selector=", self.message_selector, "get_messages", remedy="give an object: NoMessages()")
        check_can("skills=", self.skills, "tools", "prompt", remedy='load them: Skills.load("folder")')
        for each in self.toolsets:
            check_can("one of toolsets=", each, "tools", "close", remedy="give objects such as MCPServers")

    async def tools_now(self) -> Mapping[str, Tool]:
        """Return everything that may be called at this moment, by name."""
        return await self._toolbox.callable_tools(self.tools)

    async def tools_for(self, context: AgentContext) -> Mapping[str, Tool]:
        """Return everything that may be called in a conversation at this moment, by name."""
        if type(self).tools_now is not FunctionsBasedAgent.tools_now:
            return await self.tools_now()
        return await self._toolbox.callable_tools(self.tools, context)

    async def offered_tools(self, context: AgentContext) -> Sequence[Tool]:
        """Return the tools that the model is told of with the next call."""
        if not self.toolsets and len(self.tools) <= MOST_IN_A_REQUEST and not is_guest(context.context_keys):
            return list(self.tools.values())  # nothing to choose among, as in most chats
        return await self._toolbox.offered_tools(self.tools, context.completed_steps, context)

    async def close(self) -> None:
        """End what its toolsets, and those of agents among its tools, have started; a later turn starts it again."""
        await self._toolbox.close()
        for agent in agents_among(self.tools.values()):
            await agent.close()

    async def build_prompt(self, context: AgentContext) -> Prompt:
        """Build the chat-completions messages of the next call. Nothing that is stored changes."""
        if not context.memory.system_prompt.system_prompt:  # before the first run
            context.memory.system_prompt = context.system_prompt_for(self.prompt, self.skills.prompt)
        return await self._builder(self.max_prompt_tokens, self._kept_out_of(context)).build(context)

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return the calls that the model wants, or its answer. Changes nothing."""
        offered = await self.offered_tools(context)
        prompt, response = await self._ask(context, [tool.schema for tool in offered])
        if response.tool_calls:
            return Action(response.tool_calls, response.text or None, prompt, **_facts(response))
        return self._finish(context, prompt, response, response.text)

    async def finish(self, context: AgentContext) -> FinishAction:
        """Return what the model answers without tools."""
        prompt, response = await self._ask(context, [])
        said = response.text
        if response.tool_calls and is_blank(said):
            said = in_language("answer.steps_used_up", context.language)
        return self._finish(context, prompt, response, said)

    async def plan(self, context: AgentContext) -> Plan:
        """Return what the model means to do over the next steps."""
        prompt, response = await self._ask(context, [], [{"role": "user", "content": _PLAN_REQUEST}], is_streamed=False)
        return Plan(response.text, prompt, **_facts(response))

    async def _ask(
        self,
        context: AgentContext,
        tools: Sequence[ToolSchema],
        tail: Sequence[ChatMessage] = (),
        *,
        is_streamed: bool = True,
    ) -> tuple[Prompt, ChatResponse]:
        """Return the prompt that the model took and what it said.

        A prompt that is too long is shortened; of one that is refused, the part is looked for that the model refuses.
        """
        tools = offered_to(self.llm, tools)
        prompt = _with_tail(await self.build_prompt(context), tail)
        options: dict[str, Any] = {}
        if is_streamed and context.on_text is not None:
            options["on_text"] = context.on_text
        if context.on_thought is not None and getattr(self.llm, "shows_thoughts", False):
            options["on_thought"] = context.on_thought
        fractions, size, isolation = iter(_SHRINKING), 0, None
        while True:
            if context.before_call is not None:
                await context.before_call(prompt, tools)
            try:
                response = await self._chat(prompt, tools, options)
            except LLMError as error:
                if type(self).build_prompt is not FunctionsBasedAgent.build_prompt:
                    raise
                fraction = next(fractions, None) if isinstance(error, ContextOverflow) and not isolation else None
                if fraction is not None:
                    size = size or estimate_tokens(prompt)
                    shorter = await self._builder(int(size * fraction), self._kept_out_of(context)).build(context)
                    prompt = _with_tail(shorter, tail)
                    continue
                isolation = self._isolate(context, prompt, error, isolation)
                prompt = _with_tail(await self._without(context, isolation), tail)
            else:
                if isolation is not None:
                    self._note_kept_out(context, isolation.found(), is_told=not isolation.is_earlier)
                return prompt, response

    def _kept_out_of(self, context: AgentContext) -> KeptOut:
        return self._isolated.kept_out(context.id, self._model_name())

    def _note_kept_out(self, context: AgentContext, kept_out: KeptOut, *, is_told: bool) -> None:
        self._isolated.note(context.id, self._model_name(), kept_out, is_told=is_told)
        logger.warning("model.message_kept_out", extra={"context": context.id, "model": self._model_name()})

    def _model_name(self) -> str:
        return str(getattr(self.llm, "model", ""))

    def _isolate(self, context: AgentContext, prompt: Prompt, error: LLMError, begun: Isolation | None) -> Isolation:
        """Begin to look for the part of a prompt that the model refuses, or go on with that.

        Raises:
            LLMError: it is the error, and not about a part: a server that fails meanwhile says nothing about one.
        """
        if not may_be_one_message(error):
            raise error
        if begun is not None:
            return begun
        first, end = prompt.sections().get("window", (0, 0))
        shown = (source for place, source in prompt.sources().items() if first <= place < end)
        asked = _asked(context)
        window = [each for each in shown if isinstance(each, Message) and each not in asked]
        return Isolation(asked, window, self._kept_out_of(context), error)

    async def _without(self, context: AgentContext, isolation: Isolation) -> Prompt:
        """Return the next prompt to try.

        Raises:
            LLMError: there is none left; it is the first refusal.
        """
        kept_out = isolation.next_try()
        if kept_out is None:
            self._note_kept_out(context, isolation.blame_question(), is_told=True)
            raise isolation.error
        return await self._builder(self.max_prompt_tokens, kept_out).build(context)

    def _finish(self, context: AgentContext, prompt: Prompt, response: ChatResponse, text: str) -> FinishAction:
        said = with_sources(text, response.sources, context.language) if response.sources else text
        not_seen = find_not_seen(_asked(context), response.left_out, self._kept_out_of(context))
        is_without = self._isolated.take_notice(context.id, self._model_name())
        return FinishAction(said, prompt=prompt, not_seen=not_seen, is_without_earlier=is_without, **_facts(response))

    async def _chat(
        self, prompt: Sequence[ChatMessage], tools: Sequence[ToolSchema], options: dict[str, Any]
    ) -> ChatResponse:
        try:
            response = await ask(self.llm, prompt, tools, options)
        except LLMError:
            raise
        except Exception as error:  # a border: a model is foreign code
            raise LLMError(f"the model failed with {type(error).__name__}") from error
        is_said = response.finish_reason in (FinishReason.LENGTH, FinishReason.REFUSAL)
        if is_blank(response.text) and not response.tool_calls and not is_said:
            raise LLMError("the model gave an empty answer")
        return response

    def _builder(self, max_tokens: int, kept_out: KeptOut) -> PromptBuilder:
        return PromptBuilder(
            system_prompt=self.prompt,
            skills=self.skills.prompt,
            selector=self.message_selector,
            search_k=0 if self.search_tokens == 0 else self.search_k,
            search_tokens=self.search_tokens,
            memory_keys=self.memory_keys,
            model=getattr(self.llm, "model", None),
            max_tokens=max_tokens,
            notes_tokens=self.notes_tokens,
            kept_out=kept_out,
        )


def _check_counts(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise ValueError(f"{name} must be 0 or more, not {number}")


def _by_name(tools: Iterable[Tool | ToolFunction | Agent]) -> dict[str, Tool]:
    named: dict[str, Tool] = {}
    for each in tools:
        given = each.as_tool() if isinstance(each, Agent) else each
        made = given if isinstance(given, Tool) else Tool(given)
        if made.name in named:
            raise InvalidTool(f"two tools are called {made.name}: give one of them another name=")
        named[made.name] = made
    return named


def _with_tail(prompt: Prompt, tail: Sequence[ChatMessage]) -> Prompt:
    """Return prompt with tail; the list of an override of build_prompt stays as it is."""
    if not tail:
        return prompt
    longer = copy(prompt)
    if prompt and prompt[-1].get("role") == "tool":  # some servers refuse a user's message right after a tool's
        longer.append({"role": "assistant", "content": _RESULTS_READ})
    longer.extend(tail)
    return longer


def _asked(context: AgentContext) -> list[Message]:
    """Return the messages that the current turn answers."""
    question = context.chat_history.last_user_message
    return [*context.question_parts, *([] if question is None else [question])]


def _facts(response: ChatResponse) -> dict[str, Any]:
    """Return what actions say of the answer that they come from."""
    return {
        "token_usage": response.usage,
        "model": response.model,
        "finish_reason": response.finish_reason,
        "model_items": response.items,
    }
