"""/memory: a person sees, corrects, shares and deletes what is known of them, and what others listen to stays out."""

import json

import pytest
from people.conversing import ALICE, BOB, NOW, command, make_service, open_chat, see, values
from people.crowd import find_bytes
from people.test_facts import person_of, tell, visible

from botservice import Author, ToolCall
from botservice.commands.catalogue import Catalogue
from botservice.commands.memory import MEMORY
from botservice.core.messages import CommandCall, InboundMessage
from botservice.people.fact_queries import facts_of
from botservice.privacy.record_queries import _without, spellings_of
from botservice.texts import LANGUAGES
from botservice.turns.commands import CommandRequest

COMMANDS = Catalogue([MEMORY])


@pytest.mark.any_database
async def test_what_is_known_is_listed_with_its_source_and_buttons_that_delete(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    assert "don’t know anything about you" in (await command(chat, "/memory", ALICE, COMMANDS)).text
    fact = await tell(storage, chat, ALICE, "I am vegetarian, remember that", topic="diet", text="Is vegetarian")
    answer = await command(chat, "/memory", ALICE, COMMANDS)
    assert f"#{fact.id} diet: Is vegetarian (you said “I am vegetarian, remember that” on May 1, 2026, Telegram)" in (
        answer.text
    )
    assert values(answer.buttons) == [f"/memory delete {fact.id}"]
    gone = await command(chat, values(answer.buttons)[0], ALICE, COMMANDS)
    assert f"Deleted: #{fact.id}" in gone.text
    assert await visible(storage, chat, ALICE) == []


@pytest.mark.any_database
async def test_a_fact_is_corrected_in_the_persons_own_words(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    fact = await tell(storage, chat, ALICE, "I live in Porto")
    assert "correct" in (await command(chat, f"/memory correct {fact.id}", ALICE, COMMANDS)).text
    await command(chat, f"/memory correct #{fact.id} I live in Faro", ALICE, COMMANDS)
    answer = await command(chat, "/memory", ALICE, COMMANDS)
    assert "I live in Faro (in your own words since May 1, 2026)" in answer.text
    assert "Porto" not in answer.text


async def test_in_a_group_only_what_may_be_told_there_is_seen_and_changed(storage):
    private = await open_chat(storage, "telegram-p", ALICE)
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    secret = await tell(storage, private, ALICE, "I am looking for a job")
    answer = await command(group, "/memory", ALICE, COMMANDS, is_private=False)
    assert "job" not in answer.text
    assert "private chat" in answer.text
    for order in (f"delete {secret.id}", f"correct {secret.id} x", f"share {secret.id}"):
        told = await command(group, f"/memory {order}", ALICE, COMMANDS, is_private=False)
        assert "There’s no" in told.text
    assert await visible(storage, private, ALICE) == ["I am looking for a job"]
    await command(private, f"/memory share {secret.id}", ALICE, COMMANDS)
    answer = await command(group, "/memory", ALICE, COMMANDS, is_private=False)
    assert "I am looking for a job" in answer.text
    assert "shared with groups" in answer.text
    await command(private, f"/memory unshare {secret.id}", ALICE, COMMANDS)
    assert "job" not in (await command(group, "/memory", ALICE, COMMANDS, is_private=False)).text


@pytest.mark.any_database
async def test_a_group_is_a_group_by_what_was_seen_there_whatever_the_transport_says(storage):
    private = await open_chat(storage, "telegram-p", ALICE)
    await tell(storage, private, ALICE, "I am looking for a job")
    other = await open_chat(storage, "telegram-o", ALICE)
    await see(storage, other, BOB)
    assert "job" not in (await command(other, "/memory", ALICE, COMMANDS, is_private=True)).text


@pytest.mark.any_database
async def test_a_forged_button_acts_on_nobody_elses_facts(storage):
    alices, bobs = await open_chat(storage, "telegram-a", ALICE), await open_chat(storage, "telegram-b", BOB)
    fact = await tell(storage, alices, ALICE, "I live in Porto")
    for order in ("delete", "share", "correct"):
        answer = await command(bobs, f"/memory {order} {fact.id} hacked", BOB, COMMANDS)
        assert "There’s no" in answer.text
    alice = await person_of(storage, ALICE)
    (known,) = await storage.read(lambda c: facts_of(c, alice))
    assert (known.text, known.is_shareable) == ("I live in Porto", False)


async def test_a_deleted_fact_leaves_the_prompts_and_steps_that_held_it(storage):
    chat = await open_chat(storage, "telegram-a")
    call = ToolCall("c1", "remember", {"text": 'Diet: "ZX81" vegan, über alles', "topic": "diet"})
    service, _ = make_service(storage, [call, "noted", "well"])
    await service.prompt(chat, "my zx81 diet is vegan, über alles", author=ALICE)
    await service.prompt(chat, "what is my diet?", author=ALICE)
    assert len(await find_bytes(storage, "ZX81")) >= 3
    (fact,) = await storage.read(lambda c: facts_of(c, 1))
    await command(chat, f"/memory delete {fact.id}", ALICE, COMMANDS)
    await storage.scrub()
    assert await find_bytes(storage, "ZX81") == []
    assert await chat.load_memory(), "what is left can be read"


@pytest.mark.any_database
async def test_it_answers_in_every_language_and_knows_nothing_of_nobody(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    await tell(storage, chat, ALICE, "I live in Porto")
    answers = set()
    claim = await storage.claims.try_claim(chat.id)
    for language in LANGUAGES:
        message = InboundMessage("/memory", ALICE, language=f"{language}-xx")
        answers.add(
            (await COMMANDS.answer(CommandRequest(CommandCall("memory"), message, chat, None, claim, NOW))).text.plain
        )
    await storage.claims.release(claim)
    assert len(answers) == len(LANGUAGES)
    assert "can’t tell who you are" in (await command(chat, "/memory", Author(name="x"), COMMANDS)).text


@pytest.mark.parametrize("words", ["1", '"', "user", "a"])
async def test_a_deleted_fact_of_few_letters_leaves_the_rest_of_the_record_readable(storage, words):
    chat = await open_chat(storage, "telegram-a", ALICE, BOB)
    service, llm = make_service(storage, [ToolCall("c1", "remember", {"topic": "t", "text": "n"}), "ok", "well"])
    await service.prompt(chat, f"my lucky sign is {words} n", author=ALICE)
    fact = await tell(storage, chat, ALICE, f"I say {words} only", text="I say")
    for order in (f"correct {fact.id} {words}", f"delete {fact.id}"):
        await command(await open_chat(storage, "telegram-p", ALICE), f"/memory {order}", ALICE, COMMANDS)
    again = await open_chat(storage, "telegram-a", ALICE, BOB)
    steps = (await again.load_memory()).steps
    assert len(steps) == 3
    prompt = steps[-1].get_value("model_input_messages")
    assert [each["role"] for each in prompt] == [each["role"] for each in llm.prompts[-1]]
    assert (await service.prompt(again, "and now?", author=BOB)).text == "well"


@pytest.mark.parametrize(
    "given", [{"order": 4915112}, {"type": "4915112"}, {"by": {"4915112": 1}, "role": ["4915112"]}]
)
def test_what_a_tool_was_given_keeps_nothing_of_a_text_that_is_removed(given):
    call = {"$tool_call": {"id": "c1", "name": "ship", "arguments": given}}
    record = json.dumps({"type": "action", "step_number": 4915112, "tool_calls": [call]})
    left = json.loads(_without(record, spellings_of("4915112")))
    assert "4915112" not in json.dumps(left["tool_calls"])
    assert (left["type"], left["step_number"]) == ("action", 4915112)
