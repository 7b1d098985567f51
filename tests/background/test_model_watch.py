"""A running service says in its log, in time and in one line, what has to be done about its models."""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from crash.served import ServedBot
from standins.openai_api import OpenAIApi

from botservice import AgentService, FallbackLLM, FunctionsBasedAgent, OpenAIChatLLM, OpenAIEmbedder, ScriptedChatLLM
from botservice.background.model_watch import used_models, watching_models
from botservice.config.settings import Settings
from botservice.factories import build_service
from botservice.llm.openai.http_client import OpenAIClients

SOON = str(datetime.now(UTC).date() + timedelta(days=30))
PATIENCE_SECONDS = 60


def as_then(said: str) -> str:
    """Return what is said of a day that is soon as it was said when SOON was made: it may be past midnight now."""
    return said.replace("in 29 days", "in 30 days")


def settings(**values: Any) -> Settings:
    return Settings(**{"_env_file": None, "openai_api_key": None, "openai_base_url": None, "port": 0, **values})


class Ear(logging.Handler):
    """Hears what the watch says."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: asyncio.Queue[logging.LogRecord] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.put_nowait(record)

    async def next(self) -> logging.LogRecord:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.records.get()


@pytest.fixture
def ear() -> Iterator[Ear]:
    logger = logging.getLogger("botservice.background.model_watch")
    before, made = logger.level, Ear()
    logger.addHandler(made)
    logger.setLevel(logging.DEBUG)
    yield made
    logger.removeHandler(made)
    logger.setLevel(before)


@contextlib.asynccontextmanager
async def watched(chosen: Settings) -> AsyncIterator[None]:
    """Watch the models of the settings, and close them, as whoever serves does."""
    service = build_service(chosen)
    async with watching_models(chosen, service):
        yield
    await service.agent.llm.close()  # type: ignore[attr-defined]  # it is an agent with a model


@contextlib.asynccontextmanager
async def hanging_server() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Run a server that takes calls and never answers; give its address, and what tells that it was called."""
    called, left = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        called.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        left.set()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", called
        await left.wait()


async def test_what_has_to_be_done_is_said_once_with_what_to_do(ear: Ear) -> None:
    with OpenAIApi.running(models=["gpt-6-luna", "m"], shutdowns={"m": SOON}) as api:
        chosen = settings(openai_base_url=api.base_url, openai_model="m", openai_fallback_models="gpt-6-lunar")
        async with watched(chosen):
            records = [await ear.next(), await ear.next()]
    assert {record.levelname for record in records} == {"WARNING"}
    assert [(record.getMessage(), as_then(record.reason)) for record in records] == [
        ("model.notice", f"the model m ends on {SOON}, in 30 days: set OPENAI_MODEL to another one"),
        (
            "model.notice",
            (
                f"there is no model 'gpt-6-lunar' at {api.base_url}, or the key may not use it: "
                "set OPENAI_FALLBACK_MODELS to gpt-6-luna"
            ),
        ),
    ]


async def test_nobody_waits_for_a_server_that_hangs() -> None:
    async with hanging_server() as (url, called):
        chosen = settings(openai_base_url=url, openai_model="m")
        async with asyncio.timeout(PATIENCE_SECONDS), watched(chosen):
            await called.wait()


async def test_whatever_goes_wrong_fails_nothing(ear: Ear) -> None:
    chosen = settings(openai_base_url="http://127.0.0.1:1/v1", openai_model="m")
    service = build_service(chosen)
    service.agent._llm = 7  # type: ignore[assignment]  # nothing that has models
    async with watching_models(chosen, service):
        record = await ear.next()
    assert (record.levelname, record.getMessage()) == ("DEBUG", "model.not_watched")


def test_the_models_of_an_agent_of_ones_own_are_known_with_their_place() -> None:
    chosen = settings(openai_base_url="http://127.0.0.1:1/v1", openai_model="m", openai_transcription_model="ears")
    llm = FallbackLLM([OpenAIChatLLM(name, base_url="http://127.0.0.1:2/v1") for name in ("m", "n")])
    service = AgentService(FunctionsBasedAgent(llm=llm), embedder=OpenAIEmbedder("e", base_url="http://127.0.0.1:3/v1"))
    own = OpenAIClients(chosen, base_url=chosen.openai_base_url, api_key=None)
    used = [(model.name, model.setting, model.clients.base_url[-4:-3]) for model in used_models(chosen, service, own)]
    in_code = "the model in your agent's code"
    assert used == [
        ("m", "OPENAI_MODEL", "2"),
        ("n", in_code, "2"),
        ("e", in_code, "3"),
        ("ears", "OPENAI_TRANSCRIPTION_MODEL", "1"),
    ]


def test_a_service_without_a_server_has_nothing_to_watch() -> None:
    service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM([])))
    assert list(used_models(settings(), service, None)) == []


@pytest.mark.parametrize("names", ["a, b", "a b,", " a ,b,a"])
def test_fallbacks_are_named_in_a_list(names: str) -> None:
    chosen = settings(openai_fallback_models=names, openai_base_url="http://127.0.0.1:1/v1", openai_model="m")
    assert chosen.openai_fallback_models == ("a", "b")
    llm: Any = build_service(chosen).agent.llm  # type: ignore[attr-defined]  # it is an agent with a model
    assert llm.models == ("m", "a", "b")


def test_a_service_without_fallbacks_asks_its_model_itself() -> None:
    chosen = settings(openai_fallback_models="m", openai_base_url="http://127.0.0.1:1/v1", openai_model="m")
    assert isinstance(build_service(chosen).agent.llm, OpenAIChatLLM)  # type: ignore[attr-defined]  # as above


@pytest.mark.slow
def test_serve_is_ready_first_and_says_it_then(tmp_path: Any) -> None:
    with OpenAIApi.running(shutdowns={"m": SOON}) as api:
        bot = ServedBot(tmp_path, OPENAI_BASE_URL=api.base_url, OPENAI_MODEL="m")
        with bot:
            bot.start()
            deadline = time.monotonic() + PATIENCE_SECONDS
            while "model.notice" not in bot.log and time.monotonic() < deadline:
                time.sleep(0.05)
            bot.kill(signal.SIGTERM)
            said = [line for line in bot.log.splitlines() if "model.notice" in line]
    assert len(said) == 1
    assert f"the model m ends on {SOON}, in 30 days: set OPENAI_MODEL to another one" in as_then(said[0])
