"""Embeddings: the openai client against a server on loopback, the background indexer, and what search makes of them."""

import asyncio
import hashlib
import logging

import numpy as np
import pytest
from sqlalchemy import func, select, update
from standins.openai_api import OpenAIApi
from standins.openai_refusals import refuse

from botservice import AgentContext, EmbeddingIndexer, LLMError, OpenAIEmbedder, SettingsError, Storage
from botservice.history.question_vectors import QuestionVectors
from botservice.history.search import SearchIndexes
from botservice.storage.tables import messages, vectors

PATH = "/v1/embeddings"
PETS, MONEY = ("dog", "pet", "hound", "animal"), ("rent", "salary", "cash")


def mind(text):
    """A vector whose first numbers say what a text is about."""
    words = text.lower().replace("?", "").split()
    noise = [byte / 2550 for byte in hashlib.sha256(text.encode()).digest()[:6]]
    return [float(any(word in PETS for word in words)), float(any(word in MONEY for word in words)), *noise]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_EMBEDDING_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def api():
    with OpenAIApi.running(embed=mind) as server:
        yield server


@pytest.fixture
async def embedder(api):
    one = OpenAIEmbedder("mind", base_url=api.base_url, api_key="sk-test-key-that-nobody-may-see")
    yield one
    await one.close()


class Failing:
    """An embedder that does what a test says."""

    model_key, dim = "failing", None

    def __init__(self, fails=lambda text: LLMError("gone")):
        self.fails, self.asked = fails, []

    async def embed_documents(self, texts):
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, text):
        self.asked.append(text)
        error = self.fails(text)
        if error is not None:
            raise error
        return mind(text)


async def stored(storage):
    """Return the model of each message's vector, by the message's text."""
    query = select(messages.c.text, vectors.c.model_key).join(vectors, vectors.c.message_id == messages.c.id)
    return dict(await storage.read(lambda connection: connection.execute(query).all()))


async def indexer_of(storage, embedder):
    """Return an indexer that does nothing by itself."""
    SearchIndexes.of(storage).question_vectors = QuestionVectors(embedder)
    return EmbeddingIndexer(storage, embedder)


async def texts_of(history, text, k=5):
    return [hit.message.text for hit in await history.search(text, k)]


# The client


async def test_vectors_come_back_in_order_and_the_dimension_is_learned(embedder):
    assert embedder.dim is None
    matrix = await embedder.embed_documents(["my dog", "the rent"])
    assert matrix.shape == (2, 8)
    assert matrix[0][0] > 0.5 > matrix[1][0]
    assert embedder.dim == 8
    assert (await embedder.embed_query("my dog")).tolist() == matrix[0].tolist()


async def test_many_texts_go_in_batches_and_long_ones_by_their_beginning(api, embedder):
    texts = [f"text {n}" for n in range(150)] + ["word " * 20_000]
    assert (await embedder.embed_documents(texts)).shape == (151, 8)
    sizes = [len(body["input"]) for body in api.bodies(PATH)]
    assert sizes == [64, 64, 23]
    assert len(api.bodies(PATH)[-1]["input"][-1]) < 10_000
    assert (await embedder.embed_documents([])).shape == (0, 8)


async def test_fewer_dimensions_are_asked_for_where_the_model_can(api):
    small = OpenAIEmbedder("text-embedding-3-small", base_url=api.base_url)
    assert small.model_key == "text-embedding-3-small/512"
    await small.embed_query("my dog")
    assert api.bodies(PATH)[-1]["dimensions"] == 512
    await small.close()


async def test_a_server_that_writes_numbers_only_is_asked_for_numbers(api, embedder, monkeypatch):
    answer = api._embeddings

    async def no_base64(exchange, body, running):
        if body.get("encoding_format") == "base64":
            raise refuse("encoding_format base64 is not supported", param="encoding_format")
        await answer(exchange, body, running)

    api._embeddings = no_base64
    assert (await embedder.embed_documents(["my dog"])).shape == (1, 8)
    assert (await embedder.embed_documents(["my cat"])).shape == (1, 8)
    assert [body["encoding_format"] for body in api.bodies(PATH)] == ["base64", "float", "float"]


@pytest.mark.parametrize("model", ["other", "mind"])
async def test_errors_are_translated_and_say_nothing_of_the_key(api, model):
    api.models, api.api_key = ("mind",), "sk-right"
    one = OpenAIEmbedder(model, base_url=api.base_url, api_key="sk-wrong" if model == "mind" else "sk-right")
    with pytest.raises(LLMError) as caught:
        await one.embed_query("my dog")
    assert not caught.value.is_transient
    assert "OPENAI_API_KEY" in str(caught.value) if model == "mind" else "OPENAI_EMBEDDING_MODEL" in str(caught.value)
    assert "sk-" not in str(caught.value)
    await one.close()


