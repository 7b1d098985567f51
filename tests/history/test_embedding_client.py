"""The client for embeddings against a server on loopback: batches, dimensions, errors."""

import pytest
from standins.openai_refusals import refuse

from botservice import LLMError, OpenAIEmbedder, SettingsError

pytestmark = pytest.mark.usefixtures("no_settings")

PATH = "/v1/embeddings"


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
