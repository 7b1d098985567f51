"""An agent's work for another agent: steps of its own, within one call of a tool, on the bill of the turn."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from botservice.agent.agent import Action, FinishAction, ModelReply, rests_on_others
from botservice.agent.agent_tool import AgentTool
from botservice.agent.call_limits import find_too_many
from botservice.agent.tool import Tool
from botservice.agent.tool_executor import ToolOutcome, execute
from botservice.agent.tool_executor import refused as refuse
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import Timing
from botservice.conversation.steps import ActionStep, FinalAnswerStep, MemoryStep
from botservice.conversation.sub_runs import write_sub_run
from botservice.core.messages import ToolCall
from botservice.turns.agent_loop import AgentLoop, AskAgent, T
from botservice.turns.approvals_needed import find_to_ask, gives_untrusted
from botservice.turns.model_calls import Interruption, record_answer
from botservice.turns.running_calls import close_step

_ASKS: Final = (
    "{name} needs the word of a person, whom you cannot ask: it was not called. Say in your answer what is to be done, "
    "for whoever gave you the task"
)
_TOO_LATE: Final = "its result comes later, and nobody waits for that within another's task"
Ask = Callable[[AgentContext, Callable[[AgentContext], Coroutine[Any, Any, Any]]], Coroutine[Any, Any, Any]]
"""Asks a model in a context: with retries, and on the bill of the turn."""


class SubWork(AgentLoop):
    """The work on one task: called once, it returns the answer."""

    def __init__(self, tool: AgentTool, context: AgentContext, ask: Ask, clock: Callable[[], datetime]) -> None:
        super().__init__(tool.agent, context, tool.max_steps, clock, Interruption())
        self.run = self
        self._tool = tool
        self._ask_model = ask
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
        said: T = await self._ask_model(self.context, call)
        return said

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
        step.set_value("timing", Timing(started_at, self._clock()))
        if said is not None:
            record_answer(step, said)
        if said is not None and said.prompt:
            for earlier in self.memory.steps:
                if earlier.get_value("model_input_messages") is not None:
                    earlier.set_value("model_input_messages", None)
            step.set_value("model_input_messages", list(said.prompt))
        self.memory.steps.append(step)
        self._count(step)

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
