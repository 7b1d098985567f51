"""The model server on loopback, and the service's own client of it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from standins.openai_api import OpenAIApi

from botservice import OpenAIChatLLM


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """No test sees the settings of whoever runs it."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API", "MODEL_TIMEOUT_SECONDS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def api() -> Iterator[OpenAIApi]:
    with OpenAIApi.running() as server:
        yield server


@pytest.fixture
async def llm(api: OpenAIApi) -> AsyncIterator[OpenAIChatLLM]:
    model = OpenAIChatLLM("gpt-5.5", base_url=api.base_url, api_key="sk-test-key-that-nobody-may-see")
    yield model
    await model.close()
