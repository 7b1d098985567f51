"""What an operator sees of everything that is kept, and how a conversation goes."""

import asyncio
import base64
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select
from standins.tools import add
from storage.effort import Efforts

from botservice import (
    AgentContext,
    AgentService,
    Attachment,
    Author,
    FunctionsBasedAgent,
    ScriptedChatLLM,
    Storage,
    ToolCall,
)
from botservice.conversation.reminder import Repeats
from botservice.conversation.reminder_queries import NewReminder, insert_reminder
from botservice.core.errors import StorageError
from botservice.core.messages import Role
from botservice.devtools.conversations import export_context, forget_context, list_contexts, read_turns
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.storage.tables.columns import metadata

SECRET = "the secret recipe"


async def ask(context, text):
    llm = ScriptedChatLLM([ToolCall("1", "add", {"a": 2, "b": 3}), f"5, says {SECRET}"])
    service = AgentService(FunctionsBasedAgent(tools=[add], llm=llm), context.storage)
    return await service.prompt(context, text, author=Author("test", "7", "Ann"))


async def context_of(storage, chat_id):
    return await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": chat_id})


@pytest.mark.any_database
async def test_conversations_are_listed_those_with_the_newest_messages_first(storage):
    one, two, silent = [await context_of(storage, name) for name in ("one", "two", "silent")]
    at = datetime(2025, 3, 1, 12, tzinfo=UTC)
    await two.chat_history.append_user_message("a", created_at=at)
    await one.chat_history.append_user_message("b", created_at=at)
    await one.chat_history.append_user_message("c")
    await one.chat_history.append_user_message("d", created_at=at)
    listed = await list_contexts(storage)
    assert [(each.id, each.message_count) for each in listed] == [(one.id, 3), (two.id, 1), (silent.id, 0)]
    assert [each.id for each in await list_contexts(storage, limit=2)] == [one.id, two.id]
    assert listed[1].as_dict() == {
        "id": two.id,
        "keys": {"transport": "test", "chat_id": "two"},
        "messages": 1,
        "last_message_at": "2025-03-01T12:00:00+00:00",
    }
    assert listed[2].last_message_at is None


@pytest.mark.any_database
async def test_an_export_holds_what_was_said_sent_and_done(storage, context):
    picture = Attachment("image/png", "cat.png", data=bytes(range(256)))
    link = Attachment("text/html", None, url="https://example.com")
    await context.chat_history.append_user_message("look", attachments=[picture, link])
    await ask(context, "What is 2 + 3?")
    exported = json.loads(json.dumps(await export_context(storage, context.id)))
    assert exported["context"]["keys"] == dict(context.context_keys)
    assert [each["text"] for each in exported["messages"]] == ["look", "What is 2 + 3?", f"5, says {SECRET}"]
    assert exported["messages"][1]["author"] == {"platform": "test", "id": "7", "name": "Ann"}
    files = exported["messages"][0]["attachments"]
    assert base64.b64decode(files[0]["data"]) == picture.data
    assert files[1] == {"name": None, "mime_type": "text/html", "url": "https://example.com"}
    assert len(exported["turns"]) == 1
    assert "add" in json.dumps(exported["turns"][0]["steps"])


@pytest.mark.any_database
async def test_an_export_holds_the_reminders_that_wait(storage, context):
    due_at = datetime(2026, 5, 4, 9, tzinfo=UTC)
    new = NewReminder(
        "k", context.id, "test", "Call mum", due_at, due_at, repeats=Repeats.DAILY, author=Author(name="Ann")
    )
    await storage.write(lambda connection: insert_reminder(connection, new))
    [kept] = json.loads(json.dumps(await export_context(storage, context.id)))["reminders"]
    assert (kept["text"], kept["due_at"], kept["repeats"]) == ("Call mum", "2026-05-04T09:00:00+00:00", "daily")


@pytest.mark.any_database
async def test_turns_are_read_one_by_one_or_all(storage, context):
    other = await context_of(storage, "other")
    await ask(context, "first")
    await ask(other, "not this one")
    await ask(context, "second")
    turns = await read_turns(storage, context.id)
    assert len(turns) == 2
    assert await read_turns(storage, context.id, turns[1].id) == turns[1:]
    [foreign] = await read_turns(storage, other.id)
    with pytest.raises(StorageError, match=f"context {context.id} has no turn {foreign.id}"):
        await read_turns(storage, context.id, foreign.id)


@pytest.mark.any_database
async def test_what_does_not_exist_is_said(storage):
    for look in (read_turns, export_context, forget_context):
        with pytest.raises(StorageError, match="there is no context 99: `botservice contexts`"):
            await look(storage, 99)


async def test_forgetting_leaves_no_row_and_nobody_elses_is_gone(storage, context):
    other = await context_of(storage, "other")
    for each in (context, other):
        file = Attachment("image/png", data=b"bytes")
        await each.chat_history.append_user_message("look", attachments=[file])
        await ask(each, SECRET)

    def count(connection):
        return {
            table.name: dict(
                connection.execute(select(table.c.context_id, func.count()).group_by(table.c.context_id)).all()
            )
            for table in metadata.sorted_tables
            if "context_id" in table.c
            and table.name != "model_usage"  # what is spent is spent; there are no words in it
        }

    before = await storage.read(count)
    await forget_context(storage, context.id)
    after = await storage.read(count)
    assert [name for name, rows in after.items() if context.id in rows] == []
    assert {name: rows.get(other.id) for name, rows in after.items()} == {
        name: rows.get(other.id) for name, rows in before.items()
    }
    assert await other.chat_history.messages() != []


async def test_what_was_forgotten_has_left_the_files(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        context = await context_of(storage, "1")
        await ask(context, SECRET)
        await forget_context(storage, context.id)
        path = storage.where.path
        left = [file.name for file in Path(path).parent.glob("bot.db*") if SECRET.encode() in file.read_bytes()]
    assert left == []


async def test_the_list_of_conversations_costs_the_same_however_much_was_said(sqlite_storage: Storage) -> None:
    talking = [await AgentContext.get_or_create(sqlite_storage, {"chat_id": str(number)}) for number in range(10)]

    def say(connection: Connection, times: int) -> None:
        for each in talking:
            for _ in range(times):
                insert_message(connection, each.id, NewMessage(Role.USER, "hello", sqlite_storage.now()))

    efforts, costs = Efforts(sqlite_storage), []
    for times in (10, 190):
        await sqlite_storage.write(lambda connection, times=times: say(connection, times))  # type: ignore[misc]  # bound at once
        efforts.most()
        assert len(await list_contexts(sqlite_storage, limit=5)) == 5
        costs.append(max(efforts.most()))
    assert costs[1] < 1.5 * costs[0] + 200


async def test_what_is_listed_and_exported_takes_no_connection_of_the_turns(storage: Storage) -> None:
    context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
    await ask(context, "how much?")
    is_over = threading.Event()
    held = [asyncio.create_task(storage.read(lambda _: is_over.wait(60))) for _ in range(2)]
    try:
        async with asyncio.timeout(30):
            [listed] = await list_contexts(storage)
            [turn] = await read_turns(storage, context.id)
            exported = await export_context(storage, context.id)
    finally:
        is_over.set()
        await asyncio.gather(*held)
    assert (listed.message_count, len(exported["messages"]), exported["turns"][0]["turn"]) == (2, 2, turn.id)
