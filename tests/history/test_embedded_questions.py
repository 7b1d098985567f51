"""Questions with their meaning: when they are embedded, and what happens when that fails."""

import asyncio

import numpy as np
import pytest
from history.minds import Failing, indexer_of, texts_of
from sqlalchemy import update

from botservice import LLMError
from botservice.history.finding import SearchIndexes
from botservice.history.vectors import QuestionVectors
from botservice.storage.tables.conversations import vectors

pytestmark = pytest.mark.usefixtures("no_settings")

PATH = "/v1/embeddings"


@pytest.mark.any_database
async def test_a_question_is_embedded_without_names_and_once(storage, context, api, embedder):
    history = context.chat_history
    await history.append_user_message("Rex is a good hound", author="Marta")
    await (await indexer_of(storage, embedder)).catch_up()
    for _ in range(3):
        await history.search("which animal does Marta have?")
    assert [body["input"] for body in api.bodies(PATH)[1:]] == [["which animal does have?"]]


@pytest.mark.any_database
async def test_no_question_is_embedded_where_nothing_has_a_vector(storage, context, api, embedder):
    await context.chat_history.append_user_message("Rex is a good hound")
    await indexer_of(storage, embedder)
    assert await texts_of(context.chat_history, "hound") == ["Rex is a good hound"]
    assert api.bodies(PATH) == []


@pytest.mark.any_database
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


@pytest.mark.any_database
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
