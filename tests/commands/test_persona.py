"""/persona, and prompts of a conversation's own."""

import asyncio

import pytest
from commands.test_conversations import CHAT, Commanded, answer_to, chatting
from turns.bots import add, call, make_service

from botservice import AgentContext, Author, MemoryStep
from botservice.core.personas import persona_in, system_prompt
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.columns import metadata

PIRATE = "You are a pirate.\nYou say arr."


def system(prompt) -> str:
    return prompt[0]["content"] if prompt[0]["role"] == "system" else ""


@pytest.mark.any_database
async def test_a_chat_has_a_persona_of_its_own_until_it_ends(storage):
    async with chatting(storage, lambda prompt: "hm") as (bot, llm):
        assert "/persona" in await answer_to(bot, "/persona", 1)
        assert (await answer_to(bot, f"/persona {PIRATE}", 2)).startswith("Done")
        assert PIRATE in await answer_to(bot, "/persona", 3)
        await answer_to(bot, "hello", 4)
        assert PIRATE in system(llm.prompts[0])
        assert "You are a pirate. You say arr." in await answer_to(bot, "/why", 5)
        assert (await answer_to(bot, "/persona off", 6)).startswith("Done")
        await answer_to(bot, "hello again", 7)
        assert "pirate" not in str(llm.prompts[1])
        assert "pirate" not in await answer_to(bot, "/why", 8)
    context = await AgentContext.get_or_create(storage, CHAT)
    assert "persona" not in context.metadata
    assert len(llm.prompts) == 2, "it is no question to the agent"


@pytest.mark.any_database
async def test_it_is_kept_with_the_turn_and_in_other_chats_there_is_none(storage):
    async with chatting(storage, lambda prompt: "hm") as (bot, llm):
        await answer_to(bot, f"/persona {PIRATE}", 1)
        await answer_to(bot, "hello", 2)
        await bot.write("hello", chat="2", order=3)
        await bot.messenger.until(lambda: "2" in bot.messenger.visible)
    assert ["pirate" in str(prompt) for prompt in llm.prompts] == [True, False]
    context = await AgentContext.get_or_create(storage, CHAT)
    assert PIRATE in context.memory.system_prompt.system_prompt


@pytest.mark.any_database
async def test_one_that_is_too_long_is_refused(storage):
    async with chatting(storage, lambda prompt: "hm") as (bot, _):
        assert "2000" in await answer_to(bot, "/persona " + "x" * 2001, 1)
        assert (await answer_to(bot, "/persona " + "x" * 2000, 2)).startswith("Done")


@pytest.mark.any_database
async def test_in_a_group_it_is_for_owners(storage):
    messenger = Commanded()
    messenger.is_private = False
    async with chatting(storage, lambda prompt: "hm", messenger=messenger) as (bot, llm):
        assert "owner" in await answer_to(bot, "/persona You are mine.", 1)
        await answer_to(bot, "hello", 2)
        assert "mine" not in str(llm.prompts)


async def test_what_a_person_wanted_is_forgotten_with_them(storage):
    for number, by in (("1", "messenger:9"), ("2", "messenger:10")):
        context = await AgentContext.get_or_create(storage, {"chat_id": number})
        context.metadata = {"persona": {"text": PIRATE, "by": by}, "other": 1}
        await context.save_metadata()
        await context.chat_history.append_user_message("hi", author=Author("messenger", "9", "Ann"))
        await context.chat_history.append_user_message("ho", author=Author("messenger", "11", "Bob"))
    kept = as_values(await read_person(storage, Author("messenger", "9")))
    assert kept["personas"] == [{"text": PIRATE}]
    await forget_person(storage, Author("messenger", "9"))
    left = [(await AgentContext.get_or_create(storage, {"chat_id": number})).metadata for number in ("1", "2")]
    assert left == [{"other": 1}, {"persona": {"text": PIRATE, "by": "messenger:10"}, "other": 1}]


async def test_what_a_person_wanted_is_forgotten_in_the_prompts_of_others_too(context, storage):
    context.metadata["persona"] = {"text": PIRATE, "by": "messenger:9"}
    await context.save_metadata()
    await context.chat_history.append_user_message("ho", author=Author("messenger", "9", "Ann"))
    service, _ = make_service(storage, ["arr"])
    await service.prompt(context, "hello", author=Author("messenger", "11", "Bob"))
    assert "pirate" in await kept_of(storage)
    await forget_person(storage, Author("messenger", "9"))
    assert "pirate" not in await kept_of(storage)


async def kept_of(storage) -> str:
    def read(connection):
        return str([connection.execute(table.select()).all() for table in metadata.sorted_tables])

    return await storage.read(read)


@pytest.mark.any_database
async def test_a_conversation_has_a_prompt_of_its_own(context, storage):
    service, llm = make_service(storage, ["one", "two", "three"])
    await context.set_prompt("You are Y")
    assert context.prompt == "You are Y"
    await service.prompt(context, "go")
    again = await AgentContext.get_or_create(storage, context.context_keys)
    assert again.prompt == again.metadata["prompt"] == "You are Y"
    assert again.memory.system_prompt.system_prompt == "You are Y"
    other = await AgentContext.get_or_create(storage, {"chat_id": "other"})
    await service.prompt(other, "go")
    await again.set_prompt(None)
    await service.prompt(again, "go")
    assert [system(prompt) for prompt in llm.prompts] == ["You are Y", "You are X", "You are X"]
    assert again.metadata == {}


@pytest.mark.any_database
async def test_a_prompt_is_set_beside_what_others_keep_in_the_metadata(context):
    other = await AgentContext.get_or_create(context.storage, context.context_keys)
    other.metadata["a"] = 1
    await other.save_metadata()
    context.metadata["b"] = 2
    await asyncio.gather(context.set_prompt("You are Y"), other.set_prompt("You are Z"))
    again = await AgentContext.get_or_create(context.storage, context.context_keys)
    assert again.metadata["a"] == 1
    assert again.prompt in {"You are Y", "You are Z"}
    await context.save_metadata()
    await again.refresh()
    assert again.metadata["b"] == 2


@pytest.mark.any_database
async def test_a_persona_stands_behind_the_prompt_and_follows_a_turn_that_is_resumed(context, storage):
    service, llm = make_service(storage, [call("add", a=1, b=1), "2"], tools=[add])
    context.metadata["persona"] = {"text": PIRATE, "by": ""}
    await context.save_metadata()
    run = await service.start(context, "go")
    await run.step()
    context = await AgentContext.get_or_create(storage, context.context_keys)
    run = await service.resume(context)
    await run.finish()
    assert isinstance(context.memory.system_prompt, MemoryStep)
    said = {system(prompt) for prompt in llm.prompts}
    assert said == {context.memory.system_prompt.system_prompt}
    assert said.pop().startswith("You are X\n\nIn this chat, be as its people want")


@pytest.mark.parametrize("value", [None, "text", {"text": ""}, {"text": 7}, {}, []])
def test_what_is_no_persona_changes_nothing(value):
    assert system_prompt("You are X", {"persona": value}) == "You are X"
    assert persona_in("You are X") is None


def test_a_prompt_that_is_no_text_changes_nothing():
    assert system_prompt("You are X", {"prompt": {"a": 1}}) == "You are X"
    assert system_prompt("", {"prompt": " "}) == ""
