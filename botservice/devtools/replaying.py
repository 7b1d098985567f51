"""Asking a past turn's question again: nothing is sent, nothing in the chat changes, and no tool runs."""

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from botservice.agent.agent import Agent
from botservice.agent.functions_based_agent import FunctionsBasedAgent
from botservice.agent.prompt import Prompt
from botservice.agent.sources import with_sources
from botservice.agent.tool import HostedTool, Tool
from botservice.config.settings import Settings
from botservice.conversation.chat_messages import step_messages
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import ToolResult
from botservice.conversation.steps import ActionStep, PlanningStep
from botservice.conversation.sub_runs import usage_of
from botservice.core.argument_checks import adopt
from botservice.core.errors import BotServiceError, LLMError, SettingsError
from botservice.core.messages import TokenUsage, ToolCall, is_blank
from botservice.devtools.queries import list_questions
from botservice.devtools.recorded_turn import RecordedTurn, cost_of, read_record
from botservice.devtools.replayed_answers import (
    Changes,
    Comparison,
    ReplayedAnswer,
    ReplayedCall,
    ResultOrigin,
    own_words,
)
from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse
from botservice.llm.configured import configured_llm
from botservice.people.budgets import Budgets
from botservice.people.usage import ModelCall, Payer
from botservice.people.usage_queries import record_call
from botservice.service import AgentService
from botservice.storage.database import Connection, Storage
from botservice.turns.asker_roles import find_roles

ANY_ARGUMENTS: Final = "*"
_MISSING: Final = (
    "Error: this call is not in the record, so it was not made and there is no result. Answer with what you have."
)


class RecordedResults:
    """What calls gave. Of several calls that are the same, each gets its own result in their order, then the last.

    Those for all are the results of every call of their tool that has none of its own.
    """

    def __init__(self, calls: Iterable[ReplayedCall], for_all: Iterable[ReplayedCall] = ()) -> None:
        self._by_call: defaultdict[tuple[str, str], list[ReplayedCall]] = defaultdict(list)
        for call in calls:
            self._by_call[call.name, _canonical(call.arguments)].append(call)
        for call in for_all:
            self._by_call[call.name, ANY_ARGUMENTS].append(call)

    def take(self, call: ToolCall) -> ReplayedCall:
        """Return the recorded result of a call."""
        arguments = call.arguments if call.malformed_arguments is None else {}
        same = self._by_call.get((call.name, _canonical(arguments))) or self._by_call.get((call.name, ANY_ARGUMENTS))
        if not same or call.malformed_arguments is not None:
            return ReplayedCall(call.name, arguments, _MISSING, ResultOrigin.MISSING, is_error=True)
        known = same.pop(0) if len(same) > 1 else same[0]
        return ReplayedCall(call.name, arguments, known.result, ResultOrigin.RECORD, known.is_error)


def _canonical(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=list)


@dataclass(slots=True)
class ReplayDialog:
    """What is said to a model, and what has come of it so far.

    Attributes:
        tools: What it may call; none of them runs. Those that its server runs are left out.
        max_steps: How often it may call before it has to answer.
        model_calls: Each call of the model, with what it took.
    """

    llm: ChatLLM
    tools: Mapping[str, Tool]
    results: RecordedResults
    budgets: Budgets
    max_steps: int = 10
    model_calls: list[ModelCall] = field(default_factory=list)
    _usages: list[TokenUsage] = field(default_factory=list)
    _costs: list[int | None] = field(default_factory=list)
    _calls: list[ReplayedCall] = field(default_factory=list)
    _count: int = 0

    async def ask(self, prompt: Sequence[ChatMessage]) -> ReplayedAnswer:
        """Return the model's answer to a prompt, or its error as an answer."""
        began = time.monotonic()
        try:
            answer = ReplayedAnswer(await self._converse(list(prompt)))
        except BotServiceError as error:
            answer = ReplayedAnswer(error=str(error))
        return replace(
            answer,
            models=tuple(dict.fromkeys(each.model for each in self.model_calls)),
            calls=self._count,
            usage=usage_of([PlanningStep("", token_usage=each) for each in self._usages]),
            cost=sum(each or 0 for each in self._costs) if self._costs and None not in self._costs else None,
            tool_calls=tuple(self._calls),
            seconds=time.monotonic() - began,
        )

    async def _converse(self, messages: list[ChatMessage]) -> str:
        for number in range(1, self.max_steps + 2):
            response = await self._chat(messages, has_tools=number <= self.max_steps)
            if not response.tool_calls or number > self.max_steps:
                return _text_of(response)
            made = [self.results.take(call) for call in response.tool_calls]
            self._calls += made
            final = self._find_final(made)
            if final is not None:
                return final.result
            messages += step_messages(_as_step(number, response, made))
        raise AssertionError("the last call has no tools, so it answers")

    async def _chat(self, messages: Sequence[ChatMessage], *, has_tools: bool) -> ChatResponse:
        offered = [tool for tool in self.tools.values() if not isinstance(tool, HostedTool)] if has_tools else []
        self._count += 1
        try:
            response = await self.llm.chat(Prompt(messages), [tool.schema for tool in offered])
        except BotServiceError:
            raise
        except Exception as error:  # a border: a model is foreign code
            raise LLMError(f"the model failed with {type(error).__name__}") from error
        name = response.model or self.llm.models[0]
        if response.usage is not None:
            self._usages.append(response.usage)
            self._costs.append(cost_of(self.budgets, name, response.usage, self.llm.models))
        self.model_calls.append(self.budgets.price(name, response.usage or TokenUsage(0, 0)))
        return response

    def _find_final(self, made: Sequence[ReplayedCall]) -> ReplayedCall | None:
        finals = [name for name, tool in self.tools.items() if tool.is_final]
        return next((each for each in made if each.name in finals and not each.is_error), None)


