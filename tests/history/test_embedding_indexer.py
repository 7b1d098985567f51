"""The background indexer: which messages get vectors, when, and what happens when a model fails."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest
from history.minds import Failing, indexer_of, stored, texts_of
from sqlalchemy import func, select
from standins.patience import PATIENT

from botservice import AgentContext, EmbeddingIndexer, LLMError, OpenAIEmbedder, Storage
from botservice.background.maintenance import Maintenance
from botservice.history.edit_queries import change_message
from botservice.history.rows import NewWords
from botservice.storage.tables.conversations import messages, vectors

pytestmark = pytest.mark.usefixtures("no_settings")

PATH = "/v1/embeddings"


@pytest.mark.any_database
async def test_meaning_finds_what_shares_no_word(storage, context, embedder):
    history = context.chat_history
    for text in ("Rex is a good hound", "We painted the kitchen", "Lisbon was lovely"):
        await history.append_user_message(text)
    assert await texts_of(history, "which animal lives here?") == []
    indexer = await indexer_of(storage, embedder)
    assert await indexer.catch_up() == 3
    assert (await texts_of(history, "which animal lives here?"))[0] == "Rex is a good hound"


@pytest.mark.any_database
async def test_new_messages_get_vectors_and_old_ones_are_not_embedded_again(storage, context, api, embedder):
    history = context.chat_history
    indexer = await indexer_of(storage, embedder)
    assert await indexer.catch_up() == 0
    await history.append_user_message("Rex is a good hound")
    assert await indexer.catch_up() == 1
    await history.append_assistant_message("A fine dog")
    assert await indexer.catch_up() == 1
    assert await indexer.catch_up() == 0
    assert await EmbeddingIndexer(storage, embedder).catch_up() == 0
    assert [body["input"] for body in api.bodies(PATH)] == [["Rex is a good hound"], ["A fine dog"]]


@pytest.mark.any_database
async def test_nothing_is_embedded_of_what_is_not_searched(storage, context, api, embedder):
    history = context.chat_history
    await history.append_system_message("a note")
    await history.append_user_message("/start")
    await history.append_user_message("  ")
    assert await (await indexer_of(storage, embedder)).catch_up() == 0
    assert api.bodies(PATH) == []


@pytest.mark.any_database
async def test_a_back_fill_goes_from_the_newest_and_resumes(storage, context):
    history = context.chat_history
    for n in range(100):
        await history.append_user_message(f"note {n}")
    poor = Failing(lambda text: LLMError("enough for today") if text == "note 20" else None)
    with pytest.raises(LLMError):
        await (await indexer_of(storage, poor)).catch_up()
    assert set(await stored(storage)) == {f"note {n}" for n in range(36, 100)}
    well = Failing(lambda text: None)
    assert await EmbeddingIndexer(storage, well).catch_up() == 36
    assert well.asked == [f"note {n}" for n in range(35, -1, -1)]


@pytest.mark.any_database
async def test_a_long_back_fill_says_how_far_it_is(storage, context, caplog):
    for n in range(100):
        await context.chat_history.append_user_message(f"note {n}")
    with caplog.at_level(logging.INFO):
        await EmbeddingIndexer(storage, Failing(lambda text: None), say_seconds=0).catch_up()
    said = [(each.count, each.left_at_most) for each in caplog.records if each.message == "embeddings.catching_up"]
    assert said == [(64, 36), (100, 0)]


@pytest.mark.any_database
async def test_a_changed_model_embeds_everything_anew_and_words_cover_the_gap(storage, context, api, embedder):
    history = context.chat_history
    await history.append_user_message("Rex is a good hound")
    await (await indexer_of(storage, embedder)).catch_up()
    newer = OpenAIEmbedder("newer-mind", base_url=api.base_url)
    indexer = await indexer_of(storage, newer)
    assert await texts_of(history, "hound") == ["Rex is a good hound"]
    assert await texts_of(history, "which animal?") == []
    assert await indexer.catch_up() == 1
    assert await stored(storage) == {"Rex is a good hound": "newer-mind"}
    assert await texts_of(history, "which animal?") == ["Rex is a good hound"]
    await newer.close()


async def test_deleting_a_message_deletes_its_vector(storage, context, embedder):
    history = context.chat_history
    message = await history.append_user_message("Rex is a good hound")
    await history.append_user_message("We painted the kitchen")
    await (await indexer_of(storage, embedder)).catch_up()
    assert (await texts_of(history, "which animal?"))[0] == "Rex is a good hound"
    await history.delete_messages([message.id])
    assert list(await stored(storage)) == ["We painted the kitchen"]
    assert "Rex is a good hound" not in await texts_of(history, "which animal?")
    await history.clear()
    count = select(func.count()).select_from(vectors)
    assert await storage.read(lambda connection: connection.execute(count).scalar_one()) == 0


async def test_a_message_that_is_deleted_while_it_is_embedded_gets_no_vector(storage, context):
    history = context.chat_history
    first = await history.append_user_message("Rex is a good hound")
    await history.append_user_message("We painted the kitchen")

    class Slow(Failing):
        async def embed_documents(self, texts):
            await history.delete_messages([first.id])
            return await super().embed_documents(texts)

    await (await indexer_of(storage, Slow(lambda text: None))).catch_up()
    assert list(await stored(storage)) == ["We painted the kitchen"]


async def test_one_refused_text_does_not_stop_the_others(storage, context, caplog):
    history = context.chat_history
    for text in ("fine", "poison", "also fine"):
        await history.append_user_message(text)
    picky = Failing(lambda text: LLMError("too long", is_transient=False) if text == "poison" else None)
    indexer = await indexer_of(storage, picky)
    assert await indexer.catch_up() == 2
    assert set(await stored(storage)) == {"fine", "also fine"}
    picky.asked.clear()
    assert await indexer.catch_up() == 0
    assert picky.asked == []
    assert "poison" not in caplog.text


@pytest.mark.any_database
async def test_a_wrong_key_marks_no_message_as_refused(storage, context):
    for n in range(20):
        await context.chat_history.append_user_message(f"note {n}")
    closed = Failing(lambda text: LLMError("wrong key", is_transient=False))
    indexer = await indexer_of(storage, closed)
    for _ in range(2):
        with pytest.raises(LLMError, match="wrong key"):
            await indexer.catch_up()
    assert len(closed.asked) < 20
    closed.fails = lambda text: None
    assert await indexer.catch_up() == 20


@pytest.mark.any_database
@pytest.mark.parametrize("answer", [[[1.0]], [["x"]] * 2, [[float("nan")]] * 2, [[1.0], [1.0, 2.0]], 7])
async def test_an_embedder_that_returns_nonsense_stores_nothing(storage, context, answer):
    await context.chat_history.append_user_message("one")
    await context.chat_history.append_user_message("two")

    class Wrong(Failing):
        async def embed_documents(self, texts):
            return answer

    with pytest.raises(LLMError, match="no matrix"):
        await (await indexer_of(storage, Wrong())).catch_up()
    assert await stored(storage) == {}


async def test_of_two_replicas_one_embeds(storage_url):
    async with Storage.open(storage_url, limits=PATIENT) as here, Storage.open(storage_url, limits=PATIENT) as there:
        history = (await AgentContext.get_or_create(here, {"chat_id": "1"})).chat_history
        for n in range(130):
            await history.append_user_message(f"note {n}")
        mine, theirs = Failing(lambda text: None), Failing(lambda text: None)
        counts = await asyncio.gather(
            EmbeddingIndexer(here, mine).catch_up(), EmbeddingIndexer(there, theirs).catch_up()
        )
        assert sum(counts) == 130
        assert len(mine.asked) + len(theirs.asked) == 130
        assert len(await stored(here)) == 130


@pytest.mark.any_database
async def test_in_the_background_messages_get_their_meaning(storage, context, api, embedder):
    history = context.chat_history
    async with EmbeddingIndexer(storage, embedder, poll_seconds=0.01):
        await history.append_user_message("Rex is a good hound")
        async with asyncio.timeout(60):
            while not await texts_of(history, "which animal?"):  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0)
    assert await texts_of(history, "which animal?") == []
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "botservice-embeddings"]


@pytest.mark.any_database
async def test_in_the_background_a_failure_is_logged_and_tried_again(storage, context, caplog):
    await context.chat_history.append_user_message("Rex is a good hound")
    caplog.set_level(logging.WARNING)
    tried = asyncio.Event()

    def fail(text):
        tried.set()
        return LLMError("gone", retry_after_seconds=60)

    async with EmbeddingIndexer(storage, Failing(fail), poll_seconds=0.01), asyncio.timeout(60):
        await tried.wait()
        while not caplog.records:  # noqa: ASYNC110 - a log tells nobody
            await asyncio.sleep(0)
    record = caplog.records[0]
    assert (record.message, record.reason, record.again_in_seconds) == ("embeddings.failed", "gone", 60)
    assert "hound" not in caplog.text


@pytest.mark.any_database
async def test_what_was_edited_gets_a_new_vector(storage, context, embedder):
    history = context.chat_history
    for text in ("Rex is a good hound", "We painted the kitchen"):
        await history.append_user_message(text)
    indexer = await indexer_of(storage, embedder)
    assert await indexer.catch_up() == 2
    await storage.write(
        lambda connection: connection.execute(messages.update().where(messages.c.id == 1).values(external_id="m1"))
    )
    new = NewWords("Lisbon was lovely", (), 4, "test")
    now = datetime.now(UTC)
    await storage.write(lambda connection: change_message(connection, context.id, "m1", new, now))
    assert list(await stored(storage)) == ["We painted the kitchen"]
    assert await indexer.catch_up() == 1
    assert set(await stored(storage)) == {"Lisbon was lovely", "We painted the kitchen"}
    assert await indexer.catch_up() == 0


@pytest.mark.any_database
async def test_upkeep_does_not_wait_for_embedding(storage, context):
    await context.chat_history.append_user_message("Rex is a good hound")
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    class Slow(Failing):
        async def embed_documents(self, texts):
            has_begun.set()
            await may_end.wait()
            return await super().embed_documents(texts)

    indexer = await indexer_of(storage, Slow(lambda _: None))
    embedding = asyncio.create_task(indexer.catch_up())
    async with asyncio.timeout(60):
        await has_begun.wait()
        assert (await Maintenance(storage).run_once()).is_whole
        may_end.set()
        assert await embedding == 1
