"""The objects of a service, each built from the settings."""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from botservice.agent.functions_based_agent import DEFAULT_PROMPT, FunctionsBasedAgent
from botservice.agent.skills import Skills
from botservice.agent.tool import Tool
from botservice.agent.tool_catalogue import built_in, order_tea
from botservice.background.observer import Observer
from botservice.config.env_files import environment_with_file
from botservice.config.setting_choices import GroupAnswers
from botservice.config.settings import HAND_OVER, OPENAI_API_URL, Settings, reveal
from botservice.core.errors import InvalidSkill, SettingsError
from botservice.history.embeddings import Embedder, OpenAIEmbedder
from botservice.history.window import NoMessages, SteadyWindowMessageSelector
from botservice.knowledge.stored_documents import StoredDocuments
from botservice.llm.configured import configured_llm
from botservice.llm.openai.speech import OpenAISpeaker
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.service import AgentService
from botservice.storage.database import Storage
from botservice.turns.hand_over_tool import HandOver
from botservice.turns.listening import ListeningGate
from botservice.turns.usage_recorder import models_of

if TYPE_CHECKING:
    from botservice.llm.openai.speech import OpenAITranscriber
    from botservice.mcp.servers import MCPServers

logger = logging.getLogger(__name__)

_DEMO_SEARCH_K: Final = 8


def build_service(settings: Settings, *, has_toolsets: bool = True) -> AgentService:
    """Return the service that the settings describe, without a storage.

    Raises:
        SettingsError: the file that names MCP servers cannot be read, or says something wrong.
    """
    has_model = settings.has_model
    # The demo script would not know when to call them.
    servers = build_servers(settings) if has_model and has_toolsets else None
    agent = FunctionsBasedAgent(
        tools=[
            *built_in([each for each in settings.tools if each != HAND_OVER], fetch_asks=settings.fetch_asks),
            *build_hand_over(settings),
            *([order_tea] if settings.tools and not has_model else []),
        ],
        toolsets=[] if servers is None else [servers],
        llm=configured_llm(settings),
        # The demo shows what searching finds, so nothing else stands in its prompt.
        message_selector=SteadyWindowMessageSelector(settings.window_tokens) if has_model else NoMessages(),
        search_k=settings.search_k if has_model else _DEMO_SEARCH_K,
        search_tokens=settings.search_tokens,
        notes_tokens=settings.notes_tokens if has_model else 0,
        prompt=settings.system_prompt or DEFAULT_PROMPT,
        skills=build_skills(settings),
    )
    if "web_search" in settings.tools and not agent.llm.searches_web:
        logger.warning("tools.no_web_search", extra={"advice": "it needs a server that speaks Responses: OPENAI_API"})
    return AgentService(agent, max_steps=settings.max_steps, name=settings.bot_name)


def build_hand_over(settings: Settings) -> list[Tool]:
    """Return the tool that calls a person, where it is wanted and the settings say who can be told."""
    if HAND_OVER not in settings.tools or not (settings.owners or settings.alerts_to):
        return []
    pages = settings.public_url or f"http://{settings.host}:{settings.port}"
    return [HandOver(Access.of(settings), settings.alerts_to, pages).tool()]


def build_servers(settings: Settings) -> "MCPServers | None":
    """Return the MCP servers that the settings name, or None if they name no file.

    Raises:
        SettingsError: the file cannot be read, or says something wrong.
    """
    if settings.mcp_file is None:
        return None
    from botservice.mcp.servers import MCPServers

    return MCPServers.load(
        settings.mcp_file,
        environment=environment_with_file(),
        public_url=settings.public_url,
        encryption_key=reveal(settings.encryption_key),
    )


def build_skills(settings: Settings) -> Skills | None:
    """Return the skills of the folder that is set, or of the one that people usually have, or None if there is none.

    Raises:
        SettingsError: the folder that is set is not there.
    """
    folder = settings.skills_folder
    if folder is None:
        return None
    try:
        return Skills.load(folder)
    except InvalidSkill as error:
        raise SettingsError(f"SKILLS: {error}") from error


