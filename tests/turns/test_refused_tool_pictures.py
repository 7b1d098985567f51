"""Pictures that tools give go by the same rules as those of people: a refused one is named, and silences no chat."""

import json

import pytest
from standins.mcp_servers import script
from standins.openai_api import OpenAIApi, Recorded, ToolUse

from botservice import Attachment, OpenAIChatLLM, SteadyWindowMessageSelector, tool
from botservice.mcp.servers import MCPServers
from tests.turns.bots import make_service

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


@tool
async def look() -> list:
    """Look at the screen."""
    return ["This is the screen.", Attachment("image/png", "screen.png", data=PNG)]


@tool
async def scan() -> list:
    """Scan a page."""
    return ["This is the page.", Attachment("image/tiff", "page.tiff", data=b"II*\0")]


def serve(storage, api, tools=(look, scan), **options):
    llm = OpenAIChatLLM("m", base_url=api.base_url, api_key="k", api="chat")
    service, _ = make_service(storage, llm, tools=tools, message_selector=SteadyWindowMessageSelector(4000), **options)
    return service, llm


def calling(name, wording="", status=400):
    """Return a mind that calls a tool once for each question, and refuses pictures where there is a wording."""
    body = json.dumps({"error": {"message": wording, "code": status}}).encode()

    def reply(asked):
        if wording and "image_url" in json.dumps(asked["messages"]):
            return Recorded(body, "application/json", status)
        roles = [each["role"] for each in asked["messages"]]
        is_called = "tool" in roles
        is_wanted = "use it" in json.dumps(asked["messages"][-1])
        return ToolUse(name, {}) if is_wanted and not is_called else "fine"

    return reply


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("wording", "status"),
    [
        ("image input is not supported", 500),
        ("Could not process image", 400),
        ("Unsupported MIME type: image/png", 400),
        ("Something is wrong.", 400),
        ("Odd.", 422),
    ],
)
async def test_a_refused_picture_of_a_tool_is_named_and_the_next_question_answered(context, storage, wording, status):
    with OpenAIApi.running(calling("look", wording, status)) as api:
        service, llm = serve(storage, api)
        answer = await service.prompt(context, "use it")
        assert answer.text.startswith("fine\n\n(The model couldn’t see screen.png. ")
        sent = json.dumps(api.bodies()[-1]["messages"])
        assert "This is the screen." in sent, "what the tool said stays"
        assert "picture" in sent
        assert "cannot be shown to you" in sent
        since = len(api.requests())
        assert since <= 5
        assert (await service.prompt(context, "and now?")).text == "fine"
        assert len(api.requests()) == since + 1
        await llm.close()


async def test_a_picture_of_a_tool_that_no_provider_takes_is_named_and_not_sent(context, storage):
    with OpenAIApi.running(calling("scan")) as api:
        service, llm = serve(storage, api)
        answer = await service.prompt(context, "use it")
        assert answer.text.startswith("fine\n\n(The model couldn’t see page.tiff. ")
        sent = json.dumps(api.bodies()[-1])
        assert "image_url" not in sent
        assert "[image/tiff, page.tiff, 4 bytes]" in sent
        await llm.close()


async def test_a_picture_that_the_model_takes_is_shown(context, storage):
    with OpenAIApi.running(calling("look")) as api:
        service, llm = serve(storage, api)
        assert (await service.prompt(context, "use it")).text == "fine"
        assert "image/png;base64" in json.dumps(api.bodies()[-1])
        await llm.close()


async def test_a_picture_of_a_server_of_tools_goes_by_the_same_rules(context, storage):
    servers = MCPServers({"screen": script("results")})
    with OpenAIApi.running(calling("screen__picture", "Odd.", 422)) as api:
        service, llm = serve(storage, api, tools=(), toolsets=[servers])
        answer = await service.prompt(context, "use it")
        assert "The model couldn’t see image" in answer.text
        assert (await service.prompt(context, "and now?")).text == "fine"
        await service.close()
        await llm.close()
