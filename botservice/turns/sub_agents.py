"""Agents that work for the agent of a turn: steps of their own within one call of a tool, and usage of the turn."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from botservice.agent.agent import Action, Agent, AgentTool, FinishAction, ModelReply, rests_on_others
from botservice.agent.tool import Tool
from botservice.agent.tool_executor import ToolOutcome, execute, find_too_many
from botservice.agent.tool_executor import refused as refuse
from botservice.agent.tool_questions import CallQuestions, answering
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import Timing
from botservice.conversation.steps import ActionStep, FinalAnswerStep, MemoryStep, TaskStep
from botservice.conversation.sub_runs import write_sub_run
from botservice.core.errors import BotServiceError
from botservice.core.messages import Author, Message
from botservice.history.chat_history import ChatHistory
from botservice.storage.claims import Claim
from botservice.turns.agent_loop import AgentLoop, AskAgent, T
from botservice.turns.approvals_needed import find_to_ask, gives_untrusted
from botservice.turns.model_calls import Interruption, ask_model, describe_answer
from botservice.turns.run_options import RunOptions
from botservice.turns.running_calls import close_step
from botservice.turns.turn import Turn
from botservice.turns.usage_recorder import UsageRecorder

DEEPEST: Final = 3
"""How many agents may stand below the turn's own, each called by the one above."""
_NOWHERE: Final = 0  # the id of no context: a history in which nothing is ever found
_ASKS: Final = (
    "{name} needs the word of a person, whom you cannot ask: it was not called. Say in your answer what is to be done, "
    "for whoever gave you the task"
)
_TOO_LATE: Final = "its result comes later, and nobody waits for that within another's task"


class TaskContext(AgentContext):
    """What an agent sees that works for another: its task, and nothing of the conversation that it is called in.

    Its tools have the conversation's id, storage and metadata.
    """

    def __init__(self, above: AgentContext, agent: Agent, task: str) -> None:
        super().__init__(above.storage, above.id, above.context_keys)
        self._above = above
        self.metadata = above.metadata
        self.language = above.language
        self.find_roles = above.find_roles
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


class SubWork(AgentLoop):
    """The work on one task: called once, it returns the answer."""

    def __init__(self, agents: "SubAgents", tool: AgentTool, context: AgentContext) -> None:
        super().__init__(tool.agent, context, tool.max_steps, agents.clock, Interruption())
        self.run = self
        self._tool = tool
        self._agents = agents
        self._answered: FinishAction | None = None

    def record(self) -> Mapping[str, Any]:
        """Return what was done, however far it came, as values that a field of a step keeps."""
        return write_sub_run(self._tool.name, self.memory)

    async def __call__(self) -> Any:
        """Work on the task and return the answer, with its files.

        Raises:
            LLMError: the model did not answer.
            BudgetExceeded: a budget does not reach.
        """
        while self._answered is None:
            await self.next_step()
        output, files = self._answered.output, self._answered.attachments
        return [output, *files] if files else output

    async def ask(self, call: AskAgent[T]) -> T:
        """Return what the agent says; it is paid for at once."""
        return await self._agents.ask(self.agent, self.context, call)

    async def act(self, action: Action, started_at: datetime) -> ActionStep:
        """Run the calls that the model wants, and keep the step."""
        step = ActionStep(self.context.last_step_number + 1, timing=Timing(started_at))
        step.set_values_from_dict({"tool_calls": tuple(action.tool_calls), "model_output": action.model_output})
        tools = await self.agent.tools_for(self.context)
        self.context.has_read_untrusted |= rests_on_others(action)
        outcomes = await self._run_calls(step, tools)
        self.context.has_read_untrusted |= gives_untrusted(tools, step.tool_calls or ())
        close_step(step, outcomes, tools, self._clock())
        await self.keep(step, started_at, action)
        return step

    async def keep_answer(self, action: FinishAction, started_at: datetime | None = None) -> FinalAnswerStep:
        """Keep the answer, which the caller is given."""
        step = FinalAnswerStep(action.output)
        await self.keep(step, started_at or self._clock(), action)
        self._answered = action
        return step

    async def keep(self, step: MemoryStep, started_at: datetime, said: ModelReply | None = None) -> None:
        """Put a step into the memory; only the last one has its prompt, because that repeats the earlier ones."""
        answer = {} if said is None else describe_answer(said)
        step.set_values_from_dict({"timing": Timing(started_at, self._clock()), **answer})
        if said is not None and said.prompt:
            for earlier in self.memory.steps:
                if earlier.get_value("model_input_messages") is not None:
                    earlier.set_value("model_input_messages", None)
            step.set_value("model_input_messages", list(said.prompt))
        self.memory.steps.append(step)
        self._count(step)

    async def _run_calls(self, step: ActionStep, tools: Mapping[str, Tool]) -> list[ToolOutcome]:
        """Run calls side by side; nobody can be asked in the middle of another call, for an approval or an answer."""
        calls = step.tool_calls or ()
        outcomes = dict(find_too_many(tools, calls, self.context.completed_steps))
        for index in await find_to_ask(tools, calls, self.context, outcomes):
            outcomes[index] = refuse(_ASKS.format(name=calls[index].name))
        with answering(CallQuestions(llm=self.agent.llm)):
            async with asyncio.TaskGroup() as group:
                running = {
                    index: group.create_task(execute(tools, call, self.context))
                    for index, call in enumerate(calls)
                    if index not in outcomes
                }
        outcomes |= {index: task.result() for index, task in running.items()}
        made = [outcomes[index] for index in range(len(calls))]
        return [each if each.later is None else refuse(_TOO_LATE) for each in made]


class SubAgents:
    """Has agents work for the agent of one turn."""

    def __init__(self, options: RunOptions, context: AgentContext, turn: Turn, claim: Claim) -> None:
        self.clock = options.clock
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
        return SubWork(self, tool, context)

    async def ask(self, agent: Agent, asking: AgentContext, call: AskAgent[T]) -> T:
        """Return what an agent says, with the retries that its model's failures deserve, and pay for it at once."""
        async with self._in_turn():
            usage = UsageRecorder(self._options, self._context, self._turn, agent=agent, asking=asking)
            usage.watch()
            await usage.open()
            try:
                said = await ask_model(lambda: call(asking), self._options.model_retries, Interruption())
            except BaseException:  # also where a person stops the turn: what was reserved is not kept from others
                await asyncio.shield(usage.give_back())
                raise
            usage.take(said.token_usage, "", said.model)
            await self._record_usage(usage)
            return said

    async def _record_usage(self, usage: UsageRecorder) -> None:
        now = self.clock()
        await self._context.storage.write(
            lambda connection: usage.write(connection, now), fence=self._claim, sort_key=(self._context.id,)
        )
        usage.confirm()

    @contextlib.asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        """Let one call be made at a time where calls are reserved: a turn has one reservation."""
        if not self._options.budgets.has_limits:
            yield
            return
        async with self._lock:
            yield
