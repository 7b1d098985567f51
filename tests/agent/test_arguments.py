"""Mistakes in what a program hands in: each is named where it is made."""

import re

import pytest

from botservice import (
    AgentContext,
    AgentService,
    BotServiceError,
    Command,
    FallbackLLM,
    FunctionsBasedAgent,
    InvalidArgument,
    NoMessages,
    OpenAIChatLLM,
    OpenAIEmbedder,
    ScriptedChatLLM,
    tool,
)
from botservice.mcp.servers import MCPServers


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def hours(_) -> str:
    return "9 to 18"


def make(**options):
    return FunctionsBasedAgent(**{"llm": ScriptedChatLLM(["ok"]), **options})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: make(llm="gpt"), "llm= is 'gpt': give a model, such as OpenAIChatLLM()"),
        (lambda: make(llm=OpenAIChatLLM), "llm= is the class OpenAIChatLLM: "),
        (lambda: make(message_selector=NoMessages), "message_selector= is the class NoMessages: give an object"),
        (lambda: make(tools=add), "tools= is a Tool: give a list"),
        (lambda: make(tools=hours), "tools= is the function hours: give a list"),
        (lambda: make(tools={"add": add}), "tools= is a dict: give a list"),
        (lambda: make(toolsets=MCPServers({})), "toolsets= is a MCPServers: give a list"),
        (lambda: make(toolsets=[add]), "one of toolsets= is a Tool: "),
        (lambda: make(skills="skills"), "skills= is 'skills': load them: Skills.load("),
        (lambda: make(prompt=7), "prompt= is 7: give a text"),
        (lambda: FallbackLLM(["gpt"]), "one of the models is 'gpt': "),
        (lambda: FallbackLLM(ScriptedChatLLM([])), "llms is a ScriptedChatLLM: give a list"),
        (lambda: AgentService(ScriptedChatLLM([])), "agent is a ScriptedChatLLM: give an agent"),
        (lambda: AgentService(make(), "sqlite:///bot.db"), "storage is a text: open one: await Storage.open("),
        (lambda: AgentService(make(), model_retries=3), "model_retries= is 3: give a RetryPolicy("),
        (lambda: AgentService(make(), embedder="local"), "embedder= is 'local': "),
        (lambda: AgentService(make(), commands=Command("hours", hours)), "commands= is a Command: give a list"),
        (lambda: AgentService(make(), commands=[hours]), "one of commands= is the function hours: give a Command("),
        (
            lambda: AgentService(make(), commands=[Command("hours", hours), Command("hours", hours)]),
            "two commands are called hours: give one of them another name",
        ),
        (lambda: OpenAIChatLLM(base_url="localhost:11434/v1"), "base_url= is 'localhost:11434/v1': give a whole"),
        (lambda: OpenAIChatLLM(base_url="http://"), "base_url= is a text: give a whole address"),
        (lambda: OpenAIEmbedder(base_url="localhost:11434/v1"), "base_url= is 'localhost:11434/v1': give a whole"),
        (lambda: OpenAIChatLLM(api_key="none", timeout_seconds=-1), "timeout_seconds= is -1: give a number of sec"),
        (lambda: OpenAIEmbedder(api_key="none", timeout_seconds=-1), "timeout_seconds= is -1: give a number of sec"),
    ],
)
def test_a_mistake_is_named_with_its_remedy_where_it_is_made(wrong, says):
    with pytest.raises(InvalidArgument, match=re.escape(says)) as told:
        wrong()
    assert isinstance(told.value, BotServiceError)


def test_what_may_hold_a_password_is_not_repeated():
    with pytest.raises(InvalidArgument) as told:
        OpenAIChatLLM(base_url="alice:swordfish@localhost/v1")
    assert "swordfish" not in str(told.value)


@pytest.mark.parametrize("text", [None, 7, b"hello"])
async def test_a_prompt_that_is_no_text_is_refused_and_nothing_is_stored(sqlite_storage, text):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    service = AgentService(make(), sqlite_storage)
    for ask in (service.prompt, service.start):
        with pytest.raises(InvalidArgument, match="what is asked is"):
            await ask(context, text)
    assert await context.chat_history.messages() == []
    assert (await service.prompt(context, "hello")).text == "ok"


async def test_what_does_the_same_under_another_name_is_taken(sqlite_storage):
    class Parrot:
        async def chat(self, messages, tools=(), *, on_text=None):
            return await ScriptedChatLLM(["hello"]).chat(messages)

    class Nothing:
        def get_messages(self, messages):
            return []

    agent = make(llm=Parrot(), message_selector=Nothing(), tools=(each for each in [add]))
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    assert (await AgentService(agent, sqlite_storage).prompt(context, "hello")).text == "hello"
