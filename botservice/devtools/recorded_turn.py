"""What is recorded of a turn: what its model was sent, what its tools gave, and what came of it."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botservice.agent.prompt import Prompt
from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import listed, match_results, readable
from botservice.conversation.steps import ActionStep, FailedStep, FinalAnswerStep, PlanningStep, TaskStep
from botservice.conversation.sub_runs import usage_of
from botservice.core.errors import BotServiceError
from botservice.core.messages import TokenUsage, ToolCall
from botservice.core.personas import prompt_of
from botservice.devtools.conversations import TurnRecord, read_turns
from botservice.devtools.queries import check_context
from botservice.devtools.replayed_answers import ReplayedAnswer, ReplayedCall, ResultOrigin
from botservice.llm.chat import ChatMessage
from botservice.people.budgets import Budgets
from botservice.storage.database import Storage


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn, from one of the calls of its model on.

    Attributes:
        call: Which call, counted from 1; calls says how many there are. Plans are no calls here.
        sections: The place of each part's first message in the prompt, and the one after its last.
        tool_calls: All of the turn, with their results.
        steps: What was done from that call on.
        own_prompt: What stands in place of the agent's prompt in that conversation, if something does.
    """

    context_id: int
    turn_id: int
    task: str
    call: int
    calls: int
    prompt: Sequence[ChatMessage]
    sections: Mapping[str, Sequence[int]]
    tool_calls: Sequence[ReplayedCall]
    steps: Sequence[MemoryItem]
    own_prompt: str | None = None

    def answer(self, budgets: Budgets, known: Sequence[str] = ()) -> ReplayedAnswer:
        """Return the recorded answer, without the usage of sub-agents, which are not asked again."""
        asked = [each for each in self.steps if each.get_value("model_input_messages")]
        own = [each for each in asked if isinstance(each.get_value("token_usage"), TokenUsage)]
        costs = [cost_of(budgets, each.get_value("model"), each.get_value("token_usage"), known) for each in own]
        final = next((each for each in self.steps if isinstance(each, FinalAnswerStep)), None)
        failed = next((each.error for each in reversed(self.steps) if isinstance(each, FailedStep)), None)
        return ReplayedAnswer(
            "" if final is None else readable(final.output),
            tuple(dict.fromkeys(str(name) for each in asked if (name := each.get_value("model")))),
            len(asked),
            usage_of([PlanningStep("", token_usage=each.get_value("token_usage")) for each in own]),
            sum(each or 0 for each in costs) if costs and None not in costs else None,
            tuple(_calls(self.steps)),
            _seconds(self.steps),
            None if final is not None else f"there is no answer{'' if failed is None else f': {failed}'}",
        )


Rebuild = Callable[[], Awaitable[Prompt | None]]
"""Builds the prompt of a turn again, or returns None if it would be another one by now."""


async def read_record(
    storage: Storage, context_id: int, turn_id: int, call: int = 1, *, rebuild: Rebuild | None = None
) -> RecordedTurn:
    """Return what is recorded of a turn from one of the calls of its model on.

    Args:
        rebuild: Where no model answered, so that no prompt was recorded.

    Raises:
        BotServiceError: its model was not asked so often, or what it was sent is not kept.
    """
    turn = (await read_turns(storage, context_id, turn_id))[0]
    metadata = await storage.read(lambda connection: check_context(connection, context_id).metadata)
    prompted = [each.get_value("model_input_messages") and not isinstance(each, PlanningStep) for each in turn.steps]
    asked = [place for place, has_prompt in enumerate(prompted) if has_prompt]
    if asked:
        if not 1 <= call <= len(asked):
            times = "once" if len(asked) == 1 else f"{len(asked)} times"
            raise BotServiceError(f"the model was asked {times} in turn {turn_id}: there is no call {call}")
        steps = turn.steps[asked[call - 1] :]
        prompt, sections = steps[0].get_value("model_input_messages"), steps[0].get_value("prompt_sections") or {}
    else:
        built = await rebuild() if rebuild is not None and turn.compacted_at is None else None
        if built is None:
            raise BotServiceError(_why_not(turn))
        steps, prompt, sections = turn.steps, built, built.sections()
    return RecordedTurn(
        context_id,
        turn.id,
        next((each.task for each in turn.steps if isinstance(each, TaskStep)), ""),
        call,
        len(asked) or 1,
        thawed(prompt),
        sections,
        tuple(_calls(turn.steps)),
        steps,
        prompt_of(metadata or {}),
    )


def cost_of(budgets: Budgets, model: str | None, usage: TokenUsage, known: Sequence[str] = ()) -> int | None:
    """Return what a call cost, in billionths of the currency, or None if no price is known."""
    names = [str(model or "unknown"), *(each for each in known if str(model).startswith(each))]
    name = next((each for each in names if budgets.has_price(each)), None)
    return None if name is None else budgets.price(name, usage).cost


def thawed(messages: Any) -> list[ChatMessage]:
    """Return copies of recorded messages as plain values."""
    plain: list[ChatMessage] = json.loads(json.dumps(messages))
    return plain


def _why_not(turn: TurnRecord) -> str:
    if turn.compacted_at is not None:
        return f"what turn {turn.id} sent to its model is not kept any more: KEEP_STEPS_DAYS keeps it longer"
    return f"no model answered in turn {turn.id}, so there is no prompt in its record to ask with again"


def _calls(steps: Sequence[MemoryItem]) -> Iterator[ReplayedCall]:
    for step in steps:
        if not isinstance(step, ActionStep):
            continue
        calls = [each for each in listed(step.tool_calls) if isinstance(each, ToolCall)]
        for call, result in zip(calls, match_results(calls, step.tool_results), strict=True):
            if result is not None:
                arguments = json.loads(json.dumps(call.arguments))
                yield ReplayedCall(call.name, arguments, result.text, ResultOrigin.MADE, result.is_error)


def _seconds(steps: Sequence[MemoryItem]) -> float | None:
    timings = [each.get_value("timing") for each in steps]
    known = [each for each in timings if isinstance(each, Timing) and each.end_time is not None]
    if not known:
        return None
    return max((each.end_time or each.start_time) for each in known).timestamp() - known[0].start_time.timestamp()
