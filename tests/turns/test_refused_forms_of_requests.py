"""Servers that take no stream, or no calls without tools, are asked otherwise: at once, and from then on."""

import json

import pytest
from standins.openai_api import CHAT, RESPONSES, Failure, OpenAIApi, Recorded, ToolUse

from botservice import OpenAIChatLLM
from tests.turns.bots import make_service

STREAM = [
    "This model doesn't support tool use in streaming mode.",
    "Streaming is not supported with tools",
    "Your organization must be verified to stream this model.",
]
ALONE = [
    "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    "Bedrock doesn't support tool calling without `tools=` param specified.",
    "Requests which include `tool_use` or `tool_result` blocks in the prompt must define tools",
]


def model(api, wire="chat"):
    return OpenAIChatLLM("m", base_url=api.base_url, api_key="k", api=wire)


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("wording", STREAM)
async def test_a_server_that_takes_no_stream_is_asked_for_a_whole_answer(context, storage, wording, wire):
    with OpenAIApi.running(lambda body: Failure(400, wording) if body["stream"] else "fine") as api:
        service, llm = make_service(storage, model(api, wire))
        assert (await service.prompt(context, "hello")).text == "fine"
        assert (await service.prompt(context, "and now?")).text == "fine"
        bodies = api.bodies(CHAT if wire == "chat" else RESPONSES)
        assert [body["stream"] for body in bodies] == [True, False, False]
        assert all(body.get("tools") for body in bodies), "its tools stay"
        await llm.close()


@pytest.mark.parametrize("wording", ALONE)
async def test_calls_are_said_in_words_where_no_tools_are_offered(context, storage, wording):
    def reply(body):
        has_calls = any(each["role"] == "tool" for each in body["messages"])
        if has_calls and not body.get("tools"):
            return Failure(400, wording)
        return ToolUse("add", {"a": 1, "b": 2}) if body.get("tools") else "fine"

    with OpenAIApi.running(reply) as api:
        service, llm = make_service(storage, model(api), max_steps=1)
        assert (await service.prompt(context, "use it")).text == "fine"
        sent = json.dumps(api.bodies()[-1]["messages"])
        assert "[Called add(" in sent
        assert "[The tool gave: 3]" in sent
        await llm.close()


async def test_a_call_that_the_model_got_wrong_is_asked_for_again_and_blames_no_message(context, storage):
    said = {"error": {"message": "Failed to call a function. Please adjust your prompt.", "code": "tool_use_failed"}}
    replies = [Recorded(json.dumps(said).encode(), "application/json", 400), "fine", "fine"]
    with OpenAIApi.running(lambda _: replies.pop(0)) as api:
        service, llm = make_service(storage, model(api))
        assert (await service.prompt(context, "use it")).text == "fine"
        assert (await service.prompt(context, "and now?")).text == "fine"
        assert len(api.requests()) == 3
        await llm.close()