def _text_of(response: ChatResponse) -> str:
    text = with_sources(response.text, response.sources, None)
    if is_blank(text):
        raise LLMError("the model gave an empty answer")
    return text


def _as_step(number: int, response: ChatResponse, made: Sequence[ReplayedCall]) -> ActionStep:
    results: list[Any] = [
        ToolResult(call.id, each.result, each.is_error) for call, each in zip(response.tool_calls, made, strict=True)
    ]
    step = ActionStep(number, tool_calls=response.tool_calls, tool_results=results)
    step.set_values_from_dict({"model_output": response.text or None, "model_items": list(response.items) or None})
    return step


AGAIN: Final = "again"
"""The name under which the usage of asking again is stored, in place of a model's; it counts for no person."""
_NOBODY: Final = Payer(0, "", "")


async def ask_again(
    service: AgentService,
    context: AgentContext | int,
    turn: int,
    changes: Changes | None = None,
    *,
    call: int = 1,
    llm: ChatLLM | None = None,
    storage: Storage | None = None,
) -> Comparison:
    """Ask the question of a past turn again, and return both answers.

    The model is sent what it was sent then, from the prompt log, with the changes. A call of a tool that it made then
    as well, with the same arguments, gets the result that is recorded; any other gets none, and `Comparison.again`
    says so. No tool runs and no approval is asked for. What is stored is one line of usage, of no person.

    Args:
        context: The conversation, or its number.
        turn: A number, as `botservice replay` shows it.
        changes: What is different; without any, the same is asked of the model as it is now.
        call: With which call of the model to begin, counted from 1; what was done before it stays as it was.
        llm: Another model than the agent's.
        storage: Where the record is; by default the service's.

    Raises:
        BotServiceError: there is no such turn, nothing is kept of its prompts, or there is no model to ask.
    """
    record = await read_again(service, context, turn, call=call, storage=storage)
    llm = model_of(service.agent) if llm is None else adopt(ChatLLM, llm, "llm=")
    return await _ask(service, record, changes or Changes(), llm, _storage_of(service, storage))


async def prompt_again(
    service: AgentService,
    context: AgentContext | int,
    turn: int,
    changes: Changes | None = None,
    *,
    call: int = 1,
    storage: Storage | None = None,
) -> Sequence[ChatMessage]:
    """Return the messages that `ask_again` would send, without sending them."""
    record = await read_again(service, context, turn, call=call, storage=storage)
    return _prompt_of(service.agent, record, changes or Changes())


async def read_again(
    service: AgentService, context: AgentContext | int, turn: int, *, call: int = 1, storage: Storage | None = None
) -> RecordedTurn:
    """Return the record that `ask_again` begins with."""
    kept = _storage_of(service, storage)
    context_id = context if isinstance(context, int) else context.id
    rebuild = partial(rebuild_prompt, service.agent, kept, context_id, turn)
    return await read_record(kept, context_id, turn, call, rebuild=rebuild)