def build_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder of the settings, or None. Loading a local model takes a second or so."""
    if settings.local_embedding_model is not None:
        from botservice.history.local_embedder import E5_MODEL, E5Embedder, LocalEmbedder

        try:
            if settings.local_embedding_model == E5_MODEL:
                return E5Embedder()
            return LocalEmbedder(settings.local_embedding_model)
        except SettingsError as error:
            raise SettingsError(f"LOCAL_EMBEDDING_MODEL: {error}") from error
    if settings.embedding_model is None:
        return None
    return OpenAIEmbedder(
        settings.embedding_model, base_url=settings.openai_base_url, api_key=reveal(settings.openai_api_key)
    )


def build_observer(settings: Settings, service: AgentService, storage: Storage) -> Observer | None:
    """Return the observer of conversations, or None if it is off or has no model.

    Raises:
        SettingsError: a budget limits money and nobody said what its model costs.
    """
    if not settings.observe or not settings.has_model:
        return None
    agent = service.agent
    model = settings.observer_model
    llm = agent.llm if model is None else configured_llm(settings, model)
    if llm is None:
        return None
    budgets = service.budgets or Budgets.of(settings)
    for name in llm.models:
        budgets.check_model(name)
    selected = None if agent.message_selector is None else agent.message_selector.max_tokens
    return Observer(
        storage,
        llm,
        window_tokens=settings.window_tokens if selected is None else selected,
        notes_tokens=settings.notes_tokens if agent.notes_tokens is None else agent.notes_tokens,
        budgets=budgets,
        access=service.access,
    )


def build_gate(settings: Settings, service: AgentService, budgets: Budgets) -> ListeningGate | None:
    """Return what decides when to speak in groups, or None without a model.

    Raises:
        SettingsError: a budget limits money and nobody said what its model costs.
    """
    model = settings.gate_model
    llm = service.agent.llm if model is None else configured_llm(settings, model)
    if llm is None:
        return None
    for name in llm.models:
        budgets.check_model(name)
    listens = settings.group_answers is GroupAnswers.LISTENING
    return ListeningGate.of(llm, budgets, listens=listens, per_hour=settings.unasked_per_hour)


def build_speaker(settings: Settings, budgets: Budgets) -> OpenAISpeaker | None:
    """Return the speaker of answers, or None if OPENAI_SPEECH_MODEL is unset.

    Raises:
        SettingsError: there is no server to ask, or a budget limits money and nobody said what speech costs.
    """
    if settings.openai_speech_model is None:
        return None
    budgets.check_model(settings.openai_speech_model)
    return OpenAISpeaker(
        settings.openai_speech_model, base_url=settings.openai_base_url, api_key=reveal(settings.openai_api_key)
    )


def build_transcriber(settings: Settings) -> "OpenAITranscriber | None":
    """Return what turns speech into text, or None if OPENAI_TRANSCRIPTION_MODEL is unset.

    Raises:
        SettingsError: it is set, and there is no server to ask.
    """
    if settings.openai_transcription_model is None:
        return None
    from botservice.llm.openai.speech import OpenAITranscriber

    if not settings.has_model:
        raise SettingsError("OPENAI_TRANSCRIPTION_MODEL needs OPENAI_API_KEY, or OPENAI_BASE_URL for another server")
    url = settings.openai_base_url or OPENAI_API_URL
    return OpenAITranscriber(url, model=settings.openai_transcription_model, api_key=reveal(settings.openai_api_key))


def govern(settings: Settings, service: AgentService) -> None:
    """Give a service the access, budgets and speaker of the settings, unless it has its own.

    Raises:
        SettingsError: a budget is too low for any call, or limits money and nobody said what the model costs.
    """
    if service.name is None and settings.bot_name is not None:
        service.take_name(settings.bot_name)
    access = service.access or Access.of(settings)
    if isinstance(service.agent, FunctionsBasedAgent) and service.agent.knowledge is None:
        service.agent.knowledge, service.agent.knowledge_tokens = StoredDocuments(access), settings.knowledge_tokens
    budgets = service.budgets or Budgets.of(settings)
    for model in models_of(service.agent):
        budgets.check_model(model)
        if settings.openai_api_key is not None and not budgets.has_price(model):
            logger.info("budget.price_unknown", extra={"model": model})
    hours = settings.approval_hours if service.approval_hours is None else service.approval_hours
    service.options = replace(
        service.options,
        budgets=budgets,
        access=access,
        approval_lasts=timedelta(hours=hours),
        max_steps=settings.max_steps if service.max_steps is None else service.max_steps,
        speaker=build_speaker(settings, budgets),
        gate=build_gate(settings, service, budgets),
    )
