"""The composition root: every object is built here, from the settings, and closed here in reverse."""

import asyncio
import contextlib
import importlib
import logging
import os
import sys
import traceback
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dotenv import dotenv_values

from botservice.agent.demonstrating import order_tea
from botservice.agent.functions_based import DEFAULT_PROMPT, FunctionsBasedAgent
from botservice.agent.skills import Skills
from botservice.agent.tool_catalogue import built_in
from botservice.background.alerts import FailureAlerts
from botservice.background.maintenance import Maintenance
from botservice.background.observer import Observer
from botservice.background.retention import Retention
from botservice.config.settings import OPENAI_API_URL, Settings, reveal
from botservice.conversation.context import read_context_keys
from botservice.core.adapters import adopt
from botservice.core.errors import BotServiceError, InvalidSkill, SettingsError, StorageError, StorageUnavailable
from botservice.core.loading import loading_beside
from botservice.history.embeddings import Embedder, OpenAIEmbedder
from botservice.history.window import NoMessages, SteadyWindowMessageSelector
from botservice.llm.configured import configured_llm
from botservice.llm.openai.text_to_speech import OpenAISpeaker
from botservice.llm.tokens import counter_for
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.service import AgentService
from botservice.storage.blobs import check_readable
from botservice.storage.database import Storage
from botservice.storage.limits import StorageLimits
from botservice.telemetry.logs import configure_logging, register_secret
from botservice.turns.inbox import Inbox, LocalWork, Pressure
from botservice.turns.transport import Transport
from botservice.turns.turn import Share
from botservice.turns.usage_recorder import models_of
from botservice.turns.worker import Worker

if TYPE_CHECKING:
    from botservice.llm.openai.speech_to_text import OpenAITranscriber
    from botservice.mcp.servers import MCPServers

logger = logging.getLogger(__name__)

GRACE_SECONDS = 8.0  # of the ten that a PaaS gives between SIGTERM and SIGKILL
_READY_SECONDS = 3.0
_DEMO_SEARCH_K = 8
_WITH_TOKENS = ("telegram", "slack")
_SHOWN_HERE = ("web", "terminal")  # answers grow on their screens where the process that makes them has the page


@dataclass(slots=True)
class Application:
    """A service that runs: its storage is open and its worker works.

    Attributes:
        worker: None if other processes do the work.
        warnings: What is wrong and does not keep the service from answering.
    """

    settings: Settings
    service: AgentService
    storage: Storage
    worker: Worker | None
    transports: Sequence[Transport]
    warnings: Sequence[str] = ()

    async def is_ready(self) -> str | None:
        """Return why requests had better go elsewhere, or None if they are welcome."""
        if self.worker is not None and not self.worker.is_running:
            return "the worker does not run"
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await self.storage.ping()
        except (BotServiceError, TimeoutError):
            return "the database does not answer"  # its error may name hosts and users, and anybody may read this
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await self.storage.check_writes()
        except TimeoutError:
            return "the database takes no writes within some seconds"
        except BotServiceError as error:
            return str(error)
        return None


def prepare(settings: Settings) -> None:
    """Register the secrets of the settings, and set up logging."""
    for secret in settings.secrets():
        register_secret(secret)
    configure_logging(level=settings.log_level.value, style=settings.log_format.value)


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
            *built_in(settings.tools, fetch_asks=settings.fetch_asks),
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


