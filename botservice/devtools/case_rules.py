"""Checking an answer against the expectations of a case."""

from collections.abc import Iterator

from botservice.core.policies import NANO
from botservice.devtools.case_languages import language_of
from botservice.devtools.cases import Expectations
from botservice.devtools.replayed_answers import ReplayedAnswer
from botservice.llm.tokens import counter_for


def find_failures(answer: ReplayedAnswer, expect: Expectations) -> list[str]:
    """Return the expectations that an answer does not meet, each in a line. It may block for a moment."""
    if answer.error is not None:
        return [f"no answer: {answer.error}"]
    return [*_of_text(answer.text, expect), *_of_calls(answer, expect), *_of_costs(answer, expect)]


def _of_text(text: str, expect: Expectations) -> Iterator[str]:
    small = text.casefold()
    yield from (f"does not contain {each!r}" for each in expect.contains if each.casefold() not in small)
    yield from (f"contains {each!r}" for each in expect.not_contains if each.casefold() in small)
    yield from (f"does not match {each.text!r}" for each in expect.regex if not each.is_in(text))
    yield from (f"matches {each.text!r}" for each in expect.not_regex if each.is_in(text))
    if expect.language is not None and (found := language_of(text)) != expect.language:
        yield f"is in {found or 'no language that can be told'}, not in {expect.language}"


def _of_calls(answer: ReplayedAnswer, expect: Expectations) -> Iterator[str]:
    called = {each.name for each in answer.tool_calls}
    yield from (f"does not call {each}" for each in expect.calls if each not in called)
    yield from (f"calls {each}" for each in expect.not_calls if each in called)


def _of_costs(answer: ReplayedAnswer, expect: Expectations) -> Iterator[str]:
    if expect.max_tokens is not None:
        tokens = count_said(answer)
        if tokens > expect.max_tokens:
            yield f"takes {tokens:,} tokens, not {expect.max_tokens:,} at most"
    if expect.max_cost is not None:
        if answer.cost is None:
            yield "costs nobody knows what: PRICES says what its model costs"
        elif answer.cost > expect.max_cost * NANO:
            yield f"costs {answer.cost / NANO:.6f}, not {expect.max_cost:g} at most"


def count_said(answer: ReplayedAnswer) -> int:
    """Return how many tokens were written for an answer; where no server says, about how many are in it."""
    if answer.usage is not None:
        return answer.usage.output_tokens
    return counter_for(answer.models[-1] if answer.models else None).count(answer.text)
