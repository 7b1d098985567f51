"""An agent's work for another agent: steps of its own, within one call of a tool, on the bill of the turn."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from botservice.agent.agent import Action, FinishAction, rests_on_others
from botservice.agent.agent_tool import AgentTool
from botservice.agent.call_limits import find_too_many
from botservice.agent.checks import find_refusal
from botservice.agent.tool import Tool
from botservice.agent.tool_executor import ToolOutcome, execute
from botservice.agent.tool_executor import refused as refuse
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import Timing
from botservice.conversation.steps import ActionStep, FailedStep, FinalAnswerStep, MemoryStep, PlanningStep
from botservice.conversation.sub_runs import write_sub_run
from botservice.core.errors import LLMError
from botservice.core.messages import ToolCall
from botservice.llm.chat import ChatMessage
from botservice.texts import in_language
from botservice.turns.approvals_needed import find_to_ask, gives_untrusted
from botservice.turns.failures import model_failure, unchecked, used_up
from botservice.turns.model_calls import ParsedReply, record_answer
from botservice.turns.running_calls import close_step, final_answer
from botservice.turns.saving import as_text


class ModelReply(ParsedReply, Protocol):
    """What an agent made of an answer of its model, with what the model was sent."""

    @property
    def prompt(self) -> Sequence[ChatMessage]:
        """What the model was sent."""


_ASKS: Final = (
    "{name} needs the word of a person, whom you cannot ask: it was not called. Say in your answer what is to be done, "
    "for whoever gave you the task"
)
_TOO_LATE: Final = "its result comes later, and nobody waits for that within another's task"
T = TypeVar("T", bound=ModelReply)
Ask = Callable[[AgentContext, Callable[[AgentContext], Coroutine[Any, Any, Any]]], Coroutine[Any, Any, Any]]
"""Asks a model in a context: with retries, and on the bill of the turn."""


class SubWork:
    """The work on one task: called once, it returns the answer.

    Attributes:
        context: What the agent sees: its task, and its own steps.
        memory: Its own steps.
    """

    def __init__(self, tool: AgentTool, context: AgentContext, ask: Ask, clock: Callable[[], datetime]) -> None:
        self.context = context
        self.memory = context.memory
        self._tool = tool
        self._agent = tool.agent
        self._ask_model = ask
        self._clock = clock

    def record(self) -> Mapping[str, Any]:
        """Return what was done, however far it came, as values that a field of a step keeps."""
        return write_sub_run(self._tool.name, self.memory)

    async def __call__(self) -> Any:
        """Work on the task and return the answer, with its files.

        Raises:
            LLMError: the model did not answer.
            BudgetExceeded: a budget does not reach.
        """
        while self.context.steps_taken < self._tool.max_steps:
            started_at = self._clock()
            await self._plan(started_at)
            action = await self._ask(self._agent.next_action, started_at)
            done = await self._act(action, started_at) if isinstance(action, Action) else action
            if done is not None and await self._accepts(done, started_at):
                return self._answer(done, started_at)
        return await self._finish()

    async def _finish(self) -> Any:
        """Answer without more tools, because the steps are used up."""
        started_at = self._clock()
        self._keep(FailedStep(self._next_number(), error=used_up(self._tool.max_steps)), started_at)
        action = await self._ask(self._agent.finish, started_at)
        refusal = await self._find_refusal(action)
        if refusal is not None:
            said = as_text(action.output)
            failed = FailedStep(self._next_number(), error=unchecked(refusal), model_output=said)
            self._keep(failed, started_at, action)
            action = FinishAction(in_language("answer.unchecked", self.context.language))
        return self._answer(action, started_at)

    async def _plan(self, started_at: datetime) -> None:
        interval, taken = self._agent.planning_interval, self.context.steps_taken
        plans = sum(1 for step in self.memory.steps if isinstance(step, PlanningStep))
        if interval is None or taken % interval or plans > taken // interval:
            return
        plan = await self._ask(self._agent.plan, started_at)
        self._keep(PlanningStep(plan.text), started_at, plan)

    async def _act(self, action: Action, started_at: datetime) -> FinishAction | None:
        """Run the calls that the model wants; return the answer where a final tool gave it."""
        step = ActionStep(self._next_number(), tool_calls=tuple(action.tool_calls), model_output=action.model_output)
        tools = await self._agent.tools_for(self.context)
        self.context.has_read_untrusted |= rests_on_others(action)
        outcomes = await self._run_calls(step, tools)
        self.context.has_read_untrusted |= gives_untrusted(tools, step.tool_calls or ())
        self.context.steps_taken += 1
        self._keep(step, started_at, action)
        close_step(step, outcomes, tools, self._clock())
        return final_answer(step, tools) if step.is_final_answer else None

    async def _run_calls(self, step: ActionStep, tools: Mapping[str, Tool]) -> list[ToolOutcome]:
        calls = step.tool_calls or ()
        refused = await self._refuse(tools, calls)
        async with asyncio.TaskGroup() as group:
            running = {
                index: group.create_task(execute(tools, call, self.context))
                for index, call in enumerate(calls)
                if index not in refused
            }
        outcomes = [refused[index] if index in refused else running[index].result() for index in range(len(calls))]
        return [each if each.later is None else refuse(_TOO_LATE) for each in outcomes]

    async def _refuse(self, tools: Mapping[str, Tool], calls: Sequence[ToolCall]) -> dict[int, ToolOutcome]:
        """Return the outcomes of calls that need approval: nobody can be asked in the middle of another call."""
        refused = find_too_many(tools, calls, self.context.completed_steps)
        asking = await find_to_ask(tools, calls, self.context, refused)
        return {**refused, **{index: refuse(_ASKS.format(name=calls[index].name)) for index in asking}}

    async def _accepts(self, action: FinishAction, started_at: datetime) -> bool:
        """Whether an answer passes the agent's checks; one that does not is an observation."""
        refusal = await self._find_refusal(action)
        if refusal is None:
            return True
        for given in self.context.completed_steps:
            given.is_final_answer = False
        self.context.steps_taken += 1
        step = ActionStep(self._next_number(), model_output=as_text(action.output), observations=refusal)
        step.error = unchecked(refusal)
        self._keep(step, started_at, action)
        return False

    async def _find_refusal(self, action: FinishAction) -> str | None:
        return await find_refusal(self._agent.final_answer_checks, action.output, self.memory, self)

    def _answer(self, action: FinishAction, started_at: datetime) -> Any:
        self._keep(FinalAnswerStep(action.output), started_at, action)
        return [action.output, *action.attachments] if action.attachments else action.output

    async def _ask(self, call: Callable[[AgentContext], Coroutine[Any, Any, T]], started_at: datetime) -> T:
        try:
            said: T = await self._ask_model(self.context, call)
        except LLMError as error:
            self._keep(FailedStep(self._next_number(), error=model_failure(error)), started_at)
            raise
        return said

    def _keep(self, step: MemoryStep, started_at: datetime, said: ModelReply | None = None) -> None:
        """Put a step into the memory; only the last one has its prompt, because that repeats the earlier ones."""
        step.set_value("timing", Timing(started_at, self._clock()))
        if said is not None:
            record_answer(step, said)
        if said is not None and said.prompt:
            for earlier in self.memory.steps:
                if earlier.get_value("model_input_messages") is not None:
                    earlier.set_value("model_input_messages", None)
            step.set_value("model_input_messages", list(said.prompt))
        self.memory.steps.append(step)

    def _next_number(self) -> int:
        self.context.last_step_number += 1
        return self.context.last_step_number
