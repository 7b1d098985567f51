import asyncio
import functools
import logging

import pytest

from botservice.conversation.callbacks import StepCallbacks
from botservice.conversation.field_values import CallbackFailure
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep, FinalAnswerStep, MemoryStep, TaskStep
from botservice.core.errors import InvalidField

AGENT = object()


async def calls_of(make, step=None):
    """Return the arguments with which a callback that writes them down was called."""
    seen = []
    assert await StepCallbacks([make(seen)]).run(step or ActionStep(1), AGENT) == []
    return seen


async def test_a_list_is_for_action_steps_only():
    seen = []
    callbacks = StepCallbacks([seen.append])
    for step in (TaskStep("x"), ActionStep(1), FinalAnswerStep("y"), MemoryItem()):
        await callbacks.run(step, AGENT)
    assert seen == [ActionStep(1)]


async def test_a_dict_is_for_classes_most_specific_first():
    class Probe(ActionStep):
        pass

    order = []
    callbacks = StepCallbacks(
        {
            MemoryStep: lambda _: order.append("step"),
            Probe: [lambda _: order.append("probe"), lambda _: order.append("probe again")],
            ActionStep: lambda _: order.append("action"),
            TaskStep: lambda _: order.append("task"),
        }
    )
    await callbacks.run(Probe(1), AGENT)
    assert order == ["probe", "probe again", "action", "step"]


async def test_no_callbacks_are_fine():
    for nothing in (None, [], {}, (), {ActionStep: []}):
        assert await StepCallbacks(nothing).run(ActionStep(1), AGENT) == []


class Recorder:
    def __init__(self, seen):
        self.seen = seen

    def one(self, step):
        self.seen.append((step,))

    def __call__(self, step, agent):
        self.seen.append((step, agent))


class AsyncRecorder(Recorder):
    async def __call__(self, step, agent):
        self.seen.append((step, agent))


def wrapped(function):
    @functools.wraps(function)
    def outer(*args, **kwargs):
        return function(*args, **kwargs)

    return outer


def keyword_only(seen):
    def callback(step, *, agent):
        seen.append((step, agent))

    return callback


def optional_agent(seen):
    def callback(step, agent=None):
        seen.append((step, agent))

    return callback


def loop_variable(seen):
    def callback(step, seen=seen):
        seen.append((step,))

    return callback


def async_one(seen):
    async def callback(step):
        seen.append((step,))

    return callback


@pytest.mark.parametrize(
    "make",
    [
        Recorder,
        AsyncRecorder,
        keyword_only,
        optional_agent,
        lambda seen: lambda step, whatever: seen.append((step, whatever)),
        lambda seen: lambda *args: seen.append(args),
        lambda seen: functools.partial(lambda x, step, agent: seen.append((step, agent)), 1),
        lambda seen: wrapped(lambda step, agent: seen.append((step, agent))),
    ],
)
async def test_a_callback_of_two_gets_the_agent(make):
    assert await calls_of(make) == [(ActionStep(1), AGENT)]


@pytest.mark.parametrize(
    "make",
    [
        lambda seen: Recorder(seen).one,
        async_one,
        loop_variable,
        lambda seen: lambda step: seen.append((step,)),
        lambda seen: lambda agent: seen.append((agent,)),
        lambda seen: wrapped(lambda step: seen.append((step,))),
        lambda seen: functools.partial(lambda step, agent: seen.append((step,)), agent="mine"),
        lambda seen: lambda step, **kwargs: seen.append((step,)),
    ],
)
async def test_a_callback_of_one_gets_the_step(make):
    assert await calls_of(make) == [(ActionStep(1),)]


async def test_builtins_and_classes_are_callbacks_too():
    seen = []
    assert await StepCallbacks([seen.append, repr, id, str, print]).run(ActionStep(1), AGENT) == []
    assert seen == [ActionStep(1)]


async def test_what_a_callback_changes_is_on_the_step():
    def mark(step):
        step.observations = f"{step.observations} ALERT"

    step = ActionStep(1, observations="x")
    await StepCallbacks(mark).run(step, AGENT)
    assert step.observations == "x ALERT"


async def test_one_that_raises_is_logged_and_reported_and_loses_nothing(caplog):
    def broken(step):
        raise ValueError("boom")

    async def broken_later(step, agent):
        await asyncio.sleep(0)
        raise KeyError("later")

    seen = []
    with caplog.at_level(logging.ERROR):
        failures = await StepCallbacks([broken, broken_later, seen.append]).run(ActionStep(1), AGENT)
    assert [(failure.type, failure.message) for failure in failures] == [
        ("ValueError", "boom"),
        ("KeyError", "'later'"),
    ]
    assert "broken" in failures[0].callback
    assert seen == [ActionStep(1)]
    assert [record.getMessage() for record in caplog.records] == ["step_callback_failed"] * 2
    assert all(record.exc_info for record in caplog.records)


async def test_a_failure_can_be_kept_on_a_step():
    step = ActionStep(1, callback_failures=[CallbackFailure("log", "ValueError", "boom")])
    assert ActionStep.from_json(step.to_json()) == step


async def test_a_refused_change_is_a_failure_like_any_other():
    def wrong(step):
        step.tags = {1, 2}

    step = ActionStep(1)
    [failure] = await StepCallbacks([wrong]).run(step, AGENT)
    assert failure.type == "InvalidField"
    assert step == ActionStep(1)


async def test_a_cancellation_passes():
    def cancelled(step):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await StepCallbacks([cancelled]).run(ActionStep(1), AGENT)


@pytest.mark.parametrize(
    "wrong",
    [
        "log",
        3,
        ["log"],
        [None],
        {"ActionStep": print},
        {int: print},
        {ActionStep: 3},
        {ActionStep: None},
        {ActionStep: ["log"]},
        {ActionStep(1).to_json(): print},
        [lambda: None],
        [lambda a, b, c: None],
        [lambda step, *, more: None],
    ],
)
def test_what_cannot_be_a_callback_is_refused_at_once(wrong):
    with pytest.raises(InvalidField, match="step_callbacks"):
        StepCallbacks(wrong)