def build_servers(settings: Settings) -> "MCPServers | None":
    """Return the MCP servers that the settings name, or None if they name no file.

    Raises:
        SettingsError: the file cannot be read, or says something wrong.
    """
    if settings.mcp_file is None:
        return None
    from botservice.mcp.servers import MCPServers

    kept = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    return MCPServers.load(
        settings.mcp_file,
        environment={**kept, **os.environ},
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
        from botservice.history.e5_embedder import E5_MODEL, E5Embedder
        from botservice.history.local_embedder import LocalEmbedder

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


def build_retention(settings: Settings) -> Retention:
    """Return how long records are kept."""
    return Retention.of_days(steps=settings.keep_steps_days, events=settings.keep_events_days)


def load_service(name: str, *, source: str | None = None) -> AgentService:
    """Return the service that `module:attribute` names; the current folder is importable.

    Args:
        source: What names it, for errors; by default the option --app.

    Raises:
        SettingsError: there is no such module or service, or the module fails.
    """
    source = source or f"--app {name}"
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        kind = source.partition(" ")[0].partition("=")[0]
        raise SettingsError(f"{kind} must be module:service, such as mybot:service, not {name!r}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise SettingsError(f"{source}: {module_name} needs {error.name}, which is not installed") from error
        raise SettingsError(f"{source}: there is no module {module_name} in {folder}") from error
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:
        logger.debug("app.not_imported", exc_info=True)
        raise SettingsError(f"{source}: {module_name} cannot be imported: {_where(error, folder)}") from error
    if not hasattr(module, attribute):
        known = [each for each, value in vars(module).items() if isinstance(value, AgentService)]
        near = f"; it has: {', '.join(known)}" if known else "; it has no AgentService"
        raise SettingsError(f"{source}: there is no {attribute} in {module_name}{near}")
    service = getattr(module, attribute)
    if not isinstance(service, AgentService):
        found = type(service).__name__
        raise SettingsError(f"{source}: {attribute} in {module_name} must be an AgentService, not {found}")
    return service


def _where(error: BaseException, folder: str) -> str:
    """Return an error with the line of the user's own file in which it came up, the last one below folder."""
    what = error.args[0] if isinstance(error, SyntaxError) else str(error)
    said = " ".join(f"{type(error).__name__}: {what}".split())
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{said} ({_shown(error.filename, folder)}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if _is_own(Path(each.filename), folder)]
    frame = (own or frames)[-1]
    return f"{said} ({_shown(frame.filename, folder)}:{frame.lineno})"


def _is_own(path: Path, folder: str) -> bool:
    return path.is_relative_to(folder) and not {"site-packages", "botservice"} & {*path.relative_to(folder).parts}


def _shown(filename: str, folder: str) -> str:
    path = Path(filename)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else filename


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
    from botservice.llm.openai.speech_to_text import OpenAITranscriber

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
    budgets = service.budgets or Budgets.of(settings)
    for model in models_of(service.agent):
        budgets.check_model(model)
        if settings.openai_api_key is not None and not budgets.has_price(model):
            logger.info("budget.price_unknown", extra={"model": model})
    hours = settings.approval_hours if service.approval_hours is None else service.approval_hours
    service.options = replace(
        service.options,
        budgets=budgets,
        access=service.access or Access.of(settings),
        approval_lasts=timedelta(hours=hours),
        max_steps=settings.max_steps if service.max_steps is None else service.max_steps,
        speaker=build_speaker(settings, budgets),
    )


@contextlib.asynccontextmanager
async def running(
    settings: Settings,
    service: AgentService,
    transports: Sequence[Transport],
    *,
    has_worker: bool = True,
    share: Share = Share(),  # noqa: B008 - frozen
) -> AsyncIterator[Application]:
    """Run a service until the block is left; then let running turns have their grace.

    Args:
        has_worker: Whether this process works on turns; otherwise it only takes in, for others to work on.
        share: Which conversations it works on first, where several processes are one service on a machine.

    Raises:
        DatabaseInUse: another process works on the same SQLite file.
    """
    transports = [adopt(Transport, each) for each in transports]
    async with contextlib.AsyncExitStack() as stack:
        service.storage = storage = await _open_storage(settings, service, stack)
        await stack.enter_async_context(_with_toolsets(service, are_used=has_worker))
        await _start_models(settings, service, storage, stack)
        options, max_turns = service.options, settings.max_turns
        worker = Worker(storage, options, (), commands=service.commands, max_turns=max_turns, share=share)
        loop = asyncio.get_running_loop()  # a program may send from another one
        service.on_sent = lambda context_id: loop.call_soon_threadsafe(worker.wake, context_id)
        pressure = Pressure(max_waiting=settings.max_waiting)
        await stack.enter_async_context(pressure.watching(storage))
        inbox = Inbox(
            storage,
            worker.wake,
            options.clock,
            pressure=pressure,
            work=LocalWork(share if has_worker else None, _SHOWN_HERE, worker.holds),
            access=options.access,
        )
        for transport in transports:
            stack.push_async_callback(transport.close)
        if has_worker:
            await _check_alerts(settings, storage, {each.name for each in transports})
            await stack.enter_async_context(_working(settings, service, storage, worker))
        refused = await _start_transports(transports, inbox, storage, worker, stack)
        warnings = [*refused, *await _find_warnings(storage)]
        yield Application(settings, service, storage, worker if has_worker else None, transports, warnings)


async def _start_transports(
    transports: Sequence[Transport], inbox: Inbox, storage: Storage, worker: Worker, stack: contextlib.AsyncExitStack
) -> list[str]:
    """Start every transport, and return why some platforms are not reached: the others go on without them.

    The worker works for those that have started. What was asked on the others waits until their token is accepted.

    Raises:
        SettingsError: no platform accepts its token.
    """
    refused: list[SettingsError] = []
    started: set[str] = set()
    for transport in transports:
        stack.push_async_callback(transport.stop)
        try:
            await transport.start(inbox, storage)
        except SettingsError as error:
            logger.error("transport.refused", extra={"transport": transport.name, "reason": str(error)})  # noqa: TRY400 - its text says it all
            refused.append(error)
        else:
            worker.take_on(transport)
            started.add(transport.name)
    if refused and started <= set(_SHOWN_HERE):
        raise refused[0]
    return list(map(str, refused))


async def _check_alerts(settings: Settings, storage: Storage, platforms: Collection[str]) -> None:
    """Return if the chat of ALERTS_TO can be told something.

    Raises:
        SettingsError: there is no context of its number, or its platform is not set up.
    """
    chat = settings.alerts_to
    if chat is None:
        return
    keys, number = chat.keys, chat.number
    if number is not None:
        try:
            keys = await storage.read(lambda connection: read_context_keys(connection, number))
        except StorageUnavailable:
            raise
        except StorageError as error:
            raise SettingsError(f"ALERTS_TO: {error}: `botservice contexts` lists them") from error
    platform = keys.get("transport")
    if platform in _WITH_TOKENS and platform not in platforms:
        raise SettingsError(f"ALERTS_TO names a chat on {platform}, which is not set up: set its token")
    if platform is None:
        raise SettingsError("ALERTS_TO names a context on no platform: nobody would see what is told there")


async def _find_warnings(storage: Storage) -> list[str]:
    """Check what the service can do without, such as files whose key is lost."""
    try:
        await storage.read(check_readable)
    except StorageUnavailable:
        raise
    except StorageError as error:
        advice = "put the key back, or give the files up: `botservice encrypt --give-up-unreadable`"
        return [f"some stored files cannot be read: {error}; {advice}"]
    return []


async def _open_storage(settings: Settings, service: AgentService, stack: contextlib.AsyncExitStack) -> Storage:
    """Return the database, open, and claimed by this process where only one may work on it."""
    storage = service.storage or Storage.open(
        settings.database_url,
        limits=StorageLimits(rest=settings.database_idle_seconds),
        encryption_key=reveal(settings.encryption_key),
        records_transitions=settings.record_transitions,
    )
    if not storage.is_open:
        await stack.enter_async_context(storage)
    stack.enter_context(storage.claims.working())
    return storage


async def _start_models(
    settings: Settings, service: AgentService, storage: Storage, stack: contextlib.AsyncExitStack
) -> None:
    """Load the embedder, apply access and budgets, and register what is closed in the end."""
    llm = service.agent.llm
    stack.enter_context(loading_beside(partial(counter_for, None if llm is None else llm.model)))
    if llm is not None:
        stack.push_async_callback(llm.close)
    embedder = service.embedder or await asyncio.to_thread(build_embedder, settings)
    if embedder is not None:
        stack.push_async_callback(embedder.close)
        from botservice.history.indexing import EmbeddingIndexer

        await stack.enter_async_context(EmbeddingIndexer(storage, embedder))
    govern(settings, service)
    if service.options.speaker is not None:
        stack.push_async_callback(service.options.speaker.close)


@contextlib.asynccontextmanager
async def _working(settings: Settings, service: AgentService, storage: Storage, worker: Worker) -> AsyncIterator[None]:
    """Run the worker, the upkeep and the observer until the block is left; running turns have their grace."""
    await worker.start()
    try:
        async with (
            Maintenance(storage, build_retention(settings)).running(),
            _observing(settings, service, storage),
            _alerting(settings, service, storage, worker),
        ):
            yield
    finally:
        await worker.stop(grace_seconds=0.0 if storage.refusal else GRACE_SECONDS)


@contextlib.asynccontextmanager
async def _alerting(settings: Settings, service: AgentService, storage: Storage, worker: Worker) -> AsyncIterator[None]:
    """Tell the chat of ALERTS_TO what has to be told, if there is one."""
    chat = settings.alerts_to
    if chat is None:
        yield
        return
    async with FailureAlerts(storage, chat, service.options.clock, worker).running():
        yield


@contextlib.asynccontextmanager
async def _observing(settings: Settings, service: AgentService, storage: Storage) -> AsyncIterator[None]:
    """Read conversations in the background, if the settings say so."""
    observer = build_observer(settings, service, storage)
    if observer is None:
        yield
        return
    try:
        async with observer:
            yield
    finally:
        if settings.observer_model is not None:  # otherwise the agent has it, whose turns may still run
            await observer.close()


@contextlib.asynccontextmanager
async def _with_toolsets(service: AgentService, *, are_used: bool) -> AsyncIterator[None]:
    """Fetch the tools of toolsets in the background, and close these in the end."""
    fetching = [asyncio.create_task(service.agent.tools_now())] if are_used else []
    try:
        yield
    finally:
        for task in fetching:
            task.cancel()
        await asyncio.gather(*fetching, return_exceptions=True)
        await service.close()
