"""Tools that want a role, where a program asks: by a hook, which has no role, and by the endpoint, for its user."""

import httpx
import openai
import pytest
from turns.ranks import obeying, rank_tools

from botservice import FunctionsBasedAgent, ScriptedChatLLM, ToolCall
from botservice.people.access import Access
from tests.transports.api.serving import TOKEN, serving
from tests.transports.api.signing import bearer, write_hooks

TASK = {"do": "ask", "task": "use deploy 1"}


def told(messages):
    """Call the tool for what the owner's task says, and say what it gave."""
    if messages[-1]["role"] == "tool":
        return f"got: {messages[-1]['content']}"
    return ToolCall("", "deploy", {"number": 1})


async def post(served):
    answer = await served.client.post("/hooks/ci", content=b"{}", headers=bearer(b""))
    assert answer.status_code == 202
    await served.messenger.until(lambda: bool(served.messenger.visible))
    return served.messenger.visible["1"][0]


@pytest.mark.parametrize(("tools", "says"), [(["deploy"], "got: deployed"), (["look"], "got: Error: there is no tool")])
async def test_a_hook_has_no_role_and_runs_what_it_names(storage, tmp_path, tools, says):
    ran = []
    file = write_hooks(tmp_path, ci={**TASK, "tools": tools})
    async with serving(storage, told, tools=rank_tools(ran), hooks_config=file) as served:
        assert (await post(served)).startswith(says)
    assert ran == [("deploy", 1)] * (tools == ["deploy"])


async def test_what_a_named_tool_has_below_it_is_not_named(storage, tmp_path):
    ran = []
    below = FunctionsBasedAgent(
        tools=rank_tools(ran), llm=ScriptedChatLLM(told), name="helper", description="Helps.", prompt="", search_k=0
    )
    script = [ToolCall("", "helper", {"task": "use deploy 1"}), "done"]
    file = write_hooks(tmp_path, ci={**TASK, "tools": ["helper"]})
    async with serving(storage, script, tools=[below], hooks_config=file) as served:
        assert await post(served) == "done"
    assert "not allowed" in str(below.llm.prompts[-1])
    assert ran == []


async def test_the_endpoint_asks_for_its_user_and_else_for_a_guest(storage):
    ran = []
    await storage.write(lambda connection: Access().set_roles(connection, "api:anna", ["deployer"], "", storage.now()))
    async with serving(storage, obeying, tools=rank_tools(ran)) as served, httpx.AsyncClient(timeout=60) as http:
        client = openai.AsyncOpenAI(api_key=TOKEN, base_url=f"{served.url}/v1", max_retries=0, http_client=http)

        async def ask(text, **user):
            asked = [{"role": "user", "content": text}]
            said = await client.chat.completions.create(model="botservice", messages=asked, **user)
            return said.choices[0].message.content

        assert (await ask("use deploy 1")).startswith("got: Error: not allowed")
        assert (await ask("use deploy 2", user="bob")).startswith("got: Error: not allowed")
        assert (await ask("use deploy 3", user="telegram:1")).startswith("got: Error: not allowed")
        assert await ask("use deploy 4", user="anna") == "got: deployed"
    assert ran == [("deploy", 4)]
