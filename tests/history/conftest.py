"""Embeddings by the real openai client, from a server on loopback."""

import pytest
from history.minds import mind
from standins.openai_api import OpenAIApi

from botservice import OpenAIEmbedder


@pytest.fixture
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
