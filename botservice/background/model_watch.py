"""Warning in the log, in time, that a model of the service ends or is not there."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime
from typing import Final

from botservice.config.setting_choices import ApiChoice
from botservice.config.settings import Settings, reveal
from botservice.core.background_task import background_task
from botservice.core.loading import SETTLING_SECONDS
from botservice.history.embeddings import Embedder, OpenAIEmbedder
from botservice.llm.chat import ChatLLM
from botservice.llm.model_notices import ModelNotice, UsedModel, examine_models
from botservice.llm.openai.http_client import OpenAIClients
from botservice.llm.openai.llm import DEFAULT_MODEL, OpenAIChatLLM
from botservice.service import AgentService

logger = logging.getLogger(__name__)

_DAY_SECONDS: Final = 86_400.0
_IN_CODE: Final = "the model in your agent's code"


@contextlib.asynccontextmanager
async def watching_models(settings: Settings, service: AgentService) -> AsyncIterator[None]:
    """Look at the models now and every day while the block runs; nobody waits for it, and nothing fails by it."""
    async with background_task(_watch(settings, service), name="botservice-models"):
        yield


async def notices_of(settings: Settings, service: AgentService, today: date) -> list[ModelNotice]:
    """Return what has to be done about the models that a service uses.

    Raises:
        SettingsError: there is neither a key nor a base URL for a model that the settings name.
    """
    async with contextlib.AsyncExitStack() as stack:
        own = None
        if settings.has_model:
            own = _clients(settings)
            stack.push_async_callback(own.close)
        return await examine_models(list(used_models(settings, service, own)), today)


def used_models(settings: Settings, service: AgentService, own: OpenAIClients | None) -> Iterator[UsedModel]:
    """Yield the models behind servers that a service uses, each once.

    Args:
        own: The clients of the server that the settings name, or None if they name none.
    """
    is_gateway = settings.openai_api is ApiChoice.RESPONSES
    llm = service.agent.llm
    for each in () if llm is None else llm.llms:
        yield from _of_client(each, settings)
    if service.embedder is not None:
        yield from _of_client(service.embedder, settings)
    elif own is not None and settings.embedding_model is not None:
        yield UsedModel(settings.embedding_model, "OPENAI_EMBEDDING_MODEL", own, is_gateway)
    if own is not None and settings.observe and settings.observer_model is not None:
        yield UsedModel(settings.observer_model, "OBSERVER_MODEL", own, is_gateway)
    if own is not None and settings.gate_model is not None:
        yield UsedModel(settings.gate_model, "GATE_MODEL", own, is_gateway)
    if own is not None and settings.openai_transcription_model is not None:
        yield UsedModel(settings.openai_transcription_model, "OPENAI_TRANSCRIPTION_MODEL", own, is_gateway)


def _of_client(client: ChatLLM | Embedder, settings: Settings) -> Iterator[UsedModel]:
    """Yield the model behind a client, where it is one of a server."""
    if isinstance(client, OpenAIChatLLM):
        takes_tools_by_chat = client.api == "chat" and client.reasoning_effort != "none"
        setting = _setting(client.model, settings)
        yield UsedModel(client.model, setting, client.clients, client.is_openai, takes_tools_by_chat)
    elif isinstance(client, OpenAIEmbedder):
        is_gateway = settings.openai_api is ApiChoice.RESPONSES
        yield UsedModel(client.model, _setting(client.model, settings), client.clients, is_gateway)


def _setting(name: str, settings: Settings) -> str:
    if name in settings.openai_fallback_models:
        return "OPENAI_FALLBACK_MODELS"
    if name == settings.embedding_model:
        return "OPENAI_EMBEDDING_MODEL"
    return "OPENAI_MODEL" if name == (settings.openai_model or DEFAULT_MODEL) else _IN_CODE


def _clients(settings: Settings) -> OpenAIClients:
    return OpenAIClients(settings, base_url=settings.openai_base_url, api_key=reveal(settings.openai_api_key))


async def _watch(settings: Settings, service: AgentService) -> None:
    said: set[str] = set()
    await asyncio.sleep(SETTLING_SECONDS)
    while True:
        try:
            for notice in await notices_of(settings, service, datetime.now(UTC).date()):
                if notice.key not in said:
                    said.add(notice.key)
                    logger.warning("model.notice", extra={"reason": notice.text})
        except Exception:  # whatever it is: the service answers without it
            logger.debug("model.not_watched", exc_info=True)
        await asyncio.sleep(_DAY_SECONDS)
