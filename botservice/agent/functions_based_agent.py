"""The agent that lets a model choose among functions."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

from botservice.agent.agent import Action, Agent, FinishAction, Plan, agents_among
from botservice.agent.final_answer_checks import FinalAnswerCheck, checked_checks
from botservice.agent.knowledge_base import (
    KNOWLEDGE_TOKENS,
    KnowledgeBase,
    cited_ids,
    passage_buttons,
    search_tool,
    with_citations,
)
from botservice.agent.prompt import Prompt, estimate_tokens
from botservice.agent.prompt_builder import PromptBuilder
from botservice.agent.refused_content import Narrowing, find_not_seen
from botservice.agent.shared_refusals import SharedRefusals
from botservice.agent.skills import Skills
from botservice.agent.sources import with_sources
from botservice.agent.tool import Tool, ToolFunction
from botservice.agent.toolbox import FIND_TOOL, MOST_IN_A_REQUEST, Toolbox, Toolset, has_fewer_tools
from botservice.conversation.callbacks import ShowSteps, StepCallbacks
from botservice.conversation.context import AgentContext
from botservice.conversation.prompt_exclusions import UNBOUNDED, KeptOut, PromptBounds
from botservice.conversation.readable_values import images
from botservice.conversation.refusal_queries import note_told, write_kept_out
from botservice.conversation.steps import MemoryStep
from botservice.core.argument_checks import adopt, check, check_can, check_listed
from botservice.core.errors import InvalidTool, LLMError
from botservice.core.messages import Button, Message, is_blank
from botservice.history.notes import NOTES_TOKENS
from botservice.history.window import MessageSelector, SteadyWindowMessageSelector
from botservice.llm.asking import ask, offered_to
from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, FinishReason, ToolSchema
from botservice.texts import in_language

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
_PLAN_REQUEST = (
    "Before you go on: write down in a few lines what is known, what is still missing, and the steps that you will "
    "take. Do not take them yet."
)
_RESULTS_READ = "I have read the results."


def prompt_of(name: str) -> str:
    """Return the standard prompt of a bot that has a name."""
    return DEFAULT_PROMPT.replace(_UNNAMED, f"You are {name}, a helpful assistant in a chat.")


class FunctionsBasedAgent(Agent):
    """Builds a prompt from recent and found messages and from the steps so far; the model calls tools or answers."""

    announces_calls = True
    llm: ChatLLM
    message_selector: MessageSelector
    notes_tokens: int

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
        knowledge: KnowledgeBase | None = None,
        knowledge_tokens: int = KNOWLEDGE_TOKENS,
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
            knowledge: The documents of the team. Passages that may answer a question stand in its prompt, and the tool
                `search_knowledge` finds more; answers name the documents that they rest on.
            knowledge_tokens: How many tokens those passages may take together.
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
        self.llm = _required(llm)
        _check_counts(search_k=search_k, search_tokens=search_tokens, notes_tokens=notes_tokens, max_steps=max_steps)
        _check_intervals(planning_interval, verbosity_level)
        self.name, self.description, self.max_steps = name, description, max_steps
        printing = {MemoryStep: ShowSteps(detailed=verbosity_level > 1)} if verbosity_level else None
        self.step_callbacks = StepCallbacks(printing).followed_by(StepCallbacks(step_callbacks))
        self.prompt = prompt or ""
        selector, remedy = message_selector or SteadyWindowMessageSelector(DEFAULT_WINDOW_TOKENS), "give an object"
        self.message_selector = adopt(MessageSelector, selector, "message_selector=", remedy=f"{remedy}: NoMessages()")
        self.search_k = DEFAULT_SEARCH_K if search_k is None else search_k
        self.search_tokens = DEFAULT_SEARCH_TOKENS if search_k is None and search_tokens is None else search_tokens
        self.notes_tokens = notes_tokens
        self.planning_interval = planning_interval
        self.memory_keys = tuple(memory_keys)
        self.max_prompt_tokens = max_prompt_tokens
        self.final_answer_checks = checked_checks(final_answer_checks)
        self.skills = skills or Skills()
        self.knowledge, self.knowledge_tokens = knowledge, knowledge_tokens
        self._toolbox = Toolbox(toolsets)
        self.toolsets = self._toolbox.toolsets
        check("prompt=", self.prompt, is_right=isinstance(self.prompt, str), remedy="give a text")
        check_can("skills=", self.skills, "tools", "prompt", remedy='load them: Skills.load("folder")')
        self._refusals = SharedRefusals(self.llm)
        self.tools = self._named_tools(tools)

    def _named_tools(self, tools: Iterable[Tool | ToolFunction | Agent]) -> dict[str, Tool]:
        """Collect the agent's own tools and those of its skills, by name.

        Raises:
            InvalidTool: two have one name, or one has that of `find_tool`.
        """
        own_tools = check_listed("tools=", tools, remedy="give a list: tools=[…]")
        named = _by_name([*own_tools, *self.skills.tools])
        if self.toolsets and FIND_TOOL in named:
            raise InvalidTool(f"{FIND_TOOL} finds tools of toolsets: give yours another name=")
        return named

    async def tools_now(self) -> Mapping[str, Tool]:
        """Collect all tools that can be called now, by name."""
        return await self._toolbox.callable_tools(self.tools)

    async def tools_for(self, context: AgentContext) -> Mapping[str, Tool]:
        """Collect all tools that can be called in a conversation now, by name."""
        if type(self).tools_now is not FunctionsBasedAgent.tools_now:
            return await super().tools_for(context)
        return await self._toolbox.callable_tools(await self._own_tools(context), context)

    async def offered_tools(self, context: AgentContext) -> Sequence[Tool]:
        """List the tools that the next model call offers."""
        own = await self._own_tools(context)
        is_limited = has_fewer_tools(context) or any(each.roles is not None for each in own.values())
        if not self.toolsets and len(own) <= MOST_IN_A_REQUEST and not is_limited:
            return list(own.values())  # nothing to choose among, as in most chats
        return await self._toolbox.offered_tools(own, context.completed_steps, context)

    async def _own_tools(self, context: AgentContext) -> Mapping[str, Tool]:
        """Return the tools of the agent itself, with the one that searches documents where there are any."""
        if self.knowledge is None or not await self.knowledge.has_documents(context):
            return self.tools
        searching = search_tool(self.knowledge)
        return {searching.name: searching, **self.tools}

    async def close(self) -> None:
        """Stop what its toolsets, and those of its sub-agents, started; a later turn starts them again."""
        await self._toolbox.close()
        for agent in agents_among(self.tools.values()):
            await agent.close()

    async def build_prompt(self, context: AgentContext) -> Prompt:
        """Build the chat-completions messages of the next call. Changes nothing that is stored."""
        if not context.memory.system_prompt.system_prompt:  # before the first run
            context.memory.system_prompt = context.system_prompt_for(self.prompt, self.skills.prompt)
        return await PromptBuilder(self, context.bounds).build(context)

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Ask the model for tool calls or an answer. Changes nothing."""
        offered = await self.offered_tools(context)
        prompt, response = await self._ask(context, [tool.schema for tool in offered], is_answer=True)
        if response.tool_calls:
            return Action(response.tool_calls, response.text or None, prompt, **_facts(response))
        return await self._finish(context, prompt, response, response.text)

    async def finish(self, context: AgentContext) -> FinishAction:
        """Ask the model for an answer without tools."""
        prompt, response = await self._ask(context, [], is_answer=True)
        said = response.text
        if response.tool_calls and is_blank(said):
            said = in_language("answer.steps_used_up", context.language)
        return await self._finish(context, prompt, response, said)

    async def plan(self, context: AgentContext) -> Plan:
        """Ask the model for a plan of the next steps."""
        prompt, response = await self._ask(context, [], [{"role": "user", "content": _PLAN_REQUEST}], is_streamed=False)
        return Plan(response.text, prompt, **_facts(response))

    async def _ask(
        self,
        context: AgentContext,
        tools: Sequence[ToolSchema],
        tail: Sequence[ChatMessage] = (),
        *,
        is_streamed: bool = True,
        is_answer: bool = False,
    ) -> tuple[Prompt, ChatResponse]:
        """Return the prompt that the model took and what it said.

        A prompt that is too long is shortened; of one that is refused, the part is looked for that the model refuses.
        """
        tools = offered_to(self.llm, tools)
        await self._refusals.refresh(context.storage)
        options: dict[str, Any] = {}
        if is_answer and context.output_form is not None:
            tail = [*tail, context.output_form.ask()]
            options = context.output_form.options(self.llm)
        prompt = await self._build(context, tail)
        if is_streamed and context.on_text is not None:
            options["on_text"] = context.on_text
        if context.on_thought is not None and self.llm.shows_thoughts:
            options["on_thought"] = context.on_thought
        narrowing = None
        while True:
            if context.before_call is not None:
                await context.before_call(prompt, tools)
            try:
                response = await ask(self.llm, prompt, tools, options)
                _check_said(response, may_be_empty=context.is_unasked)
            except LLMError as error:
                narrowing = narrowing or self._narrowing(context, prompt)
                refused = prompt
                while prompt == refused:  # one that is as it was is refused as it was
                    prompt = await self._build(context, tail, await narrowing.next_bounds(error))
            else:
                if narrowing is not None and (kept_out := narrowing.found()) is not None:
                    prompt.kept_out = kept_out
                    await self._keep_out(context, kept_out)
                return prompt, response
            finally:
                await self._refusals.store(context.storage)

    async def _build(
        self, context: AgentContext, tail: Sequence[ChatMessage], bounds: PromptBounds = UNBOUNDED
    ) -> Prompt:
        """Return a prompt that keeps to bounds."""
        context.bounds = bounds
        try:
            prompt: Sequence[ChatMessage] = await self.build_prompt(context)
        finally:
            context.bounds = UNBOUNDED
        return _with_tail(prompt if isinstance(prompt, Prompt) else Prompt(prompt), tail)

    async def _keep_out(self, context: AgentContext, kept_out: KeptOut) -> None:
        """Store what the prompts of a context go without from now on."""
        now, model = context.storage.now(), self.llm.model
        await context.storage.write(lambda connection: write_kept_out(connection, context.id, model, kept_out, now))
        logger.warning("model.message_kept_out", extra={"context": context.id, "model": model})

    def _narrowing(self, context: AgentContext, prompt: Prompt) -> Narrowing:
        """Return what finds a prompt that the model takes, in the place of one that it has refused."""
        first, end = prompt.sections().get("window", (0, 0))
        shown = (source for place, source in prompt.sources().items() if first <= place < end)
        asked = _asked(context)
        window = [each for each in shown if isinstance(each, Message) and each not in asked]
        return Narrowing(
            asked,
            window,
            prompt.kept_out,
            estimate_tokens(prompt),
            partial(self._keep_out, context),
            has_step_pictures=prompt.shows_step_pictures(),
        )

    async def _finish(self, context: AgentContext, prompt: Prompt, response: ChatResponse, text: str) -> FinishAction:
        said = with_sources(text, response.sources, context.language) if response.sources else text
        buttons: tuple[Button, ...] = ()
        if self.knowledge is not None and (ids := cited_ids(said)):
            cited = await self.knowledge.get(ids, context)
            said, buttons = with_citations(said, cited, context.language), passage_buttons(cited, context.language)
        given = [file for step in context.completed_steps for file in images(step.get_value("observations_images"))]
        not_seen = find_not_seen(_asked(context), given, response.left_out, prompt.kept_out)
        is_without = not prompt.kept_out.is_told
        if is_without:
            model = self.llm.model
            await context.storage.write(lambda connection: note_told(connection, context.id, model))
        return FinishAction(
            said, buttons=buttons, prompt=prompt, not_seen=not_seen, is_without_earlier=is_without, **_facts(response)
        )


def _required(llm: ChatLLM | None) -> ChatLLM:
    if llm is None:
        raise ValueError("a FunctionsBasedAgent needs llm=, such as OpenAIChatLLM() or ScriptedChatLLM([...])")
    return llm


def _check_intervals(planning_interval: int | None, verbosity_level: int) -> None:
    if planning_interval is not None and planning_interval < 1:
        raise ValueError(f"planning_interval must be 1 or more, or None, not {planning_interval}")
    if verbosity_level not in (0, 1, 2):
        raise ValueError(f"verbosity_level must be 0, 1 or 2, not {verbosity_level!r}")


def _check_counts(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise ValueError(f"{name} must be 0 or more, not {number}")


def _check_said(response: ChatResponse, *, may_be_empty: bool) -> None:
    is_said = may_be_empty or response.finish_reason in (FinishReason.LENGTH, FinishReason.REFUSAL)
    if is_blank(response.text) and not response.tool_calls and not is_said:
        raise LLMError("the model gave an empty answer")


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
