"""What a model gave with a step goes back to it as it came, whoever goes on with the turn."""

import asyncio
import json

import pytest
from crash.warm import processes
from standins.openai_api import RESPONSES, Ending, OpenAIApi, Reply, ToolUse
from standins.patience import PATIENT

from botservice import AgentContext, OpenAIChatLLM, Storage, TokenUsage
from botservice.conversation.items import MemoryItem
from tests.turns.bots import make_service
from tests.turns.killable import KEYS, answer_with_openai

CALLS = 3


def model(body):
    """Add three times, then answer."""
    done = sum(1 for message in body["messages"] if message["role"] == "tool")
    if done == CALLS:
        return Reply(text="It is six.", cached=5)
    return Reply(text=f"Step {done}.", tool_calls=[ToolUse("add", {"a": done, "b": 1})])


@pytest.fixture
def api():
    with OpenAIApi.running(model) as server:
        yield server


@pytest.fixture
async def llm(api):
    made = OpenAIChatLLM(base_url=api.base_url, api_key="sk-test", api="responses")
    yield made
    await made.close()


def reasoning_in(body):
    return [item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"]


@pytest.mark.any_database
async def test_steps_carry_what_the_model_gave(api, llm, context, storage):
    service, _ = make_service(storage, llm, search_k=0)
    assert (await service.prompt(context, "go")).text == "It is six."
    *steps, final = (await context.load_memory()).steps[1:]
    assert [step.finish_reason for step in (*steps, final)] == ["tool_calls"] * CALLS + ["stop"]
    assert {step.model for step in (*steps, final)} == {"gpt-6.1-terra"}
    assert [[item["type"] for item in step.model_items] for step in steps] == [
        ["reasoning", "message", "function_call"]
    ] * CALLS
    assert final.token_usage.cached_tokens == 5
    assert all(step.token_usage.reasoning_tokens > 0 for step in steps)
    assert [MemoryItem.from_json(step.to_json()) for step in (*steps, final)] == [*steps, final]
    assert [len(reasoning_in(body)) for body in api.bodies(RESPONSES)] == [0, 1, 2, 3]
    assert api.endings(Ending.REFUSED, path=RESPONSES) == []


@pytest.mark.any_database
async def test_sealed_reasoning_is_nowhere_but_in_its_step(api, llm, context, storage):
    service, _ = make_service(storage, llm, search_k=3)
    await service.prompt(context, "go")
    memory = await context.load_memory()
    seals = reasoning_in(api.bodies(RESPONSES)[-1])
    shown = json.dumps([list(step.get_value("model_input_messages") or ()) for step in memory.steps])
    shown += str([message.text for message in await context.chat_history.messages()])
    assert len(seals) == CALLS
    assert not any(seal in shown for seal in seals)


@pytest.mark.any_database
@pytest.mark.parametrize("change", ["key", "model", "seal"])
async def test_a_server_that_refuses_them_gets_the_steps_without(api, llm, context, storage, change):
    service, _ = make_service(storage, llm, search_k=0)
    run = await service.start(context, "go")
    await run.step()
    first = await run.step()
    other = {"key": {"api_key": "sk-other"}, "model": {"model": "gpt-6-luna"}, "seal": {}}[change]
    if change == "seal":
        first.model_items = [{**first.model_items[0], "encrypted_content": "damaged"}, *first.model_items[1:]]
    new = OpenAIChatLLM(**{"base_url": api.base_url, "api_key": "sk-test", "api": "responses"} | other)
    service.agent.llm = new
    since = len(api.requests(RESPONSES))
    assert (await run.finish()).text == "It is six."
    await new.close()
    sent = [reasoning_in(body) for body in api.bodies(RESPONSES)[since:]]
    assert [len(each) for each in sent] == [2, 0, 1], "refused once, without them at once, then with the new one alone"
    assert [ended.status for ended in api.endings(path=RESPONSES)][since:] == [400, 200, 200]


@pytest.mark.any_database
async def test_a_step_that_somebody_changed_is_said_in_its_new_words(api, llm, context, storage):
    service, _ = make_service(storage, llm, search_k=0)
    run = await service.start(context, "go")
    step = await run.step()
    step.model_output = "Something else."
    await run.finish()
    body = api.bodies(RESPONSES)[1]
    said = [item["content"] for item in body["input"] if item.get("role") == "assistant"]
    assert [{"type": "output_text", "text": "Something else."}] in said
    assert reasoning_in(body) == []
    assert api.endings(Ending.REFUSED, path=RESPONSES) == []


@pytest.mark.any_database
async def test_the_next_question_needs_nothing_of_the_last(api, llm, context, storage):
    service, _ = make_service(storage, llm, search_k=0)
    await service.prompt(context, "go")
    await service.prompt(context, "again")
    assert len(reasoning_in(api.bodies(RESPONSES)[-1])) == CALLS
    assert api.endings(Ending.REFUSED, path=RESPONSES) == []


@pytest.mark.any_database
async def test_steps_of_earlier_prompts_stay_in_view_with_their_items(api, llm, context, storage):
    service, _ = make_service(storage, llm, search_k=0)
    await service.prompt(context, "go")
    run = await service.start(context, "again", reset=False)
    await run.finish()
    assert api.endings(Ending.REFUSED, path=RESPONSES) == []
    assert len(reasoning_in(api.bodies(RESPONSES)[-1])) > CALLS


@pytest.mark.any_database
@pytest.mark.parametrize("steps", range(CALLS + 1))
async def test_a_kill_between_any_two_steps_loses_no_reasoning(api, storage_url, steps):
    process = processes.Process(target=answer_with_openai, args=(storage_url, api.base_url, steps))
    await _end(process)
    assert process.exitcode == -9
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        llm = OpenAIChatLLM(base_url=api.base_url, api_key="sk-test", api="responses")
        service, _ = make_service(storage, llm)
        run = await service.resume(context)
        assert (await run.finish()).text == "It is six."
        await llm.close()
    assert api.endings(Ending.REFUSED, path=RESPONSES) == []
    assert len(reasoning_in(api.bodies(RESPONSES)[-1])) == CALLS


async def _end(process):
    process.start()
    await asyncio.to_thread(process.join, 60)


async def test_a_usage_has_all_that_the_server_counts(api, llm):
    api.reply = lambda _: Reply(text="x", usage=(100, 50), cached=64, cache_written=30)
    usage = (await llm.chat([{"role": "user", "content": "hi"}])).usage
    assert usage == TokenUsage(100, 50, 64, usage.reasoning_tokens, 30)
