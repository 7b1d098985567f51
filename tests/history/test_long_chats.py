"""A very long chat is held in part, and searched as if it were held whole; on both databases alike."""

import asyncio
import itertools
import json
import statistics
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import func, select, update
from standins.patience import PATIENT

from botservice import AgentContext, Author, Storage
from botservice.history.finding import SearchIndexes
from botservice.history.long_chats import LongChats
from botservice.history.queries import change_message
from botservice.history.rows import NewWords
from botservice.history.search_queries import WordBlock, find_stretches, write_stretch, write_vectors
from botservice.history.search_values import Question
from botservice.history.vectors import QuestionVectors, as_unit_rows
from botservice.storage.tables.conversations import contexts, messages, word_blocks

SMALL = LongChats(messages=100, stretch=64, candidates=20)
START = datetime(2024, 3, 1, 9, tzinfo=UTC)
NOW = datetime(2025, 3, 1, 9, tzinfo=UTC)
FOLDER = Path(__file__).parents[1] / "data" / "search"
CHATS = [chat for path in sorted(FOLDER.glob("*.json")) for chat in json.loads(path.read_text("utf-8"))["chats"]]


async def fill(storage, context, rows):
    def write(connection):
        connection.execute(
            messages.insert(),
            [
                {"context_id": context.id, "position": n, "role": "user", "external_id": str(n), **row}
                for n, row in enumerate(rows, 1)
            ],
        )
        connection.execute(update(contexts).where(contexts.c.id == context.id).values(last_position=len(rows)))

    await storage.write(write)


def notes(count):
    return [
        {"text": f"note {n} on thing{n}", "created_at": START + timedelta(hours=12 * n)} for n in range(1, count + 1)
    ]


def all_chats():
    return [
        {
            "role": each["role"],
            "text": each["text"],
            "author_name": each.get("author"),
            "created_at": datetime.fromisoformat(each["created_at"]),
        }
        for chat in CHATS
        for each in chat["messages"]
    ]


def questions():
    """Return questions with the positions of their answers, where all chats are one."""
    first = 0
    for chat in CHATS:
        place = {each["id"]: first + n for n, each in enumerate(chat["messages"], 1)}
        for each in chat["questions"]:
            asker = Author(name=each["asker"]) if "asker" in each else None
            yield each["kind"], {place[number] for number in each["gold"]}, Question(each["text"], 5, NOW, asker)
        first += len(chat["messages"])


async def search(storage, indexes, context, question):
    return await indexes.read(storage, lambda connection: indexes.search(connection, context.id, question))


async def texts_of(storage, indexes, context, text, k=3):
    return [hit.message.text for hit in await search(storage, indexes, context, Question(text, k, NOW))]


async def written(storage, context):
    return sorted(await storage.read(lambda connection: find_stretches(connection, context.id)))


async def positions_by_question(storage, indexes, chat_id="1", *, one_of=1):
    context = await AgentContext.get_or_create(storage, {"chat_id": chat_id})
    await fill(storage, context, all_chats())
    found = []
    for kind, gold, question in itertools.islice(questions(), 0, None, one_of):
        hits = await search(storage, indexes, context, question)
        ids = [hit.message.external_id for hit in hits]
        found.append((kind, gold, [int(each) for each in ids], [hit.score for hit in hits]))
    return found


@pytest.mark.slow
async def test_what_is_asked_for_is_found_by_the_words_written_down(sqlite_storage):
    indexes = SearchIndexes(long_chats=SMALL)
    found = await positions_by_question(sqlite_storage, indexes, one_of=3)
    recalls = [len(gold & set(hits)) / len(gold) for kind, gold, hits, _ in found if kind not in ("paraphrase", "typo")]
    assert statistics.fmean(recalls) >= 0.95
    whole = await positions_by_question(sqlite_storage, SearchIndexes(), "2", one_of=3)
    same = [set(some[2][:3]) == set(other[2][:3]) for some, other in zip(found, whole, strict=True)]
    assert statistics.fmean(same) >= 0.8


@pytest.mark.slow
async def test_both_databases_find_the_same_with_the_same_scores(sqlite_storage, postgres_url):
    async with Storage.open(postgres_url, limits=PATIENT) as postgres_storage:
        found = [
            await positions_by_question(storage, SearchIndexes(long_chats=SMALL), one_of=5)
            for storage in (sqlite_storage, postgres_storage)
        ]
    assert len(found[0]) > 30
    assert found[0] == found[1]


@pytest.mark.any_database
async def test_every_note_of_a_very_long_chat_is_found_and_few_are_held(storage, context):
    await fill(storage, context, notes(300))
    indexes = SearchIndexes(long_chats=SMALL)
    for number in (1, 63, 64, 65, 128, 129, 256, 257, 300):
        assert await texts_of(storage, indexes, context, f"thing{number}", 1) == [f"note {number} on thing{number}"]
    assert await written(storage, context) == [(1, 64), (65, 128), (129, 192), (193, 256)]
    assert len(indexes._indexes[context.id].index) == 44


async def test_a_verbatim_repeat_is_found_first(storage, context):
    await fill(storage, context, all_chats())
    indexes = SearchIndexes(long_chats=SMALL)
    for row in all_chats()[:240:24]:
        assert await texts_of(storage, indexes, context, row["text"], 1) == [row["text"]]


@pytest.mark.any_database
async def test_what_comes_later_is_found_and_written_down_when_a_stretch_is_full(storage, context):
    await fill(storage, context, notes(120))
    indexes = SearchIndexes(long_chats=SMALL)
    await texts_of(storage, indexes, context, "thing7")
    for number in range(121, 132):
        await context.chat_history.append_user_message(f"note {number} on thing{number}")
        assert await texts_of(storage, indexes, context, f"thing{number}", 1) == [f"note {number} on thing{number}"]
    assert await written(storage, context) == [(1, 64), (65, 128)]


