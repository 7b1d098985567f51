"""Running cases: each is asked once, and its answer compared with what was expected."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from botservice.again.answers import Answer
from botservice.again.asking import ask_again, model_of
from botservice.again.changes import Changes
from botservice.again.model_loop import Talk, models_asked
from botservice.again.record import cost_of
from botservice.again.recorded_results import RecordedResults
from botservice.errors import BotServiceError
from botservice.evaluation.cases import Case, Suite
from botservice.evaluation.judge import judge
from botservice.evaluation.prompts import build
from botservice.evaluation.rules import find_failures
from botservice.llm.chat import ChatLLM
from botservice.llm.demo import DemoChatLLM
from botservice.policies import NANO
from botservice.service import AgentService
from botservice.storage import Storage

FindContext = Callable[[Storage, str], Awaitable[int]]
"""Returns the id of the conversation that a text means."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case.

    Attributes:
        then: What was answered in the past turn that the case is; None for others.
        failures: What is not as it was expected, each in a line, or none if the case passes.
        judging_cost: What the judge took, in billionths of the currency.
    """

    name: str
    answer: Answer
    failures: tuple[str, ...] = ()
    then: Answer | None = None
    judging_cost: int = 0

    @property
    def passes(self) -> bool:
        """Whether everything is as it was expected."""
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values; costs in the currency."""
        return {
            "name": self.name,
            "passes": self.passes,
            "failures": list(self.failures),
            "answer": self.answer.as_dict(),
            "then": self.then and self.then.as_dict(),
            "judging_cost": self.judging_cost / NANO,
        }


@dataclass(frozen=True, slots=True)
class Means:
    """The models and prompts that cases are run with.

    Attributes:
        new_number: Makes up what a verdict has to name.
    """

    service: AgentService
    llm: ChatLLM | None = None
    judge: ChatLLM | None = None
    storage: Storage | None = None
    find_context: FindContext | None = None
    new_number: Callable[[], str] = field(default=lambda: secrets.token_hex(8))


async def evaluate(
    suite: Suite,
    service: AgentService,
    *,
    prompt: str | None = None,
    llm: ChatLLM | None = None,
    judge: ChatLLM | None = None,
    storage: Storage | None = None,
    find_context: FindContext | None = None,
) -> list[CaseResult]:
    """Ask every case of a suite, one after the other, and return what came of each. No tool runs.

    Args:
        prompt: In the place of the agent's and of the suite's.
        llm: Which model is asked; by default the agent's. The name in the suite is the caller's to follow.
        judge: Which model judges; by default the agent's.
        storage: Where past turns are recorded; by default the service's.
        find_context: Says which conversation the cases of past turns mean; by default by its number.

    Raises:
        BotServiceError: a case cannot be asked, such as a turn that is not there.
    """
    means = Means(service, llm, judge or getattr(service.agent, "llm", None), storage, find_context)
    if suite.needs_judge:
        check_judge(means.judge)
    changes = Changes(prompt if prompt is not None else suite.prompt)
    return [await _run(case, changes, means) for case in suite.cases]


def check_judge(llm: ChatLLM | None) -> None:
    """Check that a model can judge.

    Raises:
        BotServiceError: there is none; it says what to do.
    """
    if llm is None or isinstance(llm, DemoChatLLM):
        raise BotServiceError(
            "a case asks for a judge, and there is no model to judge: set OPENAI_API_KEY or OPENAI_BASE_URL, or take "
            "judge: out of what is expected"
        )


async def _run(case: Case, changes: Changes, means: Means) -> CaseResult:
    try:
        result, question = await (_ask_past if case.turn is not None else _ask)(case, changes, means)
    except BotServiceError as error:
        raise BotServiceError(f"case {case.name!r}: {error}") from error
    failures = await asyncio.to_thread(find_failures, result.answer, case.expect)
    if case.expect.judge is None or result.answer.error is not None or means.judge is None:
        return replace(result, failures=tuple(failures))
    verdict = await judge(means.judge, case.expect.judge, question, result.answer.text, means.new_number())
    usage = None if verdict.response is None else verdict.response.usage
    model = None if verdict.response is None else verdict.response.model
    budgets = means.service.options.budgets
    cost = None if usage is None else cost_of(budgets, model, usage, models_asked(means.judge))
    failures += [] if verdict.failure is None else [verdict.failure]
    return replace(result, failures=tuple(failures), judging_cost=cost or 0)


async def _ask_past(case: Case, changes: Changes, means: Means) -> tuple[CaseResult, str]:
    """Ask a past turn again; return the answer and the question."""
    storage = means.storage or means.service.storage
    if storage is None or case.turn is None:
        raise BotServiceError("there is no storage with past turns: give storage=")
    context_id = await (means.find_context or _by_number)(storage, case.context)
    compared = await ask_again(
        means.service, context_id, case.turn, changes, call=case.call, llm=means.llm, storage=storage
    )
    return CaseResult(case.name, compared.again, then=compared.then), compared.task


async def _ask(case: Case, changes: Changes, means: Means) -> tuple[CaseResult, str]:
    """Ask a question of the file; return the answer and the question."""
    service = means.service
    prompt, tools = await build(service.agent, case, changes)
    results = RecordedResults.of(call for call, is_for_all in case.tools if not is_for_all)
    for call, is_for_all in case.tools:
        if is_for_all:
            results.add_for_all(call)
    llm = means.llm or model_of(service.agent)
    talk = Talk(llm, tools, results, service.options.budgets, service.options.max_steps)
    asked = case.question or str(case.messages[-1].get("content"))
    return CaseResult(case.name, await talk.ask(prompt)), asked


async def _by_number(_: Storage, context: str) -> int:
    if not context.isdecimal():
        raise BotServiceError(f"{context!r} is no number of a conversation")
    return int(context)


def total_cost(results: Sequence[CaseResult]) -> int | None:
    """Return what everything cost together, judging too, or None if no price of an answer is known."""
    costs = [each.answer.cost for each in results if each.answer.cost is not None]
    return sum(costs) + sum(each.judging_cost for each in results) if costs else None
