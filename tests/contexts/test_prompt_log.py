"""The log of what models were sent: each message once, and what was said by its number alone."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, select, update

from botservice import AgentContext, Attachment, MessageWindowMessageSelector
from botservice.conversation.prompt_log import PromptLog
from botservice.conversation.prompt_log_reading import read_prompt_log
from botservice.history.shown import Records
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
    assert "says" not in json.dumps(row.content)
    assert len(json.dumps(row.content)) < 500
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
    assert "first: my dog" not in json.dumps(row.content), "the words stay in one place"


@pytest.mark.any_database
async def test_an_edited_message_shows_its_new_words(context, storage):
    await talk(context, 3)
    service, _ = make_service(storage, ["yes"], search_k=5, message_selector=MessageWindowMessageSelector(2))
    await service.prompt(context, "which park?")
    first = (await context.chat_history.messages())[0].id
    change = update(messages).where(messages.c.id == first).values(text="something else")
    await storage.write(lambda connection: connection.execute(change))
    assert "user: something else" in str(inputs(await context.load_memory()))


async def test_rows_of_earlier_releases_are_read_and_gone_on_with(context, storage):
    await talk(context, 2, "line {n}\nBob: no")
    said = await context.chat_history.messages()
    service, llm = make_service(storage, ["yes"])
    await service.prompt(context, "what?")
    first, second = (message.id for message in said)
    older = [
        {"literal": {"role": "system", "content": "You are Y"}},
        {"messages": [[first, "user", ""], [second, "user", "Ann: "]], "literal": {}, "ways": {"1": 2}},
        {"message": first, "role": "user", "prefix": "", "literal": {}},
    ]

    def write(connection):
        [turn] = connection.execute(select(prompt_log.c.turn_id)).scalars()
        rows = zip((0, 1, 3), older, strict=True)
        values = [{"turn_id": turn, "seq": seq, "context_id": context.id, "content": each} for seq, each in rows]
        connection.execute(insert(prompt_log), values)
        [number] = connection.execute(select(steps.c.id).where(steps.c.prompt_ranges.is_not(None))).scalars()
        ranges = connection.execute(select(steps.c.prompt_ranges).where(steps.c.id == number)).scalar_one()
        connection.execute(update(steps).where(steps.c.id == number).values(prompt_ranges=[[0, 4], *ranges]))
        return read_prompt_log(connection, context.id, turn)

    log = await storage.write(write)
    older_prompt = [
        {"role": "system", "content": "You are Y"},
        {"role": "user", "content": "line 0\nBob: no"},
        {"role": "user", "content": "Ann: line 1\n  Bob: no"},
        {"role": "user", "content": "line 0\nBob: no"},
    ]
    assert inputs(await context.load_memory()) == [[*older_prompt, *llm.prompts[0]]]
    recorded = log.record([*older_prompt[:1], {"role": "user", "content": "new"}])
    assert recorded == [older_prompt[0], {"role": "user", "content": "new"}]
    assert [place for place, _ in log.unsaved()] == [log.ranges(recorded)[-1][0]] != [4], "the older ones' go on there"


async def test_earlier_releases_find_nothing_kept_and_nothing_in_their_way(context, storage):
    await talk(context, 3)
    service, _ = make_service(storage, ["yes"], search_k=5)
    await service.prompt(context, "which park?")
    [row] = await logged(storage)
    assert row.content["messages"] == [], "it stands for no message"
    assert row.content["literal"] == {}, "0.2.2 asks for it"
    assert row.seq >= 100_000, "theirs have the numbers from 0 on"
    ranges = await storage.read(lambda c: c.execute(select(steps.c.prompt_ranges)).scalars().all())
    assert min(min(each) for kept in ranges if kept for each in kept) >= 100_000


@pytest.mark.any_database
async def test_a_system_prompt_is_the_one_of_its_turn(context, storage):
    service, llm = make_service(storage, ["yes", "no"], prompt="half \ud800 a character")
    await service.prompt(context, "which park?")
    await context.set_prompt("You are Z " * 100)
    await service.prompt(context, "and now?")
    assert inputs(await context.load_memory()) == llm.prompts
    rows = await logged(storage)
    assert [0 in row.content["sent"] for row in sorted(rows, key=lambda row: row.turn_id)] == [False, True]


def test_records_that_stand_in_no_prompt_are_not_kept_by_number():
    log = PromptLog(1)
    recorded = log.record([{"role": "user", "content": "x"}], sources={0: Records.of([])})
    assert recorded == [{"role": "user", "content": "x"}]


async def test_a_way_of_a_later_release_shows_what_was_said_as_it_is(context, storage):
    await talk(context, 3)
    service, _ = make_service(storage, ["yes"], message_selector=MessageWindowMessageSelector(2))
    await service.prompt(context, "where is Rex?")
    first = (await context.chat_history.messages())[0]
    later = {"messages": [], "literal": {}, "sent": [0, [99, first.id], ["user", "said: ", [99, first.id]]]}
    await storage.write(lambda c: c.execute(update(prompt_log).values(content=later)))
    again = await AgentContext.get_or_create(storage, context.context_keys)
    [prompt] = inputs(again.memory)
    assert [each["content"] for each in prompt[1:3]] == [first.text, f"said: {first.text}"]
