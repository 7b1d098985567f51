"""The lazily paged sequence against a plain list, and how much of a chat it reads."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from botservice import AgentContext, Attachment, MessageWindowMessageSelector
from botservice.history.window import StoredMessages
from botservice.storage.tables.conversations import messages

SIZES = [0, 1, 31, 32, 33, 100, 700]


async def fill(storage, context_id, count):
    """Put messages into an empty chat, without their counting and numbering one by one."""
    said = [
        {
            "context_id": context_id,
            "position": number + 1,
            "role": ("user", "assistant", "system")[number % 3],
            "text": f"m{number}",
            "created_at": datetime.now(UTC),
        }
        for number in range(count)
    ]
    if said:
        await storage.write(lambda connection: connection.execute(insert(messages), said))


@pytest.fixture
async def chats(storage):
    """The ids of chats by how many messages they have."""
    found = {}
    for size in SIZES:
        context = await AgentContext.get_or_create(storage, {"chat_id": str(size)})
        await fill(storage, context.id, size)
        found[size] = context.id
    return found


indices = st.one_of(st.none(), st.integers(-800, 800))
steps = st.one_of(st.none(), st.integers(-40, 40).filter(bool))
uses = st.lists(
    st.one_of(
        st.integers(-800, 800),
        st.builds(slice, indices, indices, steps),
        st.sampled_from(["len", "reversed", "iterate", "first of reversed"]),
    ),
    min_size=1,
    max_size=4,
)


def use(chat, how):
    if how == "len":
        return len(chat)
    if how == "first of reversed":
        return next((each.text for each in reversed(chat)), None)
    if isinstance(how, int):
        try:
            return chat[how].text
        except IndexError:
            return "IndexError"
    if how == "iterate":
        return [each.text for each in chat]
    return [each.text for each in (reversed(chat) if how == "reversed" else chat[how])]


@pytest.mark.slow
async def test_it_behaves_as_a_list_does(storage, chats):
    plain = {size: await AgentContext.load(storage, chats[size]) for size in SIZES}
    lists = {size: await context.chat_history.messages() for size, context in plain.items()}

    def check(connection):
        @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(size=st.sampled_from(SIZES), uses=uses)
        def behaves(size, uses):
            stored = StoredMessages(connection, chats[size])
            for how in uses:
                assert use(stored, how) == use(lists[size], how)

        behaves()

    await storage.read(check)


def reading(context_id, how):
    """Return a query that does something to a chat's messages and returns how many rows were read for it."""

    def query(connection):
        stored = StoredMessages(connection, context_id)
        how(stored)
        return len(stored._rows)

    return query


def newest(count):
    def walk(chat):
        for taken, _ in enumerate(reversed(chat), 1):
            if taken == count:
                break

    return walk


READINGS = [
    (lambda chat: None, 0),
    (len, 0),
    (newest(1), 32),
    (newest(20), 32),
    (newest(33), 64),
    (lambda chat: chat[-1], 32),
    (lambda chat: chat[-40:], 64),
    (lambda chat: chat[-40:-35], 64),
    (lambda chat: chat[len(chat) - 3], 32),
    (lambda chat: chat[690:], 32),
    (lambda chat: chat[:0], 0),
    (lambda chat: chat[0], 700),
    (MessageWindowMessageSelector(10).get_messages, 32),
]


async def test_it_reads_no_further_back_than_is_looked(storage, chats):
    rows = [await storage.read(reading(chats[700], how)) for how, _ in READINGS]
    assert [read <= most for read, (_, most) in zip(rows, READINGS, strict=True)] == [True] * len(READINGS), rows


async def test_files_are_read_with_the_message_that_is_taken(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "files"})
    for number in range(10):
        file = Attachment("image/png", f"{number}.png", data=bytes([number]) * 10)
        await context.chat_history.append_user_message(f"m{number}", attachments=[file])
    statements = []

    def select_and_watch(connection):
        driver = connection.connection.dbapi_connection
        driver.set_trace_callback(statements.append)
        try:
            return MessageWindowMessageSelector(1).get_messages(StoredMessages(connection, context.id))
        finally:
            driver.set_trace_callback(None)

    [last] = await sqlite_storage.read(select_and_watch)
    assert last.attachments[0].data == bytes([9]) * 10
    assert len([each for each in statements if "FROM blobs" in each]) == 1


async def test_it_ends_before_a_position(storage, chats):
    def query(connection):
        stored = StoredMessages(connection, chats[100], before_position=41)
        return len(stored), [each.text for each in stored], stored[-1].text, stored[0].text

    assert await storage.read(query) == (40, [f"m{number}" for number in range(40)], "m39", "m0")


async def test_a_chat_with_gaps_is_read_whole(storage):
    context = await AgentContext.get_or_create(storage, {"chat_id": "gaps"})
    await fill(storage, context.id, 200)
    said = await context.chat_history.messages()
    await context.chat_history.delete_messages([each.id for each in said if int(each.text[1:]) % 3])
    left = [each.text for each in await context.chat_history.messages()]
    assert left == [f"m{number}" for number in range(0, 200, 3)]
    found = await storage.read(
        lambda connection: [each.text for each in reversed(StoredMessages(connection, context.id))]
    )
    assert found[::-1] == left


async def test_another_chats_messages_are_not_in_it(storage, chats):
    other = await AgentContext.get_or_create(storage, {"chat_id": "other"})
    await other.chat_history.append_user_message("other")
    assert await storage.read(lambda connection: len(StoredMessages(connection, other.id))) == 1
    assert await storage.read(lambda connection: StoredMessages(connection, other.id)[0].text) == "other"
