"""What a step's record is in short, and that nothing of it is lost."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.conversation.field_codec import dumps, loads
from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.step_data import lengthen_facts, shorten_facts
from botservice.conversation.steps import ActionStep, FinalAnswerStep
from botservice.core.messages import TokenUsage

START = datetime(2026, 11, 23, 6, 13, 39, 968_285, tzinfo=UTC)
USUAL = {
    "prompt_sections": {"system": (0, 1), "window": (1, 21), "found": (21, 22), "question": (22, 23)},
    "timing": Timing(START, START + timedelta(seconds=2)),
    "model_attempts": [{"began": 0.0, "asked": 0.01, "ended": 0.5}],
    "prompt_facts": {
        "max_tokens": 100_000,
        "found": [[567, 2.8512], [3, 0.1]],
        "left_out": {"window": 2},
        "tools": [],
        "coverage": 0.43,
        "by_meaning": True,
    },
    "token_usage": TokenUsage(1425, 26, cached_tokens=0, reasoning_tokens=12),
    "model": "gpt",
    "finish_reason": "stop",
}
UNUSUAL = {
    "prompt_sections": {"system": (0, 1), "mine": (1, 2)},
    "timing": Timing(START.astimezone(timezone(timedelta(hours=2)))),
    "model_attempts": [{"began": 0.0, "error": "TimeoutError: late"}],
    "prompt_facts": {"max_tokens": 100, "found": [["a note", 1.0]], "left_out": {}},
    "token_usage": "much",
    "model": "half \ud800\udc00 a name",
    "finish_reason": "content_filter",
}


def kept(step):
    """Return a step as its row keeps it, and what is read from that."""
    record = step.to_dict()
    text = dumps(shorten_facts(record))
    assert lengthen_facts(loads(text)) == record
    return text, MemoryItem.from_dict(lengthen_facts(loads(text)))


def test_an_ordinary_step_takes_little_space_and_comes_back():
    step = FinalAnswerStep("yes", **USUAL)
    text, again = kept(step)
    assert again == step
    assert len(text) < 0.5 * len(step.to_json())


@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("beside", [{}, USUAL], ids=["alone", "beside others"])
def test_what_is_not_of_the_usual_shape_comes_back_too(name, beside):
    step = FinalAnswerStep("yes", **{**beside, name: UNUSUAL[name]})
    assert kept(step)[1] == step


@pytest.mark.parametrize("sections", [{"window": (0, 2), "system": (2, 3)}, {"system": (0, 1), "window": (2, 3)}])
def test_sections_in_another_order_or_with_something_between_them_come_back(sections):
    assert kept(FinalAnswerStep("yes", prompt_sections=sections))[1].prompt_sections == sections


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)) | st.none())
def test_every_time_comes_back_exactly(start, end):
    step = FinalAnswerStep("yes", timing=Timing(start, end))
    assert kept(step)[1].timing == step.timing


@given(st.lists(st.tuples(st.integers(0, 2**62), st.floats(allow_nan=False, allow_infinity=False))))
def test_every_score_comes_back_exactly(found):
    facts = {"max_tokens": 5, "found": [[number, score] for number, score in found], "left_out": {}, "tools": ["add"]}
    assert kept(FinalAnswerStep("yes", prompt_facts=facts))[1].prompt_facts == facts


def test_earlier_releases_read_the_answer():
    record = loads(kept(FinalAnswerStep("yes", **USUAL))[0])
    step = MemoryItem.from_dict(record)  # as they do
    assert step.output == "yes"
    assert "found" not in step.prompt_facts


def test_earlier_releases_that_write_an_action_anew_lose_nothing_of_what_it_took():
    record = loads(kept(ActionStep(1, **USUAL))[0])
    step = MemoryItem.from_dict(record)  # as they do
    assert (step.token_usage, step.model, step.finish_reason) == (USUAL["token_usage"], "gpt", "stop")


@pytest.mark.parametrize(
    "short", [1, "s", None, [], {"s": "x"}, {"f": []}, {"t": [10**30]}, {"a": [[1]]}, {"u": 1}, {"r": 9}]
)
def test_what_looks_short_and_is_not_stays_as_it_is(short):
    record = {"kind": "task", "prompt_facts": {"short": short}}
    assert lengthen_facts(record) == record
