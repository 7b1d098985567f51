"""A program's own messages on Slack: once each, also where Slack's answer is lost."""

import pytest
from standins.clocks import fast_clock
from standins.slack_api import Drop, LoseAnswer, Refuse, SlackApi

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage


@pytest.mark.parametrize("fault", [Drop(), Refuse("internal_error"), LoseAnswer()])
async def test_a_message_that_nobody_asked_for_arrives_once(
    api: SlackApi, bot_on, sqlite_storage: Storage, fault: object
) -> None:
    async with bot_on(api, clock=fast_clock()):
        api.person_says("hello")
        await api.until(api.said)
        api.order(fault, "chat.postMessage")
        service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM([])), sqlite_storage)
        context = await AgentContext.load(sqlite_storage, 1)
        for _ in range(2):
            await service.send(context, "**news**", key="k")
        api.person_says("and now?")
        await api.until(lambda: len(api.said()) >= 3)
    assert api.said() == ["You said: hello", "**news**", "You said: and now?"]
