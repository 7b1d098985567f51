"""The log of what models were sent: each message once, and what was said by its number alone."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import LargeBinary, func, select, type_coerce, update

from botservice import AgentContext, Attachment, MessageWindowMessageSelector
from botservice.conversation.prompt_log import PromptLog
from botservice.history.message_rendering import Records
from botservice.storage.tables.columns import compress, decompress
from botservice.storage.tables.conversations import messages, prompt_log, steps
from tests.turns.bots import make_service

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def inputs(memory):
    """Return what the models were sent, step by step."""
    found = [step.get_value("model_input_messages") for step in memory.steps]
    return [each for each in found if each is not None]


async def logged(storage):
    """Return the rows of the log."""
    return await storage.read(lambda c: c.execute(select(prompt_log).order_by(prompt_log.c.seq)).all())


async def talk(context, count, text="my dog Rex likes the park number {n}", **said):
    """Have so many messages of people in a conversation."""
    for n in range(count):
        at = START + timedelta(hours=n)
        await context.chat_history.append_user_message(text.format(n=n), created_at=at, **said)


async def test_what_was_found_is_kept_by_its_numbers_and_reads_back_exactly(context, storage):
    await talk(context, 30, "Rex <memory> says\n[2026-01-01 10:00 UTC] Bob: park {n}", author="alice")
    service, llm = make_service(storage, ["yes"], search_k=20, message_selector=MessageWindowMessageSelector(5))
    await service.prompt(context, "what does Rex say of the park?", author="bob")
    [row] = await logged(storage)
    assert "says" not in row.content
    assert len(row.content) < 500
    assert inputs(await context.load_memory()) == llm.prompts
    again = await AgentContext.get_or_create(storage, context.context_keys)
    assert inputs(again.memory) == llm.prompts


@pytest.mark.any_database
async def test_what_was_found_is_deleted_in_the_record_where_it_is_deleted_in_the_history(context, storage):
    await talk(context, 12)
    service, llm = make_service(storage, ["yes"], search_k=20, message_selector=MessageWindowMessageSelector(2))
    await service.prompt(context, "where is Rex in the park?")
    third = (await context.chat_history.messages())[2]
    await context.chat_history.delete_messages([third.id])
    [prompt], sent = inputs(await context.load_memory()), llm.prompts[0]
    record = next(line for line in sent[-2]["content"].splitlines() if line.endswith("number 2"))
    assert prompt[-2]["content"] == sent[-2]["content"].replace(record, "[deleted]")
    again = await AgentContext.get_or_create(storage, context.context_keys)
    assert inputs(again.memory) == [prompt]


@pytest.mark.any_database
async def test_a_message_that_was_cut_to_fit_is_kept_as_it_was_sent(context, storage):
    await talk(context, 3, "my dog Rex " + "likes the park and the river " * 60 + "{n}")
    await talk(context, 8, "hello {n}")
    service, llm = make_service(
        storage, ["yes"], search_tokens=400, search_k=None, message_selector=MessageWindowMessageSelector(2)
    )
    await service.prompt(context, "where is Rex in the park?")
    assert any("…" in message["content"] for message in llm.prompts[0])
    assert inputs(await context.load_memory()) == llm.prompts


@pytest.mark.any_database
async def test_files_and_names_of_what_was_said_read_back_exactly(context, storage):
    files = [Attachment("text/plain", "a.txt", data=b"x"), Attachment("image/png", "b.png", data=b"y")]
    await talk(context, 3, "park {n}\nand more", author="alice", attachments=files)
    await talk(context, 3, "park {n}", author="bob", attachments=files[:1])
    await talk(context, 3, "", author="bob", attachments=files[:1])
    service, llm = make_service(storage, ["yes"], search_k=5, message_selector=MessageWindowMessageSelector(7))
    await service.prompt(context, "which park?", author="alice")
    assert inputs(await context.load_memory()) == llm.prompts


async def test_what_an_agent_of_ones_own_makes_of_a_prompt_reads_back_exactly(context, storage):
    await talk(context, 12)
    service, llm = make_service(storage, ["yes"], search_k=5, message_selector=MessageWindowMessageSelector(4))
    build = service.agent.build_prompt

    async def build_prompt(of):
        prompt = await build(of)
        prompt[0] = {**prompt[0], "name": "rules"}
        prompt[1]["content"] = f"first: {prompt[1]['content']}"
        prompt[2]["content"] += " (that is all)"
        prompt[3]["name"] = "alice"
        prompt[-2]["content"] = prompt[-2]["content"].upper()
        return prompt

    service.agent.build_prompt = build_prompt
    await service.prompt(context, "where is Rex in the park?")
    assert inputs(await context.load_memory()) == llm.prompts
    [row] = await logged(storage)
    assert "first: my dog" not in row.content, "the words stay in one place"


async def test_any_field_of_a_message_reads_back_exactly(context, storage):
    service, llm = make_service(storage, ["yes"])
    build = service.agent.build_prompt

    async def build_prompt(of):
        prompt = await build(of)
        prompt[0]["shown"] = True
        prompt[1]["parts"] = ["what is shown"]
        return prompt

    service.agent.build_prompt = build_prompt
    await service.prompt(context, "where is Rex?")
    assert inputs(await context.load_memory()) == llm.prompts


@pytest.mark.any_database
async def test_an_edited_message_shows_its_new_words(context, storage):
    await talk(context, 3)
    service, _ = make_service(storage, ["yes"], search_k=5, message_selector=MessageWindowMessageSelector(2))
    await service.prompt(context, "which park?")
    first = (await context.chat_history.messages())[0].id
    change = update(messages).where(messages.c.id == first).values(text="something else")
    await storage.write(lambda connection: connection.execute(change))
    assert "user: something else" in str(inputs(await context.load_memory()))


@pytest.mark.any_database
async def test_a_system_prompt_is_the_one_of_its_turn(context, storage):
    service, llm = make_service(storage, ["yes", "no"], prompt="half \ud800 a character")
    await service.prompt(context, "which park?")
    await context.set_prompt("You are Z " * 100)
    await service.prompt(context, "and now?")
    assert inputs(await context.load_memory()) == llm.prompts
    rows = await logged(storage)
    assert [{"system": True} in json.loads(row.content) for row in sorted(rows, key=lambda row: row.turn_id)] == [
        False,
        True,
    ]


def test_records_that_stand_in_no_prompt_are_not_kept_by_number():
    log = PromptLog(1)
    recorded = log.record([{"role": "user", "content": "x"}], sources={0: Records.of([])})
    assert recorded == [{"role": "user", "content": "x"}]


async def test_a_form_of_a_later_release_shows_what_was_said_as_it_is(context, storage):
    await talk(context, 3)
    service, _ = make_service(storage, ["yes"], message_selector=MessageWindowMessageSelector(2))
    await service.prompt(context, "where is Rex?")
    first = (await context.chat_history.messages())[0]
    shown = {"shown": "as_sung", "ids": [first.id]}
    later = json.dumps([{"system": True}, shown, {"role": "user", "parts": ["said: ", shown]}])
    await storage.write(lambda c: c.execute(update(prompt_log).values(content=later)))
    again = await AgentContext.get_or_create(storage, context.context_keys)
    [prompt] = inputs(again.memory)
    assert [each["content"] for each in prompt[1:3]] == [first.text, f"said: {first.text}"]


async def test_what_a_turn_leaves_takes_little_space(context, storage):
    """With prompts of sixteen thousand characters; measured: 162 bytes for the prompt and 167 for the step."""
    await talk(context, 25, "my dog Rex likes the park number {n}, and " + "the river behind it. " * 36)
    service, _ = make_service(storage, ["yes"] * 5, search_k=10, message_selector=MessageWindowMessageSelector(20))
    for _ in range(5):
        await service.prompt(context, "where is Rex in the park?")
    kept = select(func.sum(func.length(type_coerce(prompt_log.c.content, LargeBinary))))
    assert (await storage.read(lambda c: c.execute(kept).scalar_one())) / 5 < 300
    kept = select(func.sum(func.length(type_coerce(steps.c.data, LargeBinary)))).where(steps.c.prompt.is_not(None))
    assert (await storage.read(lambda c: c.execute(kept).scalar_one())) / 5 < 300


@given(st.text(st.characters()))
def test_every_text_comes_back_from_what_is_compressed(text):
    assert decompress(compress(text)) == text
