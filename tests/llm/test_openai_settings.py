"""Where OpenAIChatLLM gets its key, its server and its model from."""

import asyncio
import logging
from pathlib import Path

import pytest
from standins.openai_api import OpenAIApi

from botservice import LLMError, OpenAIChatLLM, SettingsError
from botservice.telemetry.logs import redact

HELLO = [{"role": "user", "content": "hello"}]


def test_without_key_and_server_it_says_what_to_set() -> None:
    with pytest.raises(SettingsError, match=r"OPENAI_API_KEY must be set, or OPENAI_BASE_URL"):
        OpenAIChatLLM()


async def test_a_base_url_alone_is_enough(api: OpenAIApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{api.base_url}/")
    monkeypatch.setenv("OPENAI_MODEL", " local-model ")
    llm = OpenAIChatLLM()
    await llm.chat(HELLO)
    await llm.close()
    assert api.bodies()[0]["model"] == llm.model == "local-model"


async def test_what_is_given_counts_before_the_environment(api: OpenAIApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    monkeypatch.setenv("OPENAI_MODEL", "of-the-environment")
    llm = OpenAIChatLLM("given", base_url=api.base_url, api_key="given-key")
    await llm.chat(HELLO)
    await llm.close()
    assert api.bodies()[0]["model"] == "given"
    assert api.requests()[0].headers["authorization"] == "Bearer given-key"


def test_a_key_alone_means_openai_with_its_newest_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key-of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    llm = OpenAIChatLLM()
    assert repr(llm) == "OpenAIChatLLM('gpt-6.1-terra', base_url='https://api.openai.com/v1')"
    assert llm.timeout_seconds == 120


def test_a_dotenv_file_is_read_as_the_commands_do(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://127.0.0.1:9/v1\nMODEL_TIMEOUT_SECONDS=7.5\n")
    assert OpenAIChatLLM().timeout_seconds == 7.5


@pytest.mark.parametrize(
    ("name", "value"), [("MODEL_TIMEOUT_SECONDS", "soon"), ("OPENAI_BASE_URL", "localhost:11434/v1")]
)
def test_a_wrong_setting_names_itself(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key-of-the-environment")
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name} must be"):
        OpenAIChatLLM()


async def test_the_key_is_in_no_error_and_no_log(
    api: OpenAIApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = "key-that-stays-between-us"
    api.api_key = "another"
    llm = OpenAIChatLLM("m", base_url=api.base_url, api_key=key)
    with pytest.raises(LLMError) as caught:
        await llm.chat(HELLO)
    await llm.close()
    assert key not in f"{caught.value!r}{caught.value}{llm!r}"
    assert key not in redact(caplog.text)
    assert redact(f"Bearer {key}") == "Bearer [secret]"


def test_one_model_serves_several_event_loops(api: OpenAIApi) -> None:
    llm = OpenAIChatLLM("m", base_url=api.base_url)

    async def chat() -> str:
        text = (await llm.chat(HELLO)).text
        await llm.close()
        return text

    assert len({asyncio.run(chat()) for _ in range(3)}) == 1
    assert len(api.requests()) == 3


async def test_how_a_model_is_asked_comes_from_the_environment_unless_told(
    api: OpenAIApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("OPENAI_API", "Responses"),
        ("OPENAI_REASONING_EFFORT", "HIGH"),
        ("OPENAI_REASONING_SUMMARY", "auto"),
    ):
        monkeypatch.setenv(name, value)
    llm = OpenAIChatLLM(base_url=api.base_url)
    await llm.chat(HELLO)
    await llm.close()
    assert api.bodies("/v1/responses")[0]["reasoning"] == {"effort": "high", "summary": "auto"}
    told = OpenAIChatLLM(base_url=api.base_url, api="chat", reasoning_effort="low", reasoning_summary="off")
    assert (told.api, told.reasoning_effort, told.reasoning_summary) == ("chat", "low", None)


@pytest.mark.parametrize("wrong", [{"api": "v2"}, {"reasoning_effort": "extreme"}, {"reasoning_summary": "yes"}])
def test_what_is_told_wrongly_names_itself(api: OpenAIApi, wrong: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(wrong))} must be one of"):
        OpenAIChatLLM(base_url=api.base_url, **wrong)  # type: ignore[arg-type]  # one name, one text