async def test_a_chat_that_becomes_very_long_is_let_go_of(storage, context):
    await fill(storage, context, notes(99))
    indexes = SearchIndexes(long_chats=SMALL)
    await texts_of(storage, indexes, context, "thing7")
    assert len(indexes._indexes[context.id].index) == 99
    for number in range(100, 104):
        await context.chat_history.append_user_message(f"note {number} on thing{number}")
    assert await texts_of(storage, indexes, context, "thing7", 1) == ["note 7 on thing7"]
    assert len(indexes._indexes[context.id].index) == 39


async def test_a_deleted_message_is_not_found_and_its_words_are_gone_with_it(storage, context):
    await fill(storage, context, notes(300))
    indexes = SearchIndexes(long_chats=SMALL)
    hit, newest = [
        (await search(storage, indexes, context, Question(text, 1, NOW)))[0] for text in ("thing70", "thing290")
    ]
    await context.chat_history.delete_messages([hit.message.id, newest.message.id])
    assert await written(storage, context) == [(1, 64), (129, 192), (193, 256)]
    for text in ("thing70", "thing290"):
        assert f"note {text[5:]} on {text}" not in await texts_of(storage, indexes, context, text)
    assert await texts_of(storage, indexes, context, "thing71", 1) == ["note 71 on thing71"]
    assert len(await written(storage, context)) == 4
    await context.chat_history.clear()
    assert await storage.read(lambda c: c.execute(select(func.count()).select_from(word_blocks)).scalar_one()) == 0
    assert await texts_of(storage, indexes, context, "thing71") == []


async def test_an_edited_message_is_found_by_its_new_words_alone(storage, context):
    await fill(storage, context, notes(300))
    indexes = SearchIndexes(long_chats=SMALL)
    await texts_of(storage, indexes, context, "thing70")
    new = NewWords("the parrot sings", (), 3, "o200k_base")
    await storage.write(lambda connection: change_message(connection, context.id, "70", new, NOW))
    assert await texts_of(storage, indexes, context, "parrot", 1) == ["the parrot sings"]
    assert "the parrot sings" not in await texts_of(storage, indexes, context, "thing70")


async def test_words_read_before_a_deletion_are_not_written_after_it(storage, context):
    await fill(storage, context, notes(128))
    stretch = WordBlock(context.id, 1, 64, 0, {5: b"five"})
    await storage.write(lambda connection: write_stretch(connection, replace(stretch, deletion_version=1)))
    assert await written(storage, context) == []
    await storage.write(lambda connection: write_stretch(connection, stretch))
    await storage.write(lambda connection: write_stretch(connection, stretch))
    assert await written(storage, context) == [(1, 64)]
    await storage.write(lambda connection: write_stretch(connection, replace(stretch, context_id=context.id + 1)))


@pytest.mark.slow
async def test_many_searches_and_replicas_at_once_agree(storage, context):
    await fill(storage, context, notes(300))
    replicas = [SearchIndexes(long_chats=SMALL) for _ in range(2)]
    found = await asyncio.gather(
        *(texts_of(storage, replicas[n % 2], context, f"thing{n * 7 + 1}", 1) for n in range(40))
    )
    assert found == [[f"note {n * 7 + 1} on thing{n * 7 + 1}"] for n in range(40)]
    assert len(await written(storage, context)) == 4


async def test_a_time_that_is_asked_for_is_found_without_its_words(storage, context):
    await fill(storage, context, notes(300))
    indexes = SearchIndexes(long_chats=SMALL)
    found = await search(storage, indexes, context, Question("what was on 2024-04-02?", 2, NOW))
    assert [f"{hit.message.created_at:%m-%d}" for hit in found] == ["04-02", "04-02"]


@pytest.mark.any_database
async def test_a_misspelt_word_is_found_as_long_as_the_newest_messages_have_it(storage, context):
    rows = notes(300)
    rows[40]["text"] = rows[290]["text"] = "the aquarium leaks"
    await fill(storage, context, rows)
    found = await search(storage, SearchIndexes(long_chats=SMALL), context, Question("my acquarium", 2, NOW))
    assert {hit.message.external_id for hit in found} == {"41", "291"}


class Compass:
    """An embedder of two directions."""

    model_key, dim = "compass", 2

    async def embed_documents(self, texts):
        return np.array([[1.0, 0.0] if "north" in text else [0.0, 1.0] for text in texts])

    async def embed_query(self, text):
        return (await self.embed_documents([text]))[0]


async def test_meaning_counts_among_those_whose_words_fit(storage, context):
    rows = notes(300)
    for number in (30, 60, 90):
        rows[number]["text"] = "the ship sails"
    await fill(storage, context, rows)
    indexes = SearchIndexes(long_chats=SMALL)
    indexes.question_vectors = QuestionVectors(Compass())
    ids = await storage.read(lambda c: c.execute(select(messages.c.id).order_by(messages.c.position)).scalars().all())
    matrix = as_unit_rows([[1.0, 0.0] if n == 60 else [0.0, 1.0] for n in range(300)], 300)
    await storage.write(lambda c: write_vectors(c, dict.fromkeys(ids, context.id), "compass", matrix))
    vector = await indexes.vector_of(storage, context.id, "north ship")
    found = await search(storage, indexes, context, Question("ship", 1, NOW, vector=vector))
    assert found[0].message.external_id == "61"


@pytest.mark.parametrize("stretch", [0, 101, 65_537])
def test_a_stretch_is_no_longer_than_what_can_be_packed(stretch):
    with pytest.raises(ValueError, match="stretch"):
        LongChats(messages=100 if stretch == 101 else 200_000, stretch=stretch)
