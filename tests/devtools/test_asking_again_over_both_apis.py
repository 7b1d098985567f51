"""Asking again of the real client, on both of its wires."""

import pytest
from standins.openai_api import Ending, OpenAIApi, Reply, ToolUse
from standins.tools import adder

from botservice import AgentContext, AgentService, FunctionsBasedAgent, OpenAIChatLLM
from botservice.config.known_prices import KNOWN_PRICES
from botservice.devtools.replaying import ask_again
from botservice.people.budgets import Budgets

ran: list[tuple[int, int]] = []


add = adder(ran)


def model(body):
    """Add twice, then answer."""
    done = sum(1 for message in body["messages"] if message["role"] == "tool")
    return (
        Reply(text="It is six.") if done == 2 else Reply(text="So.", tool_calls=[ToolUse("add", {"a": done, "b": 3})])
    )


@pytest.mark.parametrize(("wire", "effort"), [("responses", None), ("chat", "none")])
async def test_the_server_takes_what_is_asked_again_from_any_call_on(sqlite_storage, wire, effort):
    ran.clear()
    with OpenAIApi.running(model) as api:
        llm = OpenAIChatLLM(base_url=api.base_url, api_key="sk-test", api=wire, reasoning_effort=effort)
        agent = FunctionsBasedAgent(tools=[add], llm=llm, search_k=0)
        service = AgentService(agent, sqlite_storage, budgets=Budgets(prices=KNOWN_PRICES))
        answer = await service.prompt(await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"}), "go")
        for call in (1, 2, 3):
            compared = await ask_again(service, 1, 1, call=call)
            assert (compared.again.text, compared.again.missing) == (answer.text, [])
            assert (compared.then.calls, compared.again.calls) == (4 - call, 4 - call)
            assert compared.again.models == compared.then.models
            assert compared.more_tokens is not None
            assert compared.more_cost is not None
        await llm.close()
        assert api.endings(Ending.REFUSED) == []
    assert ran == [(0, 3), (1, 3)]
