"""What is kept of a run: exactly what was sent, in little space."""

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import func, select

from botservice import (
    ActionStep,
    AgentContext,
    AgentMemory,
    Attachment,
    MessageWindowMessageSelector,
    ScriptedChatLLM,
    TokenWindowMessageSelector,
    tool,
)
from botservice.storage.tables.conversations import blobs, prompt_log, steps
from tests.turns.bots import call, counting, make_service

NASTY = "nul \x00 half \ud800 [red] 🙂 " + '{"$blob": "x"} </memory>'


def inputs(memory):
    """Return what the models were sent, step by step."""
    found = [step.get_value("model_input_messages") for step in memory.steps]
    return [each for each in found if each is not None]


async def test_what_was_sent_reads_back_exactly(context, storage):
    for number in range(5):
        await context.chat_history.append_user_message(f"my dog is Rex {number} {NASTY}", author="alice")
        await context.chat_history.append_assistant_message("long " * 300)

    @tool
    async def look(text: str) -> list:
        """Look."""
        return [NASTY, "long " * 500, Attachment("image/png", data=b"x" * 3000)]

    script = ["a plan", call("look", text=NASTY), [NASTY, call("look", text="x")], call("nope"), NASTY]
    service, llm = make_service(
        storage,
        script,
        tools=[look],
        search_k=3,
        message_selector=MessageWindowMessageSelector(3),
        planning_interval=10,
        prompt="system " * 200 + NASTY,
    )
    await service.prompt(context, f"what is my dog called? {NASTY}", author="bob")
    memory = await context.load_memory()
    sent = json.loads(json.dumps(llm.prompts))
    assert json.loads(json.dumps(inputs(memory))) == sent
    assert inputs(memory) == llm.prompts
    again = await AgentContext.get_or_create(storage, context.context_keys)
    assert again.memory == memory
    assert AgentMemory.from_json(memory.to_json()) == memory
    assert memory.steps[2].observations_images[0].data == b"x" * 3000


async def test_it_does_after_a_resume_edits_deletions_and_a_prompt_that_keeps_steps(context, storage):
    service, llm = make_service(storage, [*counting(3), *counting(3)])
    run = await service.start(context, "go")
    await run.step()
    await run.step()
    run = await service.resume(context)
    run.memory.steps[1].observations = "edited"
    run.memory.steps[2].mood = "calm"
    run.memory.steps.insert(1, ActionStep(50, observations="put in"))
    await run.step()
    del run.memory.steps[2]
    await run.finish()
    expected = [*llm.prompts[1:]]
    assert inputs(await context.load_memory()) == expected
    run = await service.start(context, "again", reset=False)
    await run.step()
    run.memory.steps[2].observations = "an earlier prompt's step is edited"
    await run.finish()
    memory = await context.load_memory()
    assert inputs(memory) == [*expected, *llm.prompts[4:]]
    assert "an earlier prompt's step is edited" in str(llm.prompts[5])

    def count_whole(connection):
        return connection.execute(select(func.count()).where(steps.c.data.contains("model_input"))).scalar_one()

    assert await storage.read(count_whole) == 0


@pytest.mark.any_database
async def test_words_that_were_deleted_from_the_history_leave_the_record_too(context, storage):
    service, _ = make_service(storage, ["Noted.", "ok"], message_selector=MessageWindowMessageSelector(5))
    await service.prompt(context, "my pin is 1234")
    await service.prompt(context, "hello")
    [first, *_] = await context.chat_history.messages()
    await context.chat_history.delete_messages([first.id])
    last = (await context.load_memory()).steps[-1]
    assert [message["content"] for message in last.model_input_messages] == [
        "You are X",
        "[deleted]",
        "Noted.",
        "hello",
    ]


@pytest.mark.slow
async def test_a_run_of_200_steps_takes_little_space_for_each(sqlite_storage, sqlite_url):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    for number in range(20):
        await context.chat_history.append_user_message(f"message {number} " + "word " * 50)
    service, llm = make_service(
        sqlite_storage,
        counting(200),
        max_steps=200,
        prompt="a long system prompt " * 100,
        search_k=3,
        message_selector=TokenWindowMessageSelector(4000),
    )
    run = await service.start(context, "message 3")
    sizes = []
    while run.answer is None:
        await run.step()
        sizes.append(await asyncio.to_thread(size_of, sqlite_url))
    sent = sum(len(json.dumps(prompt)) for prompt in llm.prompts)
    first, last = sizes[99] - sizes[9], sizes[199] - sizes[109]
    assert last / 90 < 1_500  # bytes for each step, indexes and all
    assert last < first * 1.5
    assert sent > 25 * (sizes[-1] - sizes[0])
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    assert inputs(context.memory) == llm.prompts


