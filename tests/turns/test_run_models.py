import pytest

from botservice import (
    AgentContext,
    AgentService,
    ChatResponse,
    LLMError,
    RetryPolicy,
    ScriptedChatLLM,
    TaskStep,
    TokenUsage,
)
from botservice.texts import in_language
from tests.turns.bots import call, counting, make_service

pytestmark = pytest.mark.any_database

BROKEN = LLMError("down")


async def test_a_model_that_fails_for_a_moment_is_asked_again(context, storage):
    service, llm = make_service(storage, [BROKEN, BROKEN, "ok"])
    assert (await service.prompt(context, "go")).text == "ok"
    assert llm.prompts[0] == llm.prompts[1] == llm.prompts[2]
    assert [message.text for message in await context.chat_history.messages()] == ["go", "ok"]


async def test_a_model_that_stays_away_raises_and_the_message_is_kept_once(context, storage):
    service, llm = make_service(storage, [BROKEN] * 3 + ["ok"])
    with pytest.raises(LLMError, match="down"):
        await service.prompt(context, "go")
    assert len(llm.prompts) == 3
    assert [message.text for message in await context.chat_history.messages()] == ["go"]
    run = await service.resume(context)
    assert (await run.finish()).text == "ok"
    assert [message.text for message in await context.chat_history.messages()] == ["go", "ok"]
    steps = (await context.load_memory()).steps
    assert [type(step).__name__ for step in steps] == ["TaskStep", "FailedStep", "FinalAnswerStep"]


async def test_the_next_prompt_after_a_failure_is_a_turn_of_its_own(context, storage):
    service, _ = make_service(storage, [BROKEN] * 3 + ["ok"])
    with pytest.raises(LLMError):
        await service.prompt(context, "one")
    assert (await service.prompt(context, "two")).text == "ok"
    assert await service.resume(context) is None


async def test_a_step_that_failed_may_be_tried_again(context, storage):
    service, _ = make_service(storage, [call("add", a=1, b=1), *[BROKEN] * 3, "ok"])
    run = await service.start(context, "go")
    await run.step()
    with pytest.raises(LLMError):
        await run.step()
    assert (await run.finish()).text == "ok"
    assert [step.step_number for step in context.completed_steps] == [1]


async def test_what_is_not_transient_is_not_tried_again(context, storage):
    service, llm = make_service(storage, [LLMError("wrong key", is_transient=False), "never"])
    with pytest.raises(LLMError, match="wrong key"):
        await service.prompt(context, "go")
    assert len(llm.prompts) == 1


async def test_the_time_that_other_models_took_counts_among_the_tries(context, storage):
    service, llm = make_service(storage, [LLMError("down", failed_for_seconds=60.0), "never"])
    with pytest.raises(LLMError, match="down"):
        await service.prompt(context, "go")
    assert len(llm.prompts) == 1


async def test_an_error_of_foreign_code_is_an_error_of_the_model(context, storage):
    service, _ = make_service(storage, [ZeroDivisionError("x")] * 3)
    with pytest.raises(LLMError, match="ZeroDivisionError"):
        await service.prompt(context, "go")


async def test_an_empty_answer_is_a_failure(context, storage):
    service, _ = make_service(storage, ["", " \n", "ok"])
    assert (await service.prompt(context, "go")).text == "ok"


@pytest.mark.parametrize("blank", ["\u200b", "\u2800", "\ufeff\n", "\u200d \u2060", "\u3164\ufe0f"])
async def test_an_answer_in_which_nothing_can_be_seen_is_a_failure(context, storage, blank):
    service, _ = make_service(storage, [blank, blank, "ok"])
    assert (await service.prompt(context, "go")).text == "ok"
    assert [message.text for message in await context.chat_history.messages()] == ["go", "ok"]
    service.agent.llm = ScriptedChatLLM([blank] * 3)
    with pytest.raises(LLMError, match="empty answer"):
        await service.prompt(context, "and now")
    assert [message.text for message in await context.chat_history.messages()] == ["go", "ok", "and now"]


