"""One question to a model until it answers; its calls of tools get their results from a record, and no tool runs."""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from botservice.agent.prompt import Prompt
from botservice.agent.sources import with_sources
from botservice.agent.tool import HostedTool, Tool
from botservice.conversation.chat_messages import step_messages
from botservice.conversation.field_values import ToolResult
from botservice.conversation.steps import ActionStep, PlanningStep
from botservice.conversation.sub_runs import usage_of
from botservice.core.errors import BotServiceError, LLMError
from botservice.core.messages import TokenUsage, ToolCall, is_blank
from botservice.devtools.recorded_turn import cost_of
from botservice.devtools.replayed_answers import CallMade, ReplayedAnswer, ResultOrigin
from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse
from botservice.people.budgets import Budgets
from botservice.people.usage import ModelCall

ANY_ARGUMENTS: Final = "*"
_MISSING: Final = (
    "Error: this call is not in the record, so it was not made and there is no result. Answer with what you have."
)


class RecordedResults:
    """What calls gave. Of several calls that are the same, each gets its own result in their order, then the last.

    Those for all are the results of every call of their tool that has none of its own.
    """

    def __init__(self, calls: Iterable[CallMade], for_all: Iterable[CallMade] = ()) -> None:
        self._by_call: defaultdict[tuple[str, str], list[CallMade]] = defaultdict(list)
        for call in calls:
            self._by_call[call.name, _canonical(call.arguments)].append(call)
        for call in for_all:
            self._by_call[call.name, ANY_ARGUMENTS].append(call)

    def take(self, call: ToolCall) -> CallMade:
        """Return the recorded result of a call."""
        arguments = call.arguments if call.malformed_arguments is None else {}
        same = self._by_call.get((call.name, _canonical(arguments))) or self._by_call.get((call.name, ANY_ARGUMENTS))
        if not same or call.malformed_arguments is not None:
            return CallMade(call.name, arguments, _MISSING, ResultOrigin.MISSING, is_error=True)
        known = same.pop(0) if len(same) > 1 else same[0]
        return CallMade(call.name, arguments, known.result, ResultOrigin.RECORD, known.is_error)


def _canonical(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=list)


@dataclass(slots=True)
class ReplayDialog:
    """What is said to a model, and what has come of it so far.

    Attributes:
        tools: What it may call; none of them runs. Those that its server runs are left out.
        max_steps: How often it may call before it has to answer.
        billed: What each call of the model took.
    """

    llm: ChatLLM
    tools: Mapping[str, Tool]
    results: RecordedResults
    budgets: Budgets
    max_steps: int = 10
    billed: list[ModelCall] = field(default_factory=list)
    _usages: list[TokenUsage] = field(default_factory=list)
    _costs: list[int | None] = field(default_factory=list)
    _calls: list[CallMade] = field(default_factory=list)
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
            models=tuple(dict.fromkeys(each.model for each in self.billed)),
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
        self.billed.append(self.budgets.price(name, response.usage or TokenUsage(0, 0)))
        return response

    def _find_final(self, made: Sequence[CallMade]) -> CallMade | None:
        finals = [name for name, tool in self.tools.items() if tool.is_final]
        return next((each for each in made if each.name in finals and not each.is_error), None)


def _text_of(response: ChatResponse) -> str:
    text = with_sources(response.text, response.sources, None)
    if is_blank(text):
        raise LLMError("the model gave an empty answer")
    return text


def _as_step(number: int, response: ChatResponse, made: Sequence[CallMade]) -> ActionStep:
    results: list[Any] = [
        ToolResult(call.id, each.result, each.is_error) for call, each in zip(response.tool_calls, made, strict=True)
    ]
    step = ActionStep(number, tool_calls=response.tool_calls, tool_results=results)
    step.set_values_from_dict({"model_output": response.text or None, "model_items": list(response.items) or None})
    return step
