"""Two processes on one database whose embedding models differ: no message is embedded again and again."""

import asyncio
import contextlib
import logging

from history.minds import Failing, stored
from standins.patience import PATIENT

from botservice import AgentContext, EmbeddingIndexer, LLMError, Storage


class Of(Failing):
    """An embedder with a model of its own."""

    def __init__(self, model_key):
        super().__init__(lambda text: None)
        self.model_key = model_key


async def say(storage, *texts):
    history = (await AgentContext.get_or_create(storage, {"chat_id": "1"})).chat_history
    for text in texts:
        await history.append_user_message(text)


async def wait_until_stored(storage, models):
    async with asyncio.timeout(60):
        while await stored(storage) != models:  # noqa: ASYNC110 - a database tells nobody
            await asyncio.sleep(0.01)


async def test_what_one_process_embeds_another_one_with_another_model_leaves_alone(postgres_url, caplog):
    async with Storage.open(postgres_url, limits=PATIENT) as here, Storage.open(postgres_url, limits=PATIENT) as there:
        small, large = Of("small"), Of("large")
        await say(here, "one", "two")
        async with EmbeddingIndexer(here, small, poll_seconds=0.01):
            await wait_until_stored(here, {"one": "small", "two": "small"})
            async with EmbeddingIndexer(there, large, poll_seconds=0.01) as newer:
                assert await newer.catch_up() == 0
                for words in (["one", "two", "three"], ["one", "two", "three", "four"]):
                    await say(there, words[-1])
                    await wait_until_stored(here, dict.fromkeys(words, "small"))
                    assert await newer.catch_up() == 0
        assert (sorted(small.asked), large.asked) == (["four", "one", "three", "two"], [])
        said = [each for each in caplog.records if each.message == "embeddings.other_model"]
        assert [(each.model, each.other_model, each.levelno) for each in said] == [("large", "small", logging.WARNING)]
        assert "the same" in said[0].advice


async def test_a_changed_model_waits_for_the_last_process_of_the_old_one_and_embeds_once(postgres_url):
    async with Storage.open(postgres_url, limits=PATIENT) as here, Storage.open(postgres_url, limits=PATIENT) as there:
        small, large = Of("small"), Of("large")
        await say(here, "one", "two")
        async with contextlib.AsyncExitStack() as the_older, contextlib.AsyncExitStack() as the_newer:
            await the_older.enter_async_context(EmbeddingIndexer(here, small, poll_seconds=0.01))
            await wait_until_stored(here, {"one": "small", "two": "small"})
            newer = await the_newer.enter_async_context(EmbeddingIndexer(there, large))
            assert await newer.catch_up() == 0
            await the_older.aclose()
            await newer.catch_up()
            assert await stored(here) == {"one": "large", "two": "large"}
            async with EmbeddingIndexer(here, small) as again:
                await say(here, "three")
                assert await again.catch_up() == 0
                await newer.catch_up()
                assert await again.catch_up() == 0
        assert await stored(here) == {"one": "large", "two": "large", "three": "large"}
        assert large.asked == ["two", "one", "three"]


async def test_a_process_that_has_nothing_to_embed_keeps_the_right_to_it(postgres_url):
    async with Storage.open(postgres_url, limits=PATIENT) as here, Storage.open(postgres_url, limits=PATIENT) as there:
        await say(here, "one")
        assert await EmbeddingIndexer(here, Of("small")).catch_up() == 1
        async with EmbeddingIndexer(here, Of("small")) as older:
            assert await older.catch_up() == 0
            async with EmbeddingIndexer(there, Of("large")) as newer:
                assert await newer.catch_up() == 0
        assert await stored(here) == {"one": "small"}


async def test_a_process_whose_model_fails_makes_way_for_another_one(postgres_url):
    async with Storage.open(postgres_url, limits=PATIENT) as here, Storage.open(postgres_url, limits=PATIENT) as there:
        broken = Failing(lambda text: LLMError("gone", retry_after_seconds=3_600))
        await say(here, "one")
        async with EmbeddingIndexer(here, broken, poll_seconds=0.01):
            async with asyncio.timeout(60):
                while not broken.asked:  # noqa: ASYNC110 - an embedder tells nobody
                    await asyncio.sleep(0)
            async with EmbeddingIndexer(there, Failing(lambda text: None), poll_seconds=0.01):
                await wait_until_stored(here, {"one": "failing"})


async def test_of_two_that_take_turns_each_replaces_at_most_what_was_there_before_it(storage, caplog):
    await say(storage, "one", "two")
    small, large = Of("small"), Of("large")
    older, newer = EmbeddingIndexer(storage, small), EmbeddingIndexer(storage, large)
    assert (await older.catch_up(), await newer.catch_up()) == (2, 2)
    for text in ("three", "four", "five"):
        await say(storage, text)
        assert (await older.catch_up(), await newer.catch_up()) == (1, 0)
    assert (len(small.asked), len(large.asked)) == (5, 2)
    said = [each for each in caplog.records if each.message == "embeddings.other_model"]
    assert sorted((each.model, each.other_model) for each in said) == [("large", "small"), ("small", "large")]
