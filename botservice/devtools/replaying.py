"""Asking a past turn's question again: nothing is sent, nothing in the chat changes, and no tool runs."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from botservice.agent.agent import Agent
from botservice.agent.functions_based import FunctionsBasedAgent
from botservice.agent.prompt import Prompt
from botservice.agent.tool import Tool
from botservice.config.settings import Settings
from botservice.conversation.context import AgentContext
from botservice.core.adapters import adopt
from botservice.core.errors import BotServiceError, SettingsError
from botservice.devtools.queries import list_questions
from botservice.devtools.recorded_turn import RecordedTurn, read_record
from botservice.devtools.replay_changes import Changes, own_words
from botservice.devtools.replay_dialog import RecordedResults, ReplayDialog
from botservice.devtools.replayed_answers import Comparison
from botservice.llm.chat import ChatLLM, ChatMessage
from botservice.llm.configured import configured_llm
from botservice.people.usage import ModelCall, Payer
from botservice.people.usage_queries import record_call
from botservice.service import AgentService
from botservice.storage.database import Connection, Storage

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
    tools = await offered_tools(agent, context)
    talk = ReplayDialog(llm, tools, RecordedResults(record.tool_calls), budgets, service.options.max_steps)
    try:
        again = await talk.ask(prompt)
    finally:
        await _write_usage(storage, talk.billed)
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


async def _write_usage(storage: Storage, billed: list[ModelCall]) -> None:
    """Record the usage of models for the service as a whole, not for a person or a chat."""
    now = storage.now()

    def write(connection: Connection) -> None:
        for each in billed:
            record_call(connection, _NOBODY, replace(each, model=AGAIN), now)

    if billed:
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