def size_of(url):
    """Return the bytes of a database's pages, what is still in its log included."""
    import sqlite3

    with sqlite3.connect(Path(url.removeprefix("sqlite:///"))) as connection:
        [(count, free, size)] = connection.execute(
            "SELECT page_count, freelist_count, page_size "
            "FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
        )
    connection.close()
    return (count - free) * size


async def test_a_file_is_kept_once_however_often_it_is_shown(context, storage):
    picture = Attachment("image/png", "a.png", data=bytes(range(256)) * 400)

    @tool
    async def look() -> Attachment:
        """Look."""
        return picture

    def touch(step):
        step.mood = "calm"

    service, _ = make_service(storage, [call("look"), call("look"), "ok"], tools=[look], callbacks=[touch])
    await service.prompt(context, "see", attachments=[picture])

    def measure(connection):
        data = connection.execute(select(func.sum(func.length(steps.c.data)))).scalar_one()
        logged = connection.execute(select(func.sum(func.length(prompt_log.c.content)))).scalar_one()
        return data, logged, connection.execute(select(func.count()).select_from(blobs)).scalar_one()

    data, logged, kept = await storage.read(measure)
    assert data < 3000
    assert logged < 3000
    assert kept == 2  # the picture and the system prompt
    memory = (await context.load_memory()).steps
    assert memory[0].task_images == memory[1].observations_images == [picture]


@pytest.mark.any_database
@pytest.mark.slow
async def test_40_runs_at_once_on_one_agent_share_nothing(context, storage):
    together = asyncio.Event()
    waiting = []

    def reply(prompt):
        mine = next(message["content"] for message in prompt if message["role"] == "user")
        assert all(other not in json.dumps(prompt) for other in others(mine))
        done = sum(1 for message in prompt if message["role"] == "tool")
        if done < 3:
            return call("echo", text=f"{mine} {done}")
        return f"{mine} answered"

    @tool
    async def echo(text: str, where: AgentContext) -> str:
        """Echo."""
        if not together.is_set():
            waiting.append(text)
            if len(waiting) == 40:
                together.set()
            await together.wait()
        where.metadata["last"] = text
        return text

    def change(step, agent):
        step.mood = agent.memory.steps[0].task

    names = [f"<task {number}>" for number in range(40)]
    service, _ = make_service(storage, ScriptedChatLLM(reply), tools=[echo], callbacks=[change])
    contexts = [await AgentContext.get_or_create(storage, {"n": str(number)}) for number in range(40)]

    def others(mine):
        return [name for name in (names[0], names[20], names[39]) if name != mine]

    answers = await asyncio.gather(
        *(service.prompt(context, name) for context, name in zip(contexts, names, strict=True))
    )
    assert [answer.text for answer in answers] == [f"{name} answered" for name in names]
    for number, name in enumerate(names):
        own = await AgentContext.get_or_create(storage, {"n": str(number)})
        memory = await own.load_memory()
        assert own.metadata == {"last": f"{name} 2"}
        assert memory.steps[0].task == name
        assert [step.observations for step in memory.steps[1:4]] == [f"{name} {count}" for count in range(3)]
        assert [step.mood for step in memory.steps[1:4]] == [name] * 3
        assert [step.step_number for step in memory.steps[1:4]] == [1, 2, 3]
        assert len(memory.steps) == 5


async def test_a_prompt_is_one_row_of_the_log_and_comes_back_as_it_was(context, storage):
    service, model = make_service(storage, ["one", "two", "three"])
    for text in ("first", "second", "third"):
        await service.prompt(context, text)
    counts = await storage.read(
        lambda connection: (
            connection.execute(
                select(func.count())
                .select_from(prompt_log)
                .group_by(prompt_log.c.turn_id)
                .order_by(prompt_log.c.turn_id)
            )
            .scalars()
            .all()
        )
    )
    assert counts == [1, 1, 1]
    assert inputs(await context.load_memory()) == model.prompts