@pytest.mark.parametrize("text", ["👩\u200d🚒", "❤\ufe0f", "\u200bok", "क्\u200dष", "\u2800\u2800⠁"])
async def test_an_answer_with_letters_or_pictures_stands_as_it_was_written(context, storage, text):
    service, llm = make_service(storage, [text])
    assert (await service.prompt(context, "go")).text == text
    assert len(llm.prompts) == 1


@pytest.mark.parametrize("said", ["", " ", "\u200b"])
async def test_whoever_only_calls_tools_when_steps_are_used_up_is_spoken_for(context, storage, said):
    script = [call("add", a=1, b=1), ChatResponse(said, (call("add", "x", a=2, b=2),))]
    service, _ = make_service(storage, script, max_steps=1)
    assert (await service.prompt(context, "go")).text == in_language("answer.steps_used_up", "en")


async def test_a_failure_while_planning_or_finishing_is_tried_again(context, storage):
    script = [BROKEN, "a plan", BROKEN, call("add", a=1, b=1), BROKEN, "ok"]
    service, _ = make_service(storage, script, max_steps=1, planning_interval=9)
    assert (await service.prompt(context, "go")).text == "ok"


async def test_the_time_for_retries_is_limited(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    service, llm = make_service(sqlite_storage, [BROKEN] * 3)
    no_time = RetryPolicy(max_attempts=9, first_delay_seconds=1.0, max_delay_seconds=1.0, total_seconds=0.5)
    service = AgentService(agent=service.agent, storage=sqlite_storage, model_retries=no_time)
    with pytest.raises(LLMError):
        await service.prompt(context, "go")
    assert len(llm.prompts) == 1


async def test_a_retry_that_hangs_ends_with_the_time_for_retries(sqlite_storage):
    import asyncio

    async def hang(prompt):
        await asyncio.Event().wait()

    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    service, _ = make_service(sqlite_storage, [BROKEN, hang])
    short = RetryPolicy(max_attempts=9, first_delay_seconds=0.0, max_delay_seconds=0.0, total_seconds=0.02)
    service = AgentService(agent=service.agent, storage=sqlite_storage, model_retries=short)
    with pytest.raises(LLMError, match="in time"):
        await service.prompt(context, "go")


async def test_tokens_are_kept_for_every_step(context, storage):
    script = [
        ChatResponse("", (call("add", "x", a=1, b=1),), TokenUsage(10, 2)),
        ChatResponse("2", usage=TokenUsage(20, 3)),
    ]
    service, _ = make_service(storage, script)
    await service.prompt(context, "go")
    steps = (await context.load_memory()).steps[1:]
    assert [step.token_usage for step in steps] == [TokenUsage(10, 2), TokenUsage(20, 3)]


async def test_prompts_of_one_context_are_answered_in_their_order(context, storage):
    import asyncio

    service, _ = make_service(storage, lambda prompt: f"re: {prompt[-1]['content']}")
    texts = [str(number) for number in range(8)]
    answers = await asyncio.gather(*(service.prompt(context, text) for text in texts))
    assert [answer.text for answer in answers] == [f"re: {text}" for text in texts]
    said = [message.text for message in await context.chat_history.messages()]
    assert said == [each for text in texts for each in (text, f"re: {text}")]


async def test_a_turn_that_was_cut_off_is_finished_before_the_next_prompt(context, storage):
    service, _ = make_service(storage, [*counting(1, "one"), "two"])
    run = await service.start(context, "first")
    await run.step()
    await run.close()
    assert (await service.prompt(context, "second")).text == "two"
    assert [message.text for message in await context.chat_history.messages()] == ["first", "one", "second", "two"]
    assert [type(step).__name__ for step in context.memory.steps] == ["TaskStep", "FinalAnswerStep"]
    assert isinstance(context.memory.steps[0], TaskStep)
