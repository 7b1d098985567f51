"""Fills a database, shows what it holds, or works on it: run by 0.17.0 and by this release, which show the same.

python old_database.py fill|show|hold URL
"""

import asyncio
import contextlib
import importlib
import json
import sys

from sqlalchemy import (
    BigInteger,
    Boolean,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    create_engine,
    insert,
    make_url,
    select,
    text,
)

from botservice import (
    AgentContext,
    AgentMemory,
    AgentService,
    ApprovalPending,
    Attachment,
    Author,
    ChatResponse,
    FunctionsBasedAgent,
    MessageWindowMessageSelector,
    ScriptedChatLLM,
    Storage,
    TokenUsage,
    ToolCall,
    remember,
    sub_runs,
    tool,
)

CONVERTED = {"steps": {"data", "prompt", "prompt_ranges"}, "prompt_log": {"seq", "content"}}
VERSIONS = {"alembic_version", "botservice_version", "schema_compatibility"}
PICTURE = bytes(range(256)) * 20
ALICE, BOB = Author("test", "1", "Alice"), Author("test", "2", "Bob")
USAGE = TokenUsage(1425, 26, cached_tokens=8, reasoning_tokens=12)


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
async def fail() -> str:
    """Fail."""
    raise ValueError("it broke")


@tool(needs_approval=True)
async def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"


def make_service(storage, script, tools=(add, fail, pay, remember)):
    helper = FunctionsBasedAgent(
        tools=[add],
        llm=ScriptedChatLLM([answer("", [ToolCall("s", "add", {"a": 2, "b": 2})]), answer("four, says the helper")]),
        prompt="You help",
    )
    agent = FunctionsBasedAgent(
        tools=[*tools, helper.as_tool("helper", "Helps.")],
        llm=ScriptedChatLLM(script),
        prompt="You are a bot. " + "Be kind. " * 100,
        search_k=5,
        message_selector=MessageWindowMessageSelector(4),
    )
    return AgentService(agent=agent, storage=storage, max_steps=10)


def answer(text, calls=(), **more):
    return ChatResponse(text, tuple(calls), usage=USAGE, model="a-model", finish_reason="stop", **more)


async def fill(url):
    async with Storage.open(url, migrate=True) as storage:
        alone = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "1"})
        script = [
            answer("Rex is a dog"),
            answer("", [ToolCall("1", "add", {"a": 1, "b": 2}), ToolCall("2", "fail", {})], items=({"sealed": "x"},)),
            answer("", [ToolCall("3", "helper", {"task": "what is two and two?"})]),
            answer("", [ToolCall("4", "remember", {"fact": "Alice has a dog called Rex"})]),
            answer("it is three \ud800 \x00 and broke"),
            *(answer(f"answer {number} " + "and so on " * 100) for number in range(8)),
        ]
        service = make_service(storage, script)
        files = [Attachment("image/png", "a.png", data=PICTURE), Attachment("text/plain", "a.txt", data=b"x" * 5_000)]
        await service.prompt(alone, "my dog Rex likes the park\nand the river", author=ALICE, attachments=files)
        await service.prompt(alone, "add one and two, and ask the helper. My dog is called Rex", author=ALICE)
        for number in range(8):
            await service.prompt(alone, f"where is Rex in the park? {number}", author=ALICE)
        group = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "2"})
        for number in range(6):
            said = f"[2026-01-01 10:00 UTC] Bob: the park {number}\nyes"
            await group.chat_history.append_user_message(said, author=(ALICE, BOB)[number % 2])
        service = make_service(storage, [answer("nobody knows")] * 2)
        await service.prompt(group, "which park?", author=BOB)
        await (await service.start(group, "and again, of the park?", reset=False)).finish()
        waiting = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "3"})
        service = make_service(storage, [answer("", [ToolCall("5", "pay", {"to": "Anna"})])])
        with contextlib.suppress(ApprovalPending):
            await service.prompt(waiting, "pay Anna")
        await storage.write(lambda connection: put_older(connection, alone.id))
    engine = engine_of(url)
    with engine.begin() as connection:
        fill_the_rest(connection)
    engine.dispose()


