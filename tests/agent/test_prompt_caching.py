"""What a prompt says to servers that keep what they have read: its key, and where it may be found again."""

import os
import subprocess
import sys

import pytest
from standins.tools import add

from botservice import (
    AgentContext,
    AgentService,
    FunctionsBasedAgent,
    MessageWindowMessageSelector,
    ScriptedChatLLM,
    Storage,
    ToolCall,
)
from botservice.agent.prompt import Prompt

pytestmark = pytest.mark.any_database


def make_service(storage, script, **options):
    llm = ScriptedChatLLM(script)
    agent = FunctionsBasedAgent(tools=[add], llm=llm, prompt="You are X", **options)
    return AgentService(agent, storage=storage), agent


def marked(prompt):
    return [prompt[place]["content"] for place in prompt.breakpoints]


async def test_a_key_says_nothing_and_is_the_same_for_a_conversation_alone(storage):
    service, agent = make_service(storage, ["one", "two", "three"])
    keys = []
    for chat in ("4242424242", "4242424242", "5353535353"):
        context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": chat})
        await service.prompt(context, "hello")
        prompt = await agent.build_prompt(context)
        keys.append(prompt.cache_key)
        assert chat not in prompt.cache_key
    assert keys[0] == keys[1] != keys[2]
    assert all(1 <= len(key) <= 64 for key in keys)


async def test_breakpoints_are_where_this_prompt_and_the_one_before_it_agree(context, storage):
    _, agent = make_service(storage, [], search_k=0)
    seen = []
    for text in ("first", "second", "third", "fourth"):
        await context.chat_history.append_user_message(text)
        prompt = await agent.build_prompt(context)
        seen.append(marked(prompt))
        await context.chat_history.append_assistant_message(f"re {text}")
    assert seen == [
        ["You are X"],
        ["You are X", "first"],
        ["You are X", "first", "second"],
        ["You are X", "second", "third"],
    ]


async def test_in_a_group_they_find_the_last_of_the_turn_before(context, storage):
    _, agent = make_service(storage, [], search_k=0)
    history = context.chat_history
    for text in ("a", "b", "@bot hello"):
        await history.append_user_message(text)
    assert marked(await agent.build_prompt(context)) == ["You are X", "b"]
    await history.append_assistant_message("hi")
    for text in ("c", "d", "@bot again"):
        await history.append_user_message(text)
    assert marked(await agent.build_prompt(context)) == ["You are X", "b", "d"]


async def test_between_steps_they_find_the_question(context, storage):
    service, agent = make_service(storage, ["one", [ToolCall("1", "add", {"a": 1, "b": 2})], "three"], search_k=0)
    await service.prompt(context, "first")
    run = await service.start(context, "what is 1 + 2?")
    await run.step()
    assert marked(await agent.build_prompt(context)) == ["You are X", "first", "what is 1 + 2?"]
    await run.close()


def test_a_prompt_that_somebody_changed_has_its_breakpoints_still():
    prompt = Prompt()
    prompt.add_section("system", [{"role": "system", "content": "You are X"}])
    prompt.add_section("window", [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    prompt.insert(0, {"role": "system", "content": "Shout."})
    assert prompt.breakpoints == [1, 2]
    assert Prompt([{"role": "user", "content": "mine"}]).breakpoints == []


@pytest.fixture
async def context(storage: Storage):
    return await AgentContext.get_or_create(storage, {"chat_id": "1"})


async def test_every_prompt_of_a_talk_begins_as_the_one_before_it(context, storage):
    selector = MessageWindowMessageSelector(1000)
    service, agent = make_service(storage, lambda prompt: "fine", message_selector=selector, search_k=0)
    before: list = []
    for number in range(6):
        await service.prompt(context, f"message {number}", author="alice" if number % 2 else "bob")
        prompt = list(await agent.build_prompt(context))
        if number > 1:
            assert prompt[: len(before)] == before
        before = prompt


async def test_a_second_person_who_falls_silent_changes_no_line_of_the_window(context, storage):
    service, agent = make_service(
        storage, lambda prompt: "fine", message_selector=MessageWindowMessageSelector(4), search_k=0
    )
    await service.prompt(context, "hello", author="bob")
    for number in range(6):
        await service.prompt(context, f"message {number}", author="alice")
    texts = [message["content"] for message in agent.llm.prompts[-1] if message["role"] == "user"]
    assert texts == ["alice: message 3", "alice: message 4", "alice: message 5"]


@pytest.mark.slow
def test_the_tools_of_the_default_agent_are_the_same_bytes_in_every_process(tmp_path):
    program = (
        "import json; from botservice.factories import build_service; from botservice.config.settings import Settings\n"
        "tools = build_service(Settings(_env_file=None)).agent.tools\n"
        "print(json.dumps([tool.schema for tool in tools.values()]))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert len(said) == 1
