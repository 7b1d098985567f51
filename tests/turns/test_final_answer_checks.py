"""Answers that have to pass checks before anybody sees them."""

import asyncio

import pytest
from turns.bots import add, call, counting, make_service

from botservice import ActionStep, FailedStep, FinalAnswerStep, InvalidField, LLMError, RunState, TaskStep, tool

pytestmark = pytest.mark.any_database


def has_a_number(answer):
    return any(sign.isdigit() for sign in answer)


async def is_short(answer, memory):
    assert isinstance(memory.steps[0], TaskStep)
    return "it is longer than 20 characters" if len(answer) > 20 else None


def is_honest(final_answer, memory, agent):
    assert agent.memory is memory
    if "guess" in final_answer:
        raise ValueError("it is a guess")


class IsPolite:
    def __call__(self, answer, *, agent):
        return "please" in answer or not agent.memory.is_empty()


CHECKS = [has_a_number, is_short, is_honest, IsPolite()]


async def test_an_answer_that_fails_goes_back_to_the_model_before_anybody_sees_it(context, storage):
    script = ["many", "I believe it to be 6765 or so", "I guess 3", "6765"]
    service, llm = make_service(storage, script, final_answer_checks=CHECKS)
    run = await service.start(context, "the 20th?")
    steps = []
    while run.answer is None:
        steps.append(await run.step())
    assert [type(step) for step in steps] == [ActionStep] * 3 + [FinalAnswerStep]
    assert [step.step_number for step in steps[:3]] == [1, 2, 3]
    reasons = [
        "has_a_number failed.",
        "is_short failed: it is longer than 20 characters.",
        "is_honest failed: ValueError: it is a guess.",
    ]
    for step, said, reason in zip(steps, script, reasons, strict=False):
        assert step.model_output == said
        assert reason in step.observations
        assert step.error.type == "FinalAnswerCheckError"
        assert step.token_usage.total_tokens > 0
        assert step.timing.duration_seconds >= 0
        assert step.model_input_messages
    assert [message.text for message in await context.chat_history.messages()] == ["the 20th?", "6765"]
    last = llm.prompts[-1][-2:]
    assert last[0] == {"role": "assistant", "content": "I guess 3"}
    assert last[1]["role"] == "user"
    assert "it is a guess" in last[1]["content"]
    assert run.result.state is RunState.SUCCESS


async def test_without_checks_nothing_is_asked(context, storage):
    service, llm = make_service(storage, ["x"])
    assert (await service.prompt(context, "go")).text == "x"
    assert len(llm.prompts) == 1


async def test_refused_answers_are_bounded_by_max_steps_and_the_last_one_is_checked_too(context, storage):
    service, llm = make_service(storage, lambda _: "none", max_steps=2, final_answer_checks=[has_a_number])
    run = await service.start(context, "go")
    answer = await run.finish()
    assert "none" not in answer.text
    assert "passes its checks" in answer.text
    assert len(llm.prompts) == 3
    assert llm.tools[-1] == []
    kinds = [type(step) for step in run.memory.steps[1:]]
    assert kinds == [ActionStep, ActionStep, FailedStep, FailedStep, FinalAnswerStep]
    assert run.memory.steps[-2].model_output == "none"
    assert run.result.state is RunState.MAX_STEPS_ERROR


async def test_what_a_final_tool_gave_is_checked_and_taken_back(context, storage):
    @tool(is_final=True)
    async def hand_in(number: int) -> int:
        """Hand the result in."""
        return number

    script = [call("hand_in", number=3), call("hand_in", number=4)]
    checks = [lambda answer: answer == 4]
    service, llm = make_service(storage, script, tools=[hand_in], final_answer_checks=checks)
    run = await service.start(context, "go")
    assert (await run.step()).is_final_answer
    assert not (await context.chat_history.messages())[1:]
    run = await service.resume(context)
    assert (await run.finish()).text == "4"
    assert [step.is_final_answer for step in context.completed_steps] == [False, True]
    assert "Check <lambda> failed" in llm.prompts[-1][-1]["content"]
    assert llm.prompts[-1][-1]["role"] == "tool"


async def test_nothing_is_shown_of_an_answer_until_it_has_passed(context, storage):
    service, _ = make_service(storage, ["no", "yes 1"], final_answer_checks=[has_a_number])
    run = await service.start(context, "go")
    assert [piece async for piece in run.stream()] == ["yes 1"]


async def test_what_was_said_and_not_checked_is_not_kept_by_a_stop(context, storage):
    service, _ = make_service(storage, ["no"], final_answer_checks=[lambda answer, agent: agent.interrupt()])
    run = await service.start(context, "go")
    with pytest.raises(Exception, match="stopped"):
        await run.finish()
    assert [message.text for message in await context.chat_history.messages()] == ["go"]
    assert run.result.state is RunState.INTERRUPTED
    assert run.result.output is None


