"""What a server is told about the beginning of a prompt, on both wires, and who is told nothing."""

import json
from itertools import pairwise

import pytest
from standins.openai_api import Failure, OpenAIApi

from botservice import OpenAIChatLLM
from botservice.agent.prompt import Prompt
from botservice.llm.openai import chat_completions, responses
from botservice.llm.openai.chat_completions import merge_consecutive
from botservice.llm.openai.options import CallOptions

TOOL = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}
MARK = {"mode": "explicit"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}


def make_prompt():
    prompt = Prompt()
    prompt.add_section("system", [{"role": "system", "content": "You are X"}])
    window = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": [{"type": "text", "text": "second"}, IMAGE]},
        {"role": "assistant", "content": "two"},
    ]
    prompt.add_section("window", window)
    prompt.add_section("found", [{"role": "user", "content": "Remembered"}])
    prompt.add_section("question", [{"role": "user", "content": "third"}])
    prompt.cache_key = "abc"
    return prompt


def marked_parts(messages):
    return [
        (place, part.get("text", part.get("type")))
        for place, message in enumerate(messages)
        for part in (message["content"] if isinstance(message["content"], list) else [])
        if part.get("prompt_cache_breakpoint") == MARK
    ]


@pytest.mark.parametrize(("wire", "name"), [(chat_completions, "messages"), (responses, "input")])
def test_openai_is_told_the_key_and_where_to_keep_what_it_has_read(wire, name):
    prompt = make_prompt()
    body = wire.build_body(prompt, [TOOL], CallOptions("gpt-6.1-terra"))
    assert body["prompt_cache_key"] == "abc"
    image = "image_url" if wire is chat_completions else "input_image"
    assert marked_parts(body[name]) == [(0, "You are X"), (1, "first"), (3, image)]
    assert prompt[0] == {"role": "system", "content": "You are X"}, "the prompt stays as it is"


@pytest.mark.parametrize("wire", [chat_completions, responses])
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "gpt-5.5", "gpt-5-mini", "o3", "ft:gpt-5.6:x", "gpt-oss-120b"])
def test_older_models_are_told_the_key_alone(wire, model):
    body = wire.build_body(make_prompt(), [TOOL], CallOptions(model))
    assert body["prompt_cache_key"] == "abc"
    assert "breakpoint" not in json.dumps(body)


@pytest.mark.parametrize("model", ["gpt-5.6", "gpt-5.6-terra-2026-06-27", "gpt-5.10", "gpt-6-luna", "gpt-6.2-astra"])
def test_models_since_56_are_told_of_breakpoints(model):
    assert "prompt_cache_breakpoint" in json.dumps(chat_completions.build_body(make_prompt(), [], CallOptions(model)))


@pytest.mark.parametrize("wire", [chat_completions, responses])
@pytest.mark.parametrize(
    "url", ["http://localhost:11434/v1", "https://openrouter.ai/api/v1", "https://x.openai.com.evil"]
)
def test_other_servers_are_told_nothing(wire, url):
    assert "cache" not in json.dumps(wire.build_body(make_prompt(), [TOOL], CallOptions("gpt-6.1-terra", base_url=url)))


@pytest.mark.parametrize("wire", [chat_completions, responses])
def test_a_request_begins_as_the_one_before_it_did(wire):
    earlier = make_prompt()
    later = Prompt(earlier[:-2])
    later.append({"role": "user", "content": "something else that is longer"})
    options = CallOptions("gpt-6.1-terra", base_url="http://localhost/v1", max_answer_tokens=100)
    one, other = (json.dumps(wire.build_body(each, [TOOL], options)) for each in (earlier, later))
    assert one.startswith(other[: other.index("something else")])
    assert one == json.dumps(wire.build_body(make_prompt(), [dict(TOOL)], options))


def test_neighbours_of_a_person_are_joined_and_nothing_else():
    asked = {"role": "assistant", "content": None, "tool_calls": []}
    result = {"role": "tool", "tool_call_id": "1", "content": "x"}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        asked,
        result,
        result,
        {"role": "user", "content": [IMAGE]},
        {"role": "user", "content": "c"},
    ]
    assert merge_consecutive(messages) == [
        messages[0],
        {"role": "user", "content": "a\n\nb"},
        asked,
        result,
        result,
        {"role": "user", "content": [IMAGE, {"type": "text", "text": "c"}]},
    ]
    assert messages[1]["content"] == "a"


@pytest.mark.parametrize("status", [400, 500])
async def test_a_template_that_wants_turns_gets_them_from_then_on(status):
    def reply(body):
        roles = [message["role"] for message in body["messages"]]
        if any(one == other == "user" for one, other in pairwise(roles)):
            return Failure(status, "Conversation roles must alternate user/assistant/user/assistant/...")
        return "ok"

    with OpenAIApi.running(reply) as api:
        llm = OpenAIChatLLM("gemma3", base_url=api.base_url)
        messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
        assert [(await llm.chat(messages)).text for _ in range(2)] == ["ok", "ok"]
        await llm.close()
        assert [len(body["messages"]) for body in api.bodies()] == [2, 1, 1]


@pytest.mark.parametrize("model", ["gpt-6.1-terra", "openai/gpt-6.1-terra"])
async def test_a_gateway_to_openai_is_told_as_openai_is(api, model):
    llm = OpenAIChatLLM(model, base_url=api.base_url, api_key="none", api="responses")
    await llm.chat(make_prompt())
    await llm.close()
    body = api.bodies("/v1/responses")[0]
    assert body["prompt_cache_key"] == "abc"
    assert "prompt_cache_breakpoint" in json.dumps(body["input"])


async def test_a_gateway_that_does_not_know_of_caches_is_told_once():
    fields = ("prompt_cache_key",)
    with OpenAIApi.running(refuses=fields) as api:
        llm = OpenAIChatLLM("gpt-5.5", base_url=api.base_url, api_key="none", api="responses")
        await llm.chat(make_prompt())
        await llm.chat(make_prompt())
        await llm.close()
        assert ["prompt_cache_key" in body for body in api.bodies("/v1/responses")] == [True, False, False]