def put_older(connection, context_id):
    """Store what the first releases wrote: a quote within a text."""
    found = MetaData()
    found.reflect(connection, only=["messages", "contexts"])
    messages, contexts = found.tables["messages"], found.tables["contexts"]
    last = connection.execute(select(contexts.c.last_position).where(contexts.c.id == context_id)).scalar_one()
    values = {
        "context_id": context_id,
        "position": last + 1,
        "role": "user",
        "text": '[in reply to you: "Rex is a dog"]\nis he?',
        "author_platform": "test",
        "author_id": "1",
        "author_name": "Alice",
        "created_at": 1,
    }
    connection.execute(insert(messages).values(values))
    connection.execute(contexts.update().where(contexts.c.id == context_id).values(last_position=last + 1))


def put_many(connection, count):
    """Store many messages of one more chat, every hundredth with a quote within its text."""
    found = MetaData()
    found.reflect(connection, only=["messages", "contexts"])
    messages, contexts = found.tables["messages"], found.tables["contexts"]
    row = connection.execute(select(contexts).order_by(contexts.c.id)).mappings().first()
    row = {**row, "key_hash": "many", "last_position": count, "message_count": count}
    del row["id"]
    number = connection.execute(insert(contexts).values(row)).inserted_primary_key[0]
    if connection.dialect.name == "postgresql":  # a trigger counts each message in the same row, which takes minutes
        connection.execute(text("SET session_replication_role = replica"))
    author = {"author_platform": "test", "author_id": "1", "author_name": "Alice"}
    for first in range(0, count, 10_000):
        values = [
            {
                "context_id": number,
                "position": at + 1,
                "role": "user",
                "created_at": 1,
                **author,
                "text": f'[in reply to you: "word {at}"]\nand {at}?' if at % 100 == 0 else f"word {at} of the park",
            }
            for at in range(first, first + 10_000)
        ]
        connection.execute(insert(messages), values)


def fill_the_rest(connection):
    """Put a row into every table that has none."""
    found = MetaData()
    found.reflect(connection)
    for table in found.sorted_tables:
        if table.name not in VERSIONS and connection.execute(select(table)).first() is None:
            row = {column.name: a_value(column) for column in table.c if column.name != "id"}
            connection.execute(insert(table).values(row))


def a_value(column):
    if column.foreign_keys:
        return 1
    if isinstance(column.type, Boolean):
        return False
    if isinstance(column.type, BigInteger | Integer | Float):
        return 1
    return b"\x01\x02" if isinstance(column.type, LargeBinary) else "[]"


def engine_of(url):
    parsed = make_url(url)
    return create_engine(parsed if parsed.drivername == "sqlite" else parsed.set(drivername="postgresql+psycopg"))


async def show(url):
    engine = engine_of(url)
    with engine.begin() as connection:
        tables = rows_of(connection)
    engine.dispose()
    async with Storage.open(url, migrate=False) as storage:
        ids = tables["contexts"]
        steps = [await storage.read(lambda c, i=number: steps_of(c, i)) for number in range(1, len(ids) + 1)]
    sys.stdout.write(json.dumps({"tables": tables, "steps": steps}, default=repr))


def rows_of(connection):
    found = MetaData()
    found.reflect(connection)
    shown = {}
    for table in found.sorted_tables:
        if table.name not in VERSIONS:
            columns = sorted(column.name for column in table.c if column.name not in CONVERTED.get(table.name, ()))
            rows = connection.execute(select(*(table.c[name] for name in columns)))
            shown[table.name] = sorted(
                {repr([bytes(v) if isinstance(v, memoryview) else v for v in row]) for row in rows}
            )
    return shown


def steps_of(connection, context_id):
    try:
        records = importlib.import_module("botservice.conversation.step_records")
    except ImportError:
        records = importlib.import_module("botservice.contexts.step_records")
    return [in_full(each.item) for each in records.read_steps(connection, context_id)]


def in_full(item):
    [full] = AgentMemory("", [item]).get_full_steps()
    runs = [[each.name, [in_full(step) for step in each.memory.steps]] for each in sub_runs(item)]
    return {**full, "sub_runs": runs}


async def hold(url):
    async with Storage.open(url, migrate=False) as storage:
        with storage.claims.working():
            sys.stdout.write("holds\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run({"fill": fill, "show": show, "hold": hold}[sys.argv[1]](sys.argv[2]))
