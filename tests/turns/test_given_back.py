"""What came next to an answer by chat.completions goes back to the same model as it came, in any process."""

import asyncio
import json

import pytest
from crash.warm import processes
from standins import openai_providers as providers
from standins.openai_api import Failure, OpenAIApi, Reply, ToolUse, server_error
from standins.patience import PATIENT

from botservice import AgentContext, FallbackLLM, OpenAIChatLLM, Storage
from botservice.conversation.items import MemoryItem
from botservice.llm.chat import FinishReason
from tests.turns.bots import make_service
from tests.turns.killable import KEYS, answer_with_openai

CALLS = 3
SIGNED = [{"type": "reasoning.text", "text": "I add.", "format": "x-v1", "index": 0, "signature": "c2ln"}]
EXTRAS = {
    "deepseek": {"message": {"reasoning_content": "I add."}},
    "kimi": {"message": {"reasoning_content": "I add."}},
    "openrouter": {"message": {"reasoning": "I add.", "reasoning_details": SIGNED}},
    "gemini": {"call": {"extra_content": {"google": {"thought_signature": "c2ln"}}}},
}


def served_by(name):
    """Return the mind of a provider that adds three times, then answers, and is as strict as the real one."""
    refuse = getattr(providers, name)

    def reply(body):
        done = sum(message["role"] == "tool" for message in body["messages"])
        answer = Reply(text="It is six.") if done == CALLS else providers.thinking_call(done, **EXTRAS.get(name, {}))
        return refuse(body) or answer

    return reply


def model(api, name="m"):
    return OpenAIChatLLM(name, base_url=api.base_url, api_key="sk-test", api="chat")


@pytest.mark.any_database
@pytest.mark.parametrize("name", EXTRAS)
async def test_a_thinking_model_gets_back_what_it_gave(context, storage, name):
    with OpenAIApi.running(served_by(name)) as api:
        service, llm = make_service(storage, model(api))
        assert (await service.prompt(context, "go")).text == "It is six."
        await llm.close()
        assert len(api.requests()) == CALLS + 1, "nothing was refused"
    steps = (await context.load_memory()).steps[1:-1]
    assert [MemoryItem.from_json(step.to_json()) for step in steps] == steps
    shown = json.dumps([list(step.get_value("model_input_messages") or ()) for step in steps])
    shown += str([message.text for message in await context.chat_history.messages()])
    assert "I add." not in shown
    assert "c2ln" not in shown


@pytest.mark.any_database
@pytest.mark.parametrize("steps", range(CALLS + 1))
async def test_a_kill_between_any_two_steps_loses_nothing_of_it(storage_url, steps):
    with OpenAIApi.running(served_by("deepseek")) as api:
        process = processes.Process(target=answer_with_openai, args=(storage_url, api.base_url, steps, "chat"))
        process.start()
        await asyncio.to_thread(process.join, 60)
        assert process.exitcode == -9
        async with Storage.open(storage_url, limits=PATIENT) as storage:
            context = await AgentContext.get_or_create(storage, KEYS)
            service, llm = make_service(storage, model(api))
            run = await service.resume(context)
            assert (await run.finish()).text == "It is six."
            await llm.close()
        assert len(api.requests()) in (CALLS + 1, CALLS + 2), "nothing was refused; one call may be made again"


@pytest.mark.parametrize("other", ["mistral", "deepseek", "gemini", "openrouter"])
async def test_another_provider_goes_on_with_what_the_first_one_began(context, storage, other):
    with OpenAIApi.running(served_by("deepseek")) as first, OpenAIApi.running(served_by(other)) as second:
        first.reply = _failing_after_two(first.reply)
        if other == "openrouter":
            second.reply = lambda _: Reply(text="It is six.")
        service, llm = make_service(storage, FallbackLLM([model(first, "one"), model(second, "two")]))
        assert (await service.prompt(context, "go")).text == "It is six."
        await llm.close()
        gone = [each for body in second.bodies() for each in body["messages"] if each.get("reasoning_content")]
        assert not any(each["reasoning_content"] == "I add." and each["content"] for each in gone)
        told = [each for body in second.bodies()[:1] for each in body["messages"]]
        assert not any("reasoning_content" in each for each in told), "it is of another model"


def _failing_after_two(reply):
    return lambda body: (
        server_error(503) if sum(each["role"] == "tool" for each in body["messages"]) == 2 else reply(body)
    )


@pytest.mark.parametrize("other", ["another model", "another server"])
async def test_another_model_does_not_get_it(context, storage, other):
    with OpenAIApi.running(served_by("deepseek")) as first, OpenAIApi.running(lambda _: "done") as second:
        service, llm = make_service(storage, model(first))
        run = await service.start(context, "go")
        await run.step()
        service.agent.llm = new = model(second, "other")
        assert (await run.finish()).text == "done"
        assert "I add." not in json.dumps(second.bodies())
        await llm.close()
        await new.close()


async def test_what_a_server_does_not_take_back_is_left_out_and_not_sent_again(context, storage):
    def groq(body):
        if any("reasoning" in each for each in body["messages"]):
            said = "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property "
            return Failure(400, f"{said}'reasoning' is unsupported)]")
        done = sum(message["role"] == "tool" for message in body["messages"])
        return Reply(text="six") if done == CALLS else providers.thinking_call(done, message={"reasoning": "I add."})

    with OpenAIApi.running(groq) as api:
        service, llm = make_service(storage, model(api))
        assert (await service.prompt(context, "go")).text == "six"
        assert len(api.requests()) == CALLS + 2, "refused once"
        await llm.close()


async def test_an_answer_that_a_filter_cut_says_so(context, storage):
    with OpenAIApi.running(lambda _: Reply(text="Half of", finish_reason="content_filter")) as api:
        service, llm = make_service(storage, model(api))
        answer = await service.prompt(context, "go")
        await llm.close()
    assert answer.text.startswith("Half of\n\n(The model’s server stopped my answer here")
    assert (await context.load_memory()).steps[-1].finish_reason == FinishReason.FILTERED


@pytest.mark.parametrize("written", ['{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}', '{"a": ' * 70 + "1" + "}" * 70])
async def test_arguments_that_no_program_expects_are_an_error_to_the_model(context, storage, written):
    given = []

    def reply(body):
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        given[:] = results
        return "I see." if results else ToolUse("add", written)

    with OpenAIApi.running(reply) as api:
        service, llm = make_service(storage, model(api))
        assert (await service.prompt(context, "go")).text == "I see."
        await llm.close()
    assert len(given) == 1
    assert "the arguments of add are not a JSON object, or it is nested too deep" in given[0]
