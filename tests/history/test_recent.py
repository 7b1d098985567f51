"""What is kept of chats between turns: never another view than the database shows, and never without a bound."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import delete, update

from botservice import AgentContext, Attachment, MessageWindowMessageSelector, Storage
from botservice.core.messages import Role
from botservice.history.edit_queries import change_message
from botservice.history.queries import find_window, insert_message
from botservice.history.recent import RecentMessages
from botservice.history.rows import NewMessage, NewWords
from botservice.llm.tokens import counter_for
from botservice.storage.tables.conversations import contexts, messages

KEYS = {"transport": "telegram", "chat_id": "1"}
COUNTER = counter_for()


async def say(storage, context, text, external_id=None, role=Role.USER):
    """Store a message and return it."""
    new = NewMessage(
        role,
        text,
        datetime.now(UTC),
        token_count=COUNTER.count(text),
        token_encoding=COUNTER.name,
        external_id=external_id,
    )
    return await storage.write(lambda connection: insert_message(connection, context.id, new))


async def texts(context, count=100):
    """Return what a window before the last message of a person holds."""
    await context.chat_history.refresh()
    recall = await context.chat_history.recall(MessageWindowMessageSelector(count), search_k=0)
    return [each.text for each in recall.window]


def newest(recent, connection, context):
    """Return the texts of what is kept of a chat once it is brought up to date with a view."""
    bounds = find_window(connection, context.id, None)
    found = recent.newest(connection, context.id, bounds.version, bounds.last, COUNTER.name)
    return [each.text for each in found.at.values()]


async def test_what_another_process_said_edited_and_deleted_is_seen_in_the_next_window(sqlite_storage, sqlite_url):
    context = await AgentContext.get_or_create(sqlite_storage, KEYS)
    first = await say(sqlite_storage, context, "one", "1")
    await say(sqlite_storage, context, "two", "2")
    await say(sqlite_storage, context, "?")
    assert await texts(context) == ["one", "two"]
    async with Storage.open(sqlite_url) as other:
        there = await AgentContext.get_or_create(other, KEYS)
        await say(other, there, "??")
        assert await texts(context) == ["one", "two", "?"]
        words = NewWords("zwei", (), 1, COUNTER.name)
        await other.write(lambda c: change_message(c, context.id, "2", words, datetime.now(UTC)))
        assert await texts(context) == ["one", "zwei", "?"]
        await there.chat_history.delete_messages([first.id])
    assert await texts(context) == ["zwei", "?"]


async def test_a_window_reaches_from_what_is_kept_back_to_what_is_not(storage):
    context = await AgentContext.get_or_create(storage, KEYS)
    for number in range(100):
        await say(storage, context, f"m{number}")
    assert await texts(context, 5) == ["m94", "m95", "m96", "m97", "m98"]
    await say(storage, context, "m100")
    assert await texts(context, 70) == [f"m{number}" for number in range(30, 100)]
    assert await texts(context, 200) == [f"m{number}" for number in range(100)]


async def test_an_older_view_does_not_show_what_a_newer_one_had_kept(storage):
    context = await AgentContext.get_or_create(storage, KEYS)
    await say(storage, context, "one", "1")
    recent = RecentMessages()

    def older(connection):
        bounds = find_window(connection, context.id, None)
        yield newest(recent, connection, context)
        yield recent.newest(connection, context.id, bounds.version, bounds.last - 1, COUNTER.name).last

    await storage.read(lambda connection: newest(recent, connection, context))
    await say(storage, context, "two")
    assert await storage.read(lambda connection: newest(recent, connection, context)) == ["one", "two"]
    assert await storage.read(lambda connection: list(older(connection))) == [["one", "two"], 1]
    assert await storage.read(lambda connection: newest(recent, connection, context)) == ["one", "two"]


async def test_files_are_not_kept_and_come_with_every_window(storage):
    context = await AgentContext.get_or_create(storage, KEYS)
    await context.chat_history.append_user_message("look", attachments=[Attachment("image/png", data=b"png")])
    await context.chat_history.append_user_message("?")
    for _ in range(2):
        recall = await context.chat_history.recall(MessageWindowMessageSelector(5), search_k=0)
        assert [each.data for message in recall.window for each in message.attachments] == [b"png"]
    kept = await storage.read(lambda connection: find_window(connection, context.id, None))
    recent = RecentMessages.of(storage)
    found = await storage.read(
        lambda connection: recent.catch_up(connection, context.id, version=kept.version, last=kept.last)
    )
    assert not found.of_ids([recall.window[0].id])


@pytest.mark.parametrize("length", [1, 40_000])
async def test_of_a_long_chat_the_newest_messages_are_kept_alone(sqlite_storage, length):
    context = await AgentContext.get_or_create(sqlite_storage, KEYS)
    recent = RecentMessages()
    for number in range(2_300 if length == 1 else 60):
        await say(sqlite_storage, context, f"{number} {'x' * length}")
        if number % 20 == 0:
            found = await sqlite_storage.read(lambda connection: newest(recent, connection, context))
            assert found[-1].startswith(f"{number} ")
            assert len(found) <= 2_048
            assert sum(map(len, found)) <= 2 * 1024 * 1024


async def test_of_many_chats_those_read_last_are_kept_alone(sqlite_storage):
    recent = RecentMessages(limit_bytes=3_000)
    bounds = []
    for number in range(5):
        context = await AgentContext.get_or_create(sqlite_storage, {"transport": "telegram", "chat_id": str(number)})
        await say(sqlite_storage, context, "x" * 500)
        await sqlite_storage.read(lambda connection, context=context: newest(recent, connection, context))
        bounds.append(context.id)

    def kept(connection):
        return [recent.catch_up(connection, each, version=0, last=1) is not None for each in bounds]

    assert await sqlite_storage.read(kept) == [False, False, False, True, True]


async def test_a_chat_in_which_old_messages_are_found_is_kept_further_back(storage):
    context = await AgentContext.get_or_create(storage, KEYS)
    for number in range(400):
        await say(storage, context, f"m{number}")
    recent = RecentMessages()

    def widen(connection):
        known = recent.newest(connection, context.id, 0, 400, COUNTER.name)
        return recent.reach_back(connection, context.id, known)

    kept = [await storage.read(widen) for _ in range(4)]
    assert [each.after for each in kept] == [240, 112, 0, 0]
    assert [each.text for each in kept[-1].at.values()] == [f"m{number}" for number in range(400)]
    assert kept[-1].of_ids(kept[-1].positions).keys() == kept[-1].positions.keys()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
async def test_what_a_restored_database_has_lost_is_not_shown_where_its_positions_are_given_again(storage, count):
    context = await AgentContext.get_or_create(storage, KEYS)
    for text in ("one", "two", "?"):
        await say(storage, context, text)
    assert await texts(context) == ["one", "two"]

    def lose(connection):
        connection.execute(delete(messages).where(messages.c.context_id == context.id, messages.c.position > 1))
        connection.execute(update(contexts).where(contexts.c.id == context.id).values(last_position=1))

    await storage.write(lose)
    said = [f"m{number}" for number in range(count)]
    for text in (*said, "??"):
        await say(storage, context, text)
    assert await texts(context) == ["one", *said]
