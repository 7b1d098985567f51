"""What is kept of how a model was asked: every attempt, with what was sent, offered, found and left out."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update
from standins.payments import Till
from standins.tools import add

from botservice import (
    AgentContext,
    AgentService,
    ApprovalPending,
    FailedStep,
    FunctionsBasedAgent,
    LLMError,
    NoMessages,
    ScriptedChatLLM,
    ToolCall,
)
from botservice.core.messages import TokenUsage
from botservice.devtools.conversations import forget_context, read_turns
from botservice.devtools.turn_queries import read_sums
from botservice.llm.chat import ChatResponse
from botservice.storage.tables.conversations import turn_figures, turns
from botservice.storage.tables.waiting import pending_calls


def service_of(storage, *script, tools=(add,), **options):
    agent = FunctionsBasedAgent(tools=tools, llm=ScriptedChatLLM(list(script)), **options)
    return AgentService(agent, storage)


async def figures_of(storage):
    return await storage.read(lambda connection: connection.execute(select(turn_figures)).all())


async def chat(storage):
    return await AgentContext.get_or_create(storage, {"chat_id": "1"})


@pytest.mark.any_database
async def test_a_step_keeps_when_its_model_was_asked_and_what_was_offered(storage):
    context = await chat(storage)
    await service_of(storage, ToolCall("", "add", {"a": 2, "b": 3}), "It is 5").prompt(context, "2 + 3?")
    task, step, answer = (await AgentContext.load(storage, context.id)).memory.steps
    (attempt,) = step.model_attempts
    assert 0 <= attempt.get("asked", 0) <= attempt["ended"]
    assert "error" not in attempt
    assert step.prompt_facts["tools"] == ("add",)
    assert step.prompt_facts["max_tokens"] == 100_000
    assert step.prompt_facts["left_out"] == {}
    assert answer.prompt_facts is None  # as before
    assert len(answer.model_attempts) == 1
    assert task.get_value("model_attempts") is None


@pytest.mark.any_database
async def test_a_turn_has_the_figures_of_its_calls(storage):
    usage = [TokenUsage(100, 10, 40), TokenUsage(120, 5, 100)]
    script = [
        ChatResponse("", [ToolCall("", "add", {"a": 2, "b": 3})], usage=usage[0], model="m-2026"),
        ChatResponse("It is 5", usage=usage[1]),
    ]
    await service_of(storage, *(lambda _, each=each: each for each in script)).prompt(await chat(storage), "2 + 3?")
    (row,) = await figures_of(storage)
    assert (row.calls, row.failed_calls, row.input_tokens, row.output_tokens) == (2, 0, 220, 15)
    assert (row.cached_tokens, row.tools.split()) == (140, ["add"])
    assert row.lasted_ms >= 0


@pytest.mark.any_database
@pytest.mark.parametrize("asked_about", [1, 2])
async def test_the_time_in_which_somebody_decides_is_none_that_a_turn_took(storage, asked_about):
    calls = [ToolCall(str(number), "pay", {"to": "Anna", "amount": number}) for number in range(asked_about)]
    service = service_of(storage, calls, "Paid", tools=Till().tools)
    context = await chat(storage)
    with pytest.raises(ApprovalPending) as asked:
        await service.prompt(context, "Pay Anna")
    for table, columns in ((turns, ("created_at", "started_at")), (pending_calls, ("created_at",))):  # an hour goes by
        rows = await storage.read(lambda connection, table=table: connection.execute(select(table)).all())
        for row in rows:
            earlier = {name: getattr(row, name) - timedelta(hours=1) for name in columns if getattr(row, name)}
            change = update(table).where(table.c.id == row.id).values(earlier)
            await storage.write(lambda connection, change=change: connection.execute(change))
    for call in asked.value.calls:
        await service.decide(context, call.number, allow=call is asked.value.calls[0])
    await (await service.resume(context)).finish()
    (row,) = await figures_of(storage)
    (turn,) = await read_turns(storage, context.id)
    now = storage.now()
    summary = await storage.read(
        lambda connection: read_sums(connection, now - timedelta(days=2), now, every=timedelta(days=1))
    )
    minute = 60
    assert row.lasted_ms < minute * 1_000
    assert turn.worked_seconds < minute
    assert sum(each.waited_seconds for each in summary.sums) < minute
    assert (turn.finished_at - turn.created_at) > timedelta(hours=1)


@pytest.mark.any_database
async def test_a_call_that_failed_and_was_made_again_is_kept_with_its_reason(storage):
    context = await chat(storage)
    script = [LLMError("the server is overloaded", retry_after_seconds=0), "Fine"]
    await service_of(storage, *script).prompt(context, "hello")
    answer = (await AgentContext.load(storage, context.id)).memory.steps[-1]
    first, second = answer.model_attempts
    assert first["error"] == "LLMError: the server is overloaded"
    assert "error" not in second
    (row,) = await figures_of(storage)
    assert (row.calls, row.failed_calls) == (1, 1)


async def test_a_turn_that_failed_keeps_the_prompt_that_nobody_answered(storage):
    context = await chat(storage)
    with pytest.raises(LLMError):
        await service_of(storage, LLMError("no such key", is_transient=False)).prompt(context, "hello")
    step = (await AgentContext.load(storage, context.id)).memory.steps[-1]
    assert isinstance(step, FailedStep)
    assert step.model_input_messages[-1] == {"role": "user", "content": "hello"}
    assert step.prompt_facts["tools"] == ("add",)
    assert step.model_attempts[0]["error"] == "LLMError: no such key"
    (row,) = await figures_of(storage)
    assert (row.calls, row.failed_calls) == (0, 1)


@pytest.mark.any_database
async def test_what_was_found_is_kept_with_its_score_and_without_its_words(storage):
    context = await chat(storage)
    said = await context.chat_history.append_user_message("My dog is called Rex")
    for number in range(20):
        await context.chat_history.append_user_message(f"something else {number}")
    agent = FunctionsBasedAgent(llm=ScriptedChatLLM(["Rex"]), message_selector=NoMessages(), search_k=3)
    await AgentService(agent, storage).prompt(context, "What is my dog called?")
    answer = (await AgentContext.load(storage, context.id)).memory.steps[-1]
    hits = dict(answer.prompt_facts["found"])
    assert hits[said.id] > 0
    assert "Rex" not in repr(answer.prompt_facts)


@pytest.mark.any_database
async def test_what_does_not_fit_into_a_prompt_is_counted(storage):
    context = await chat(storage)
    for number in range(30):
        await context.chat_history.append_user_message(f"{number} " + "word " * 50)
    await service_of(storage, "Fine", max_prompt_tokens=1_000, search_k=0).prompt(context, "hello")
    answer = (await AgentContext.load(storage, context.id)).memory.steps[-1]
    assert answer.prompt_facts["left_out"]["window"] > 0
    assert answer.prompt_facts["max_tokens"] == 1_000


@pytest.mark.any_database
async def test_figures_go_with_their_turn(storage):
    context = await chat(storage)
    await service_of(storage, "Fine").prompt(context, "hello")
    assert len(await figures_of(storage)) == 1
    await forget_context(storage, context.id)
    assert await figures_of(storage) == []