async def test_a_server_that_is_gone_is_a_transient_error(api, embedder):
    gone = OpenAIEmbedder("mind", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(LLMError) as caught:
        await gone.embed_query("my dog")
    assert caught.value.is_transient
    await gone.close()


async def test_an_answer_that_is_none_is_an_error(api, embedder):
    async def nonsense(exchange, body, running):
        await exchange.answer_json(200, {"object": "list", "data": []})

    api._embeddings = nonsense
    with pytest.raises(LLMError, match="could not be read"):
        await embedder.embed_query("my dog")


async def test_a_server_that_hangs_is_given_up(api):
    async def hang(exchange, body, running):
        await exchange.gone()

    api._embeddings = hang
    hasty = OpenAIEmbedder("mind", base_url=api.base_url, timeout_seconds=0.2)
    with pytest.raises(LLMError, match="did not"):
        await hasty.embed_query("my dog")
    await hasty.close()


def test_without_a_server_the_settings_are_named():
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        OpenAIEmbedder()


# The indexer, and search with meaning


async def test_meaning_finds_what_shares_no_word(storage, context, embedder):
    history = context.chat_history
    for text in ("Rex is a good hound", "We painted the kitchen", "Lisbon was lovely"):
        await history.append_user_message(text)
    assert await texts_of(history, "which animal lives here?") == []
    indexer = await indexer_of(storage, embedder)
    assert await indexer.catch_up() == 3
    assert (await texts_of(history, "which animal lives here?"))[0] == "Rex is a good hound"


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


async def test_nothing_is_embedded_of_what_is_not_searched(storage, context, api, embedder):
    history = context.chat_history
    await history.append_system_message("a note")
    await history.append_user_message("/start")
    await history.append_user_message("  ")
    assert await (await indexer_of(storage, embedder)).catch_up() == 0
    assert api.bodies(PATH) == []


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
    async with Storage.open(storage_url) as here, Storage.open(storage_url) as there:
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


async def test_in_the_background_messages_get_their_meaning(storage, context, api, embedder):
    history = context.chat_history
    async with EmbeddingIndexer(storage, embedder, poll_seconds=0.01):
        await history.append_user_message("Rex is a good hound")
        async with asyncio.timeout(10):
            while not await texts_of(history, "which animal?"):  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0)
    assert await texts_of(history, "which animal?") == []
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "botservice-embeddings"]


async def test_in_the_background_a_failure_is_logged_and_tried_again(storage, context, caplog):
    await context.chat_history.append_user_message("Rex is a good hound")
    caplog.set_level(logging.WARNING)
    tried = asyncio.Event()

    def fail(text):
        tried.set()
        return LLMError("gone", retry_after_seconds=60)

    async with EmbeddingIndexer(storage, Failing(fail), poll_seconds=0.01), asyncio.timeout(10):
        await tried.wait()
        while not caplog.records:  # noqa: ASYNC110 - a log tells nobody
            await asyncio.sleep(0)
    record = caplog.records[0]
    assert (record.message, record.reason, record.again_in_seconds) == ("embeddings.failed", "gone", 60)
    assert "hound" not in caplog.text


# Questions


async def test_a_question_is_embedded_without_names_and_once(storage, context, api, embedder):
    history = context.chat_history
    await history.append_user_message("Rex is a good hound", author="Marta")
    await (await indexer_of(storage, embedder)).catch_up()
    for _ in range(3):
        await history.search("which animal does Marta have?")
    assert [body["input"] for body in api.bodies(PATH)[1:]] == [["which animal does have?"]]


async def test_no_question_is_embedded_where_nothing_has_a_vector(storage, context, api, embedder):
    await context.chat_history.append_user_message("Rex is a good hound")
    await indexer_of(storage, embedder)
    assert await texts_of(context.chat_history, "hound") == ["Rex is a good hound"]
    assert api.bodies(PATH) == []


@pytest.mark.parametrize("error", [LLMError("gone"), TimeoutError(), RuntimeError("bug")])
async def test_a_question_that_cannot_be_embedded_is_answered_by_words(storage, context, embedder, error):
    history = context.chat_history
    await history.append_user_message("Rex is a good hound")
    await (await indexer_of(storage, embedder)).catch_up()
    broken = Failing(lambda text: error)
    broken.model_key = "mind"
    now = 0.0
    SearchIndexes.of(storage).question_vectors = QuestionVectors(broken, clock=lambda: now)
    assert await texts_of(history, "hound") == ["Rex is a good hound"]
    assert await texts_of(history, "a hound") == ["Rex is a good hound"]
    assert len(broken.asked) == 1
    now, broken.fails = 31.0, lambda text: None
    assert await texts_of(history, "which animal?") == ["Rex is a good hound"]


async def test_a_slow_embedder_does_not_hold_up_an_answer(storage, context, embedder):
    history = context.chat_history
    await history.append_user_message("Rex is a good hound")
    await (await indexer_of(storage, embedder)).catch_up()

    class Hanging(Failing):
        model_key = "mind"

        async def embed_query(self, text):
            await asyncio.Event().wait()

    SearchIndexes.of(storage).question_vectors = QuestionVectors(Hanging(), timeout_seconds=0.05)
    assert await texts_of(history, "hound") == ["Rex is a good hound"]


async def test_vectors_of_another_width_under_the_same_name_do_no_harm(storage, context, embedder):
    history = context.chat_history
    await history.append_user_message("Rex is a good hound")
    await history.append_user_message("We painted the kitchen")
    await (await indexer_of(storage, embedder)).catch_up()
    odd = np.ones(3, "<f2").tobytes()
    await storage.write(
        lambda connection: connection.execute(update(vectors).where(vectors.c.id == 1).values(data=odd))
    )
    assert await texts_of(history, "hound") != []
