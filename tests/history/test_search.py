"""Searching a stored chat: what is found, how an index keeps up with its storage, and how large it gets."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update
from standins.patience import PATIENT

from botservice import AgentContext, Attachment, Author, NoMessages, Storage
from botservice.history.chat_history import ChatHistory
from botservice.history.context_index import PAGE
from botservice.history.edit_queries import change_message
from botservice.history.finding import SearchIndexes
from botservice.history.rows import NewWords
from botservice.history.search_values import Question
from botservice.storage.tables.conversations import contexts, messages, word_blocks

START = datetime(2024, 3, 1, 9, tzinfo=UTC)


async def say(history, *texts, start=START, **kwargs):
    return [
        await history.append_user_message(text, created_at=start + timedelta(hours=12 * n), **kwargs)
        for n, text in enumerate(texts)
    ]


async def texts_of(history, text, k=10, **kwargs):
    return [hit.message.text for hit in await history.search(text, k, **kwargs)]


async def fill(storage, context, rows):
    """Store many messages at once."""

    def write(connection):
        count = len(rows)
        last = connection.execute(
            update(contexts)
            .where(contexts.c.id == context.id)
            .values(last_position=contexts.c.last_position + count)
            .returning(contexts.c.last_position)
        ).scalar_one()
        connection.execute(
            messages.insert(),
            [
                {
                    "context_id": context.id,
                    "position": last - count + 1 + n,
                    "role": "user",
                    "text": text,
                    "created_at": START + timedelta(hours=n),
                }
                for n, text in enumerate(rows)
            ],
        )

    await storage.write(write)


@pytest.mark.any_database
async def test_a_message_repeated_word_for_word_is_found_first(context):
    history = context.chat_history
    said = ["My dog is called Rex", "ok", "I live in Bonn", "/etc/hosts is broken", "👍", "the dog sleeps in Bonn"]
    await say(history, *said)
    for text in said:
        assert (await texts_of(history, text, k=1)) == [text]


@pytest.mark.any_database
async def test_another_chats_text_is_never_found(storage, context):
    other = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "2"})
    await say(other.chat_history, "My dog is called Rex")
    await say(context.chat_history, "My cat is called Tom")
    assert await texts_of(context.chat_history, "My dog is called Rex") == ["My cat is called Tom"]
    assert await texts_of(context.chat_history, "Rex dog") == []


@pytest.mark.any_database
async def test_deleted_messages_are_never_found_again(context):
    history = context.chat_history
    first, second, _ = await say(history, "My dog is called Rex", "Rex is two years old", "Rex likes the sea")
    assert len(await history.search("Rex")) == 3
    await history.delete_messages([first.id])
    assert sorted(await texts_of(history, "Rex")) == ["Rex is two years old", "Rex likes the sea"]
    await history.delete_messages([second.id])
    await say(history, "Rex is back")
    assert sorted(await texts_of(history, "My dog is called Rex")) == ["Rex is back", "Rex likes the sea"]
    await history.clear()
    assert await history.search("Rex") == []


async def test_a_deletion_does_not_build_the_index_anew(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    first, _ = await say(context.chat_history, "My dog is called Rex", "Rex is two years old")
    await context.chat_history.search("Rex")
    index = SearchIndexes.of(sqlite_storage)._indexes[context.id].index
    await context.chat_history.delete_messages([first.id])
    assert await texts_of(context.chat_history, "Rex") == ["Rex is two years old"]
    assert SearchIndexes.of(sqlite_storage)._indexes[context.id].index is index
    assert len(index) == 1


async def test_a_changed_text_is_found_by_its_new_words_alone(storage, context):
    history = context.chat_history
    first, _ = await say(history, "My dog is called Rex", "We went to Lisbon")
    await history.search("Rex")

    def change(connection):
        connection.execute(update(messages).where(messages.c.id == first.id).values(text="My dog is called Bello"))
        connection.execute(
            update(contexts).where(contexts.c.id == context.id).values(deletion_version=contexts.c.deletion_version + 1)
        )

    await storage.write(change)
    assert await texts_of(history, "Rex") == []
    assert await texts_of(history, "Bello") == ["My dog is called Bello"]


@pytest.mark.any_database
@pytest.mark.parametrize("happens", ["edited", "deleted", "cleared"])
async def test_what_an_earlier_release_wrote_down_of_a_long_chats_words_goes_when_its_messages_change(
    storage, context, happens
):
    other = await AgentContext.get_or_create(storage, {"chat_id": "another"})
    message = await context.chat_history.append_user_message("My dog is called Rex")
    area = {"first_position": 1, "last_position": 9, "block": 0, "data": b"rex"}
    rows = [{"context_id": each.id, **area} for each in (context, other)]
    await storage.write(lambda connection: connection.execute(word_blocks.insert(), rows))

    def edit(connection):
        connection.execute(update(messages).where(messages.c.id == message.id).values(external_id="7"))
        return change_message(
            connection, context.id, "7", NewWords("My dog is called Bello", (), 5, "o200k_base"), START
        )

    if happens == "edited":
        await storage.write(edit)
    elif happens == "deleted":
        await context.chat_history.delete_messages([message.id])
    else:
        await context.chat_history.clear()
    left = await storage.read(lambda connection: connection.execute(select(word_blocks.c.context_id)).scalars().all())
    assert left == [other.id]


async def test_what_another_replica_stores_and_deletes_is_seen(storage_url):
    async with Storage.open(storage_url, limits=PATIENT) as here, Storage.open(storage_url, limits=PATIENT) as there:
        mine = (await AgentContext.get_or_create(here, {"chat_id": "1"})).chat_history
        theirs = (await AgentContext.get_or_create(there, {"chat_id": "1"})).chat_history
        (first,) = await say(mine, "My dog is called Rex")
        assert len(await theirs.search("Rex")) == 1
        await say(theirs, "Rex barks")
        assert len(await mine.search("Rex")) == 2
        await theirs.delete_messages([first.id])
        assert await texts_of(mine, "Rex") == ["Rex barks"]


@pytest.mark.any_database
async def test_a_forgotten_context_leaves_memory(storage, context):
    history = context.chat_history
    await say(history, "My dog is called Rex")
    await history.search("Rex")
    await storage.write(lambda connection: connection.execute(contexts.delete().where(contexts.c.id == context.id)))
    assert await history.search("Rex") == []
    assert SearchIndexes.of(storage).size_bytes == 0


async def test_a_long_chat_is_taken_in_page_by_page(storage, context):
    history = context.chat_history
    await fill(storage, context, [f"note {n} about thing{n}" for n in range(2 * PAGE + 7)])
    for number in (0, PAGE - 1, PAGE, 2 * PAGE + 6):
        assert (await texts_of(history, f"thing{number}", k=1)) == [f"note {number} about thing{number}"]


async def test_what_goes_while_a_long_chat_is_compared_is_not_found(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    history = context.chat_history
    await fill(sqlite_storage, context, [f"note {n} about thing{n}" for n in range(3 * PAGE)])
    ids = [hit.message.id for n in (5, PAGE + 5, 2 * PAGE + 5) for hit in await history.search(f"thing{n}", 1)]
    await history.delete_messages([ids[2]])
    indexes, question = SearchIndexes.of(sqlite_storage), Question(f"thing{2 * PAGE + 5}", 1, START)
    assert await sqlite_storage.read(lambda c: indexes.search(c, context.id, question)) is None  # one page of three
    await history.delete_messages([ids[0]])
    for n in (5, 2 * PAGE + 5):
        assert f"note {n} about thing{n}" not in await texts_of(history, f"thing{n}")
    assert await texts_of(history, f"thing{PAGE + 5}", k=1) == [f"note {PAGE + 5} about thing{PAGE + 5}"]


async def test_the_event_loop_does_not_wait_for_an_index_that_a_thread_works_on(sqlite_storage):
    history = (await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})).chat_history
    await say(history, "My dog is called Rex")
    await history.search("dog")
    [entry] = SearchIndexes.of(sqlite_storage)._indexes.values()
    with entry.lock:
        searching = asyncio.create_task(history.search("dog"))
        await asyncio.sleep(0)  # were the lock waited for here, nothing would ever give it back
        assert not searching.done()
    assert [hit.message.text for hit in await searching] == ["My dog is called Rex"]


async def test_a_chat_is_searched_beside_the_event_loop(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    await say(context.chat_history, "My dog is called Rex")
    indexes, threads = SearchIndexes.of(sqlite_storage), []

    def search(connection):
        threads.append(threading.current_thread())
        return indexes.search(connection, context.id, Question("dog", 1, START))

    for _ in range(3):
        assert [hit.message.text for hit in await indexes.read(sqlite_storage, search)] == ["My dog is called Rex"]
    assert threading.current_thread() not in threads


async def test_other_reads_pass_while_a_long_chat_is_taken_in(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    await fill(sqlite_storage, context, [f"note {n}" for n in range(10 * PAGE)])
    indexes, seen = SearchIndexes.of(sqlite_storage), []
    question = Question("note 7", 1, START)

    def search(connection):
        seen.append(len(indexes._indexes[context.id].index) if context.id in indexes._indexes else 0)
        return indexes.search(connection, context.id, question)

    async with asyncio.TaskGroup() as tasks:
        searching = [tasks.create_task(indexes.read(sqlite_storage, search)) for _ in range(3)]
    assert len({task.result()[0].message.id for task in searching}) == 1
    assert len(seen) > 10


async def test_many_searches_at_once_agree(storage, context):
    history = context.chat_history
    await fill(storage, context, [f"note {n} about thing{n % 50}" for n in range(PAGE + 50)])
    found = await asyncio.gather(*(history.search(f"thing{n % 50}", 5) for n in range(60)))
    again = await asyncio.gather(*(history.search(f"thing{n % 50}", 5) for n in range(60)))
    assert [[hit.message.id for hit in hits] for hits in found] == [[hit.message.id for hit in hits] for hits in again]
    assert all(len({hit.message.id for hit in hits}) == 5 for hits in found)


async def test_searching_while_messages_come_and_go_finds_only_what_is_there(storage, context):
    history = context.chat_history

    async def come_and_go():
        for n in range(10):
            first, _ = await say(history, f"Rex did trick {n}", f"Rex slept {n}")
            await history.delete_messages([first.id])

    async def look():
        for _ in range(20):
            assert all("slept" in text or "trick" in text for text in await texts_of(history, "Rex"))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(come_and_go())
        tasks.create_task(look())
        tasks.create_task(look())
    assert sorted(await texts_of(history, "Rex")) == [f"Rex slept {n}" for n in range(10)]


async def test_the_least_recently_used_indexes_go_first(sqlite_storage):
    indexes = SearchIndexes(limit_bytes=120_000)
    everything = []
    for number in range(12):
        context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": str(number)})
        await fill(sqlite_storage, context, [f"note {n} of chat {number}" for n in range(40)])
        everything.append(context.id)
    question = Question("note", 1, START)
    for context_id in [*everything, *everything]:
        assert await indexes.read(sqlite_storage, lambda c, number=context_id: indexes.search(c, number, question))
        assert indexes.size_bytes <= 120_000
        assert sum(indexes._sizes.values()) == indexes.size_bytes
        assert indexes._sizes.keys() == indexes._indexes.keys()
    assert 1 < len(indexes._indexes) < 12
    assert list(indexes._indexes)[-1] == everything[-1]


async def test_one_chat_above_the_limit_is_searched_all_the_same(sqlite_storage):
    indexes = SearchIndexes(limit_bytes=1)
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    await say(context.chat_history, "My dog is called Rex")
    for _ in range(2):
        found = await indexes.read(sqlite_storage, lambda c: indexes.search(c, context.id, Question("dog", 3, START)))
        assert [hit.message.text for hit in found] == ["My dog is called Rex"]


async def test_an_index_that_fails_is_built_anew(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    history = context.chat_history
    await say(history, "My dog is called Rex")
    await history.search("Rex")
    SearchIndexes.of(sqlite_storage)._indexes[context.id].index._positions = None
    with pytest.raises(TypeError):
        await history.search("Rex")
    assert len(await history.search("Rex")) == 1


@pytest.mark.any_database
async def test_files_are_found_by_their_names_and_captions(context):
    history = context.chat_history
    await history.append_user_message("", attachments=[Attachment("application/pdf", "rental-contract.pdf", data=b"%")])
    await history.append_user_message("us at the beach", attachments=[Attachment("image/jpeg", "photo.jpg", data=b"x")])
    await history.append_user_message("[voice message, 0:05, transcribed]\nthe code for the gate is 4711")
    assert [hit.message.id for hit in await history.search("rental contract", 1)] == [1]
    assert [hit.message.id for hit in await history.search("beach", 1)] == [2]
    assert [hit.message.id for hit in await history.search("gate code", 1)] == [3]
    assert await history.search("photo.jpg") == []


@pytest.mark.any_database
async def test_notes_of_the_service_and_commands_are_not_found(context):
    history = context.chat_history
    await history.append_system_message("the memory was cleared")
    await say(history, "/start", "/help@my_bot", "[sticker]", "/remember milk and bread")
    assert await history.search("memory cleared start help my_bot sticker") == []
    assert await texts_of(history, "what about milk?") == ["/remember milk and bread"]
    assert await texts_of(history, "/remember milk and bread", k=1) == ["/remember milk and bread"]


@pytest.mark.any_database
@pytest.mark.parametrize("text", ["", "  ", "\n", "\u200b", "/start", "[sticker]"])
async def test_nothing_to_look_for_finds_nothing(context, text):
    await say(context.chat_history, "My dog is called Rex", "/start", "[sticker]")
    assert await context.chat_history.search(text) == []


@pytest.mark.any_database
async def test_yesterday_counts_from_the_message_that_says_it(context):
    history = context.chat_history
    await history.append_user_message("the run was hard", created_at=START)
    await history.append_user_message("the run was easy", created_at=START + timedelta(days=20))
    await history.append_user_message("the run was fine", created_at=START + timedelta(days=40))
    await history.append_user_message("how was the run yesterday?", created_at=START + timedelta(days=21))
    recall = await history.recall(NoMessages(), search_k=1)
    assert [hit.message.text for hit in recall.found] == ["the run was easy"]


@pytest.mark.any_database
async def test_i_and_my_are_the_askers_by_identity(context):
    history = context.chat_history
    anna, ben = Author("telegram", "7", "Anna"), Author("telegram", "8", "Anna")
    await say(history, "favourite colour: green", author=anna)
    await say(history, "favourite colour: blue", author=ben, start=START + timedelta(days=9))
    assert (await texts_of(history, "what is my favourite colour", k=1, asker=anna)) == ["favourite colour: green"]
    assert (await texts_of(history, "what is my favourite colour", k=1, asker=ben)) == ["favourite colour: blue"]


@pytest.mark.any_database
async def test_a_negative_k_is_refused_and_zero_finds_nothing(context):
    await say(context.chat_history, "My dog is called Rex")
    with pytest.raises(ValueError, match="k must be 0 or more"):
        await context.chat_history.search("dog", k=-1)
    assert await context.chat_history.search("dog", k=0) == []


async def test_both_databases_find_the_same_with_the_same_scores(sqlite_url, postgres_url):
    found = []
    for url in (sqlite_url, postgres_url):
        async with Storage.open(url, limits=PATIENT) as storage:
            context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
            history: ChatHistory = context.chat_history
            await fill(
                storage, context, [f"note {n} on topic{n % 17} and {'tea' if n % 3 else 'milk'}" for n in range(700)]
            )
            await say(history, "이름은 두부야", "Straße in Köln", "naïve café 🦄")
            questions = ("topic3 with milk", "두부", "strasse koln", "🦄", "what did I note on topic9")
            found.append(
                [[(hit.message.id, hit.score) for hit in await history.search(text, 10)] for text in questions]
            )
    assert found[0] == found[1]
    assert all(found[0])


async def test_a_question_that_is_asked_again_is_ranked_once_and_sees_what_has_changed(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    history = context.chat_history
    await say(history, "My dog is called Rex", "The dog barks", "Nice weather", "what does my dog do?")
    first = await history.recall(NoMessages(), search_k=2)
    assert (await history.recall(NoMessages(), search_k=2)).found is first.found
    assert [hit.message.text for hit in first.found] != []
    assert len((await history.recall(NoMessages(), search_k=1)).found) == 1
    await history.delete_messages([first.found[0].message.id])
    again = await history.recall(NoMessages(), search_k=2)
    assert first.found[0].message.id not in [hit.message.id for hit in again.found]
    question = history.last_user_message
    await say(history, "my dog sleeps")
    history.remember_last(question)
    later = await history.recall(NoMessages(), search_k=2)
    assert "my dog sleeps" in [hit.message.text for hit in later.found]


async def test_of_two_questions_in_one_text_none_starves(context):
    history = context.chat_history
    for n in range(8):
        await history.append_user_message(f"the phone number of the boss is written on sheet {n} of the phone list")
    await history.append_user_message("the park is called Rosengarten")
    hits = await history.search("What is the phone number of the boss? And what is the park called?", k=4)
    assert "the park is called Rosengarten" in [hit.message.text for hit in hits[:3]]
    assert len({hit.message.id for hit in hits}) == 4
    assert sorted((hit.score for hit in hits), reverse=True) == [hit.score for hit in hits]