@pytest.mark.parametrize("check", ["no function", lambda: True, lambda a, b, c, d: True])
def test_what_cannot_check_an_answer_is_refused(check):
    with pytest.raises(InvalidField, match="final_answer_checks"):
        make_service(None, ["x"], final_answer_checks=[check])


@pytest.mark.parametrize("value", [True, None, 1, "", [0]])
async def test_what_says_nothing_against_an_answer_lets_it_pass(context, storage, value):
    service, _ = make_service(storage, ["x"], final_answer_checks=[lambda answer: value])
    assert (await service.prompt(context, "go")).text == "x"


async def test_the_result_of_a_run_says_state_tokens_timing_and_steps(context, storage):
    service, _ = make_service(storage, counting(2))
    run = await service.start(context, "go")
    assert run.result is None
    await run.step()
    assert run.result is None
    run = await service.resume(context)
    await run.finish()
    result = run.result
    assert (result.output, result.state, result.state) == ("done", RunState.SUCCESS, "success")
    assert [type(step) for step in result.steps] == [TaskStep, ActionStep, ActionStep, FinalAnswerStep]
    assert result.token_usage.total_tokens == sum(step.token_usage.total_tokens for step in result.steps[1:])
    assert result.timing.duration_seconds > 0


async def test_the_result_of_a_run_whose_model_stays_away_is_an_error_until_it_is_tried_again(context, storage):
    service, _ = make_service(storage, [call("add", a=1, b=1), *[LLMError("down")] * 3, "ok"], tools=[add])
    run = await service.start(context, "go")
    await run.step()
    with pytest.raises(LLMError):
        await run.step()
    assert run.result.state is RunState.ERROR
    await run.finish()
    assert run.result.state is RunState.SUCCESS


async def test_a_tool_is_called_as_often_as_it_may_be_for_one_prompt(context, storage):
    called = []

    @tool(max_calls=2)
    async def search(word: str) -> str:
        """Search."""
        called.append(word)
        return word

    script = [
        call("search", word="a"),
        [call("search", word="b"), call("search", word="c")],
        call("search", word="d"),
        "done",
    ]
    service, _ = make_service(storage, [*script, call("search", word="e"), "done"], tools=[search])
    run = await service.start(context, "go")
    await run.step()
    run = await service.resume(context)
    await run.finish()
    assert called == ["a", "b"]
    texts = [result.text for step in context.completed_steps for result in step.tool_results]
    assert texts[:2] == ["a", "b"]
    assert set(texts[2:]) == {"Error: search may be called 2 times for one prompt, and was; go on without it"}
    assert context.completed_steps[1].error.type == "ToolError"
    await service.prompt(context, "again")
    assert called == ["a", "b", "e"]


async def test_a_run_is_streamed_in_pieces_with_the_answer_at_the_end(context, storage):
    script = [["Let me add. ", call("add", a=1, b=1)], LLMError("down"), "It is two."]
    service, _ = make_service(storage, script)
    run = await service.start(context, "1 + 1?")
    pieces = [piece async for piece in run.stream()]
    assert pieces == ["Let ", "me ", "add. ", "\n\nIt ", "is ", "two."]
    assert run.answer.text == "It is two."
    assert [piece async for piece in run.stream()] == ["It is two."]


async def test_a_stream_ends_with_what_a_final_tool_gave_and_raises_what_a_step_raises(context, storage):
    @tool(is_final=True)
    async def hand_in() -> str:
        """Hand it in."""
        return "handed in"

    service, _ = make_service(storage, [["Now. ", call("hand_in")], *[LLMError("down")] * 3], tools=[hand_in])
    run = await service.start(context, "go")
    assert [piece async for piece in run.stream()] == ["Now. ", "\n\nhanded in"]
    run = await service.start(context, "go")
    with pytest.raises(LLMError):
        async for _ in run.stream():
            pass


async def test_whoever_stops_listening_leaves_the_turn_open(context, storage):
    waits = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        await waits.wait()

    service, _ = make_service(storage, [["Now. ", call("wait")], "done"], tools=[wait])
    run = await service.start(context, "go")
    stream = run.stream()
    assert await anext(stream) == "Now. "
    await stream.aclose()
    run = await service.resume(context)
    assert (await run.finish()).text == "done"


async def test_what_a_final_tool_gave_is_the_answer_although_a_callback_takes_its_step_away(context, storage):
    @tool(is_final=True)
    async def hand_in(number: int) -> int:
        """Hand the result in."""
        return number

    def clear(step, agent):
        if isinstance(step, ActionStep):
            agent.memory.steps.clear()

    service, llm = make_service(storage, [call("hand_in", number=3)], tools=[hand_in], step_callbacks=[clear])
    assert (await service.prompt(context, "go")).text == "3"
    assert len(llm.prompts) == 1