def _storage_of(service: AgentService, storage: Storage | None) -> Storage:
    kept = storage or service.storage
    if kept is None:
        raise BotServiceError("there is no storage to read the record from: give storage=, or a service that has one")
    return kept


def _prompt_of(agent: Agent, record: RecordedTurn, changes: Changes) -> list[ChatMessage]:
    return changes.apply(record.prompt, record.sections, [record.own_prompt or "", agent.prompt])


async def _ask(
    service: AgentService, record: RecordedTurn, changes: Changes, llm: ChatLLM, storage: Storage
) -> Comparison:
    agent, budgets = service.agent, service.options.budgets
    prompt = _prompt_of(agent, record, changes)
    context = await AgentContext.load(storage, record.context_id, record.turn_id)
    context.find_roles = partial(find_roles, service.options.access, context, record.turn_id)
    tools = await offered_tools(agent, context)
    talk = ReplayDialog(llm, tools, RecordedResults(record.tool_calls), budgets, service.options.max_steps)
    try:
        again = await talk.ask(prompt)
    finally:
        await _write_usage(storage, talk.model_calls)
    then = record.answer(budgets, () if agent.llm is None else agent.llm.models)
    changed = changes.describe()
    return Comparison(
        record.context_id, record.turn_id, record.call, record.task, changed, prompt, then, again, budgets.currency
    )


async def rebuild_prompt(agent: Agent, storage: Storage, context_id: int, turn_id: int) -> Prompt | None:
    """Build the prompt of a turn again, or return None if its question is not the last one of the chat."""
    context = await AgentContext.load(storage, context_id, turn_id)
    question = context.chat_history.last_user_message
    asked = await storage.read(lambda connection: list_questions(connection, [turn_id]))
    if question is None or question.id not in {row.id for row in asked} or not isinstance(agent, FunctionsBasedAgent):
        return None
    return await agent.build_prompt(context)


def model_of(agent: Agent) -> ChatLLM:
    """Return the model that an agent asks."""
    if agent.llm is None:
        raise BotServiceError(f"{type(agent).__name__} has no llm, so there is no model to ask again")
    return agent.llm


async def offered_tools(agent: Agent, context: AgentContext) -> Mapping[str, Tool]:
    """Return the tools that an agent's model is told of in a conversation, by name."""
    if isinstance(agent, FunctionsBasedAgent):
        return {tool.name: tool for tool in await agent.offered_tools(context)}
    return await agent.tools_for(context)


async def _write_usage(storage: Storage, model_calls: list[ModelCall]) -> None:
    """Record the usage of models for the service as a whole, not for a person or a chat."""
    now = storage.now()

    def write(connection: Connection) -> None:
        for each in model_calls:
            record_call(connection, _NOBODY, replace(each, model=AGAIN), now)

    if model_calls:
        await storage.write(write)


class Replayer:
    """Asks turns again for pages and programs, which name a turn by its number."""

    def __init__(self, service: AgentService, settings: Settings) -> None:
        self._service = service
        self._settings = settings

    async def read(self, storage: Storage, context_id: int, turn_id: int, call: int = 1) -> RecordedTurn:
        """Return the record of the turn that would be asked again."""
        return await read_again(self._service, context_id, turn_id, call=call, storage=storage)

    def own_words(self, record: RecordedTurn) -> str:
        """Return the agent's own prompt from the top of a recorded prompt."""
        first = record.prompt[0] if record.prompt else {}
        text = str(first.get("content") or "") if first.get("role") == "system" else ""
        return own_words(text, [record.own_prompt or "", self._service.agent.prompt])

    async def ask(
        self, storage: Storage, context_id: int, turn_id: int, changes: Changes, *, call: int = 1, model: str | None
    ) -> Comparison:
        """Ask a turn's question again; see `ask_again`."""
        async with model_named(self._settings, model) as llm:
            return await ask_again(self._service, context_id, turn_id, changes, call=call, llm=llm, storage=storage)


@contextlib.asynccontextmanager
async def model_named(settings: Settings, name: str | None) -> AsyncIterator[ChatLLM | None]:
    """Yield the model of a name without a fallback, or None if no name is given.

    Raises:
        SettingsError: there is no server to ask.
    """
    if name is None:
        yield None
        return
    if not settings.has_model:
        raise SettingsError("another model needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")
    llm = configured_llm(settings.model_copy(update={"openai_fallback_models": ()}), name)
    try:
        yield llm
    finally:
        await llm.close()
