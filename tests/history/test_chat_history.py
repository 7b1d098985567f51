"""What a history keeps, gives back and deletes, on both databases."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import func, select
from standins.patience import PATIENT

from botservice import AgentContext, Attachment, Author, Message, Role, Storage
from botservice.core.errors import StorageError
from botservice.devtools.conversations import forget_context
from botservice.history.queries import LAST_OF_A_PERSON
from botservice.storage.tables.conversations import blobs, contexts, messages

ODD_TEXTS = [
    "",
    " ",
    'it\'s "quoted" -- ; DROP TABLE messages; %s :name {} \\',
    "AI: function_call <|endoftext|>",
    "Grüße 🦙 こんにちは \u202eright to left\u202c \u200b",
    "line\r\nbreaks\ttabs\x01\x1f",
    "x" * 1_000_000,
    "é🦙" * 200_000,
]


@pytest.fixture
async def other(storage):
    return await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "other"})


async def texts(history, limit=None):
    return [message.text for message in await history.messages(limit)]


async def count_of(storage, table):
    return await storage.read(
        lambda connection: connection.execute(select(func.count()).select_from(table)).scalar_one()
    )


@pytest.mark.any_database
async def test_what_was_said_comes_back_oldest_first(context):
    history = context.chat_history
    said = [
        await history.append_user_message("hello", author="alice"),
        await history.append_assistant_message("hi"),
        await history.append_system_message("joined"),
    ]
    assert await history.messages() == said
    assert [message.role for message in said] == [Role.USER, Role.ASSISTANT, Role.SYSTEM]
    assert said[0].author == Author(name="alice")
    assert said[1].author is None
    assert len({message.id for message in said}) == 3
    fresh = await AgentContext.load(context.storage, context.id)
    assert await fresh.chat_history.messages() == said


@pytest.mark.any_database
async def test_a_limit_gives_the_newest(context):
    for number in range(5):
        await context.chat_history.append_user_message(str(number))
    assert await texts(context.chat_history, 2) == ["3", "4"]
    assert await texts(context.chat_history, 0) == []
    assert await texts(context.chat_history, 9) == ["0", "1", "2", "3", "4"]
    with pytest.raises(ValueError, match="0 or more, not -1"):
        await context.chat_history.messages(limit=-1)


async def test_any_text_is_kept_to_the_letter(context):
    for text in ODD_TEXTS:
        assert (await context.chat_history.append_user_message(text)).text == text
    assert await texts(context.chat_history) == ODD_TEXTS


async def test_what_no_database_keeps_is_replaced_alike_on_both(context):
    odd = "a\0b \ud800 c \udfff"
    message = await context.chat_history.append_user_message(
        odd,
        author=Author("plat\0form", "\ud83d", odd),
        attachments=[Attachment("text/\0plain", odd, url=f"https://example.com/{odd}")],
    )
    clean = "a\ufffdb \ufffd c \ufffd"
    [stored] = await context.chat_history.messages()
    assert stored.text == message.text == clean
    assert stored.author == message.author == Author("plat\ufffdform", "\ufffd", clean)
    assert stored.attachments[0].name == clean
    assert stored.attachments[0].url == f"https://example.com/{clean}"


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("alice", Author(name="alice")),
        (Author("telegram", "42", "Alice O'Neil"), Author("telegram", "42", "Alice O'Neil")),
        (Author("slack", "U1"), Author("slack", "U1")),
        (None, None),
        ("", None),
        (Author(), None),
    ],
)
async def test_authors_keep_their_identity(context, given, kept):
    message = await context.chat_history.append_user_message("hello", author=given)
    assert message.author == kept
    assert [each.author for each in await context.chat_history.messages()] == [kept]


async def test_imported_messages_keep_their_time_in_utc(context):
    at = datetime(2019, 5, 4, 23, 30, 15, 123456, tzinfo=timezone(timedelta(hours=-7)))
    message = await context.chat_history.append_user_message("old", created_at=at)
    [stored] = await context.chat_history.messages()
    assert stored.created_at == message.created_at == at
    assert stored.created_at.tzinfo is message.created_at.tzinfo is UTC
    before = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert (await context.chat_history.append_user_message("older", created_at=before)).created_at == before
    assert (await context.chat_history.messages(1))[0].created_at == before


async def test_a_naive_time_is_refused(context):
    with pytest.raises(ValueError, match="aware"):
        await context.chat_history.append_user_message("x", created_at=datetime(2020, 1, 1))  # noqa: DTZ001 - the point
    assert await context.chat_history.messages() == []


@pytest.mark.any_database
async def test_an_unknown_argument_is_refused(context):
    with pytest.raises(TypeError, match="autor"):
        await context.chat_history.append_user_message("x", autor="alice")


async def test_files_come_back_and_their_bytes_are_kept_once_per_context(context, other, storage):
    picture = Attachment("image/png", "cat.png", data=bytes(range(256)) * 100)
    linked = Attachment("application/pdf", None, url="https://example.com/a.pdf?x=1&y=ü")
    empty = Attachment("text/plain", "", data=b"")
    await context.chat_history.append_user_message("one", attachments=(picture, linked, empty))
    await context.chat_history.append_assistant_message("two", attachments=iter([picture]))
    await other.chat_history.append_user_message("three", attachments=[picture])
    one, two = await context.chat_history.messages()
    assert one.attachments == (picture, linked, empty)
    assert two.attachments == (picture,)
    assert await count_of(storage, blobs) == 3


@pytest.mark.any_database
async def test_the_last_message_of_a_person_is_known_without_waiting(context):
    history = context.chat_history
    assert history.last_user_message is None
    first = await history.append_user_message("first")
    await history.append_assistant_message("answer")
    assert history.last_user_message == first
    second = await history.append_user_message("second")
    assert history.last_user_message == second
    await history.delete_messages([second.id])
    assert history.last_user_message == first
    await history.clear()
    assert history.last_user_message is None


async def test_the_last_message_of_a_person_is_found_by_its_index_without_statistics(storage, context):
    explain = "EXPLAIN QUERY PLAN" if storage.is_sqlite else "EXPLAIN"

    def plan(connection):
        query = LAST_OF_A_PERSON.params(context=context.id).compile(connection, compile_kwargs={"literal_binds": True})
        return str(connection.exec_driver_sql(f"{explain} {query}").all())

    assert "ix_messages_of_people" in await storage.read(plan)


@pytest.mark.any_database
async def test_a_history_in_hand_follows_its_context(storage, context):
    mine = context.chat_history
    elsewhere = (await AgentContext.load(storage, context.id)).chat_history
    said = await elsewhere.append_user_message("said elsewhere")
    await context.refresh()
    assert context.chat_history is mine
    assert mine.last_user_message == said
    await elsewhere.clear()
    await context.refresh()
    assert context.chat_history is mine
    assert mine.last_user_message is None


@pytest.mark.any_database
async def test_deleting_gives_how_many_were_there(context):
    history = context.chat_history
    said = [await history.append_user_message(str(number)) for number in range(4)]
    assert await history.delete_messages([]) == 0
    assert await history.delete_messages([said[0].id, said[0].id, None, 0, -1, 10**30]) == 1
    assert await history.delete_messages({said[0].id, said[2].id}) == 1
    assert await texts(history) == ["1", "3"]
    assert await history.clear() == 2
    assert await history.clear() == 0
    assert await history.messages() == []


@pytest.mark.slow
async def test_more_messages_are_deleted_than_a_statement_takes_ids(context):
    [message] = [await context.chat_history.append_user_message("x")]
    assert await context.chat_history.delete_messages([*range(message.id + 1, message.id + 70_000), message.id]) == 1


@pytest.mark.any_database
async def test_another_chats_messages_cannot_be_deleted_or_found(context, other):
    mine = await context.chat_history.append_user_message("My dog is called Rex")
    assert await other.chat_history.delete_messages([mine.id]) == 0
    assert await other.chat_history.search("What is my dog called?") == []
    await other.chat_history.append_user_message("unrelated")
    await other.chat_history.clear()
    assert await context.chat_history.messages() == [mine]


async def test_a_number_is_not_given_twice(context):
    history = context.chat_history
    first = await history.append_user_message("first")
    await history.clear()
    assert (await history.append_user_message("second")).id > first.id


async def test_files_go_with_the_last_message_that_has_them(context, other, storage):
    shared, alone = (Attachment("image/png", data=name * 1_000) for name in (b"a", b"b"))
    one = await context.chat_history.append_user_message("one", attachments=[shared, alone])
    two = await context.chat_history.append_user_message("two", attachments=[shared])
    await other.chat_history.append_user_message("three", attachments=[shared])
    assert await count_of(storage, blobs) == 3
    await context.chat_history.delete_messages([one.id])
    assert await count_of(storage, blobs) == 2
    assert (await context.chat_history.messages())[0].attachments == (shared,)
    await context.chat_history.delete_messages([two.id])
    assert await count_of(storage, blobs) == 1
    assert (await other.chat_history.messages())[0].attachments == (shared,)


async def test_appends_at_once_get_distinct_positions_in_their_order(storage_url):
    keys = {"chat_id": "busy"}
    async with Storage.open(storage_url, limits=PATIENT) as one, Storage.open(storage_url, limits=PATIENT) as two:
        histories = [(await AgentContext.get_or_create(each, keys)).chat_history for each in (one, two)]
        said = await asyncio.gather(
            *(histories[number % 2].append_user_message(f"{number % 2}-{number:03}") for number in range(100))
        )
        rows = await one.read(
            lambda connection: connection.execute(
                select(messages.c.position, messages.c.id, messages.c.text).order_by(messages.c.position)
            ).all()
        )
    assert [row.position for row in rows] == list(range(1, 101))
    assert [row.id for row in rows] == sorted(message.id for message in said)
    for storage in "01":
        own = [row.text for row in rows if row.text.startswith(storage)]
        assert own == sorted(own)


async def test_an_append_that_is_cancelled_happens_or_does_not(context):
    task = asyncio.ensure_future(context.chat_history.append_user_message("cancelled"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await context.chat_history.append_user_message("after")
    assert await texts(context.chat_history) in (["after"], ["cancelled", "after"])


async def test_a_context_that_was_forgotten_takes_nothing_more(storage, context):
    await context.chat_history.append_user_message("x", attachments=[Attachment("image/png", data=b"x")])
    await forget_context(storage, context.id)
    with pytest.raises(StorageError, match="was deleted: get it again"):
        await context.chat_history.append_user_message("late")
    assert await context.chat_history.messages() == []
    assert await context.chat_history.search("x") == []
    assert [await count_of(storage, table) for table in (contexts, messages, blobs)] == [0, 0, 0]


@pytest.mark.any_database
async def test_a_message_that_was_never_stored_deletes_nothing(context):
    await context.chat_history.append_user_message("x")
    assert await context.chat_history.delete_messages([Message(text="x").id]) == 0


@pytest.mark.any_database
def test_a_history_can_always_be_searched(context):
    assert context.chat_history.is_searchable() is True
