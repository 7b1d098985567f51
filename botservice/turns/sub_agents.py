"""Agents that work for the agent of a turn: what they see, whom they ask, and how deep they go."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, Final

from botservice.agent.agent import Agent
from botservice.agent.agent_tool import AgentTool
from botservice.conversation.context import AgentContext
from botservice.conversation.steps import TaskStep
from botservice.core.errors import BotServiceError
from botservice.core.messages import Author, Message
from botservice.history.chat_history import ChatHistory
from botservice.storage.claims import Claim
from botservice.turns.model_calls import Interruption, ask_model
from botservice.turns.run_options import RunOptions
from botservice.turns.sub_work import SubWork
from botservice.turns.turn import Turn
from botservice.turns.usage_recorder import UsageRecorder

DEEPEST: Final = 3
"""How many agents may stand below the turn's own, each called by the one above."""
_NOWHERE: Final = 0  # the id of no context: a history in which nothing is ever found


class TaskContext(AgentContext):
    """What an agent sees that works for another: its task, and nothing of the conversation that it is called in.

    Its tools have the conversation's id, storage and metadata.
    """

    def __init__(self, above: AgentContext, agent: Agent, task: str) -> None:
        super().__init__(above.storage, above.id, above.context_keys)
        self._above = above
        self.metadata = above.metadata
        self.language = above.language
        self.chat_history = ChatHistory(above.storage, _NOWHERE)
        self.chat_history.remember_last(Message(text=task))
        self.begin_turn(agent.prompt, TaskStep(task), keeps_steps=False)

    @property
    def asker(self) -> Author | None:
        """Who asked the first agent."""
        return self._above.asker

    def system_prompt_for(self, prompt: str, skills: str = "") -> str:
        """Return the agent's own prompt: that of the conversation is for the agent that speaks in it."""
        return "\n\n".join(part for part in (prompt, skills) if part)


class SubAgents:
    """Has agents work for the agent of one turn."""

    def __init__(self, options: RunOptions, context: AgentContext, turn: Turn, claim: Claim) -> None:
        self._options = options
        self._context = context
        self._turn = turn
        self._claim = claim
        self._lock = asyncio.Lock()

    def delegate(self, tool: AgentTool, task: str) -> SubWork:
        """Return the work of another agent on a task, for a tool of the turn's own agent."""
        return self._delegate(self._context, 1, tool, task)

    def _delegate(self, above: AgentContext, depth: int, tool: AgentTool, task: str) -> SubWork:
        if depth > DEEPEST:
            raise BotServiceError(f"agents may stand {DEEPEST} deep below the first, and {tool.name} would be deeper")
        context = TaskContext(above, tool.agent, task)
        context.has_read_untrusted = above.has_read_untrusted
        context.delegate = partial(self._delegate, context, depth + 1)
        return SubWork(tool, context, partial(self._ask, tool.agent), self._options.clock)

    async def _ask(
        self, agent: Agent, asking: AgentContext, call: Callable[[AgentContext], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Return what an agent says, with the retries that its model's failures deserve, and pay for it at once."""
        async with self._in_turn():
            bill = UsageRecorder(self._options, self._context, self._turn, agent=agent, asking=asking)
            bill.watch()
            await bill.open()
            try:
                said = await ask_model(lambda: call(asking), self._options.model_retries, Interruption())
            except BaseException:  # also where a person stops the turn: what was reserved is not kept from others
                await asyncio.shield(bill.give_back())
                raise
            bill.take(said.token_usage, "", said.model)
            await self._pay(bill)
            return said

    async def _pay(self, bill: UsageRecorder) -> None:
        now = self._options.clock()
        await self._context.storage.write(
            lambda connection: bill.write(connection, now), fence=self._claim, sort_key=(self._context.id,)
        )
        bill.confirm()

    @contextlib.asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        """Let one call be made at a time where calls are reserved: a turn has one reservation."""
        if not self._options.budgets.has_limits:
            yield
            return
        async with self._lock:
            yield
