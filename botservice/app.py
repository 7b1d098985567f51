"""A service that runs: its storage, models, worker and transports, opened here and closed in reverse."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from botservice.background.alerts import FailureAlerts
from botservice.background.maintenance import Maintenance, Retention
from botservice.config.settings import Settings, reveal
from botservice.conversation.queries import read_context_keys
from botservice.core.argument_checks import adopt
from botservice.core.background_task import background_task
from botservice.core.errors import BotServiceError, SettingsError, StorageError, StorageUnavailable
from botservice.core.loading import loading_alongside
from botservice.core.states import EventKind
from botservice.factories import build_embedder, build_observer, govern
from botservice.history.embeddings import Embedder
from botservice.knowledge.watcher import KnowledgeWatcher
from botservice.llm.tokens import counter_for
from botservice.service import AgentService
from botservice.storage.blobs import check_readable
from botservice.storage.database import Storage
from botservice.storage.limits import StorageLimits
from botservice.telemetry.logs import configure_logging, register_secret
from botservice.turns.inbox import Inbox, LocalWork, Pressure
from botservice.turns.transport import Transport
from botservice.turns.turn import Share
from botservice.turns.worker import Worker

logger = logging.getLogger(__name__)

GRACE_SECONDS = 8.0  # of the ten that a PaaS gives between SIGTERM and SIGKILL
_READY_SECONDS = 3.0


@dataclass(slots=True)
class Application:
    """A service that runs: its storage is open and its worker works.

    Attributes:
        worker: None if other processes do the work.
        warnings: What is wrong and does not keep the service from answering.
        inbox: Takes in what transports and other programs hand in.
    """

    settings: Settings
    service: AgentService
    storage: Storage
    worker: Worker | None
    transports: Sequence[Transport]
    warnings: Sequence[str] = ()
    inbox: Inbox | None = None

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
        stack.push_async_callback(service.close)
        if has_worker:
            await stack.enter_async_context(background_task(service.agent.tools_now(), name="botservice-toolsets"))
        embedder = await _start_models(settings, service, storage, stack)
        options, max_turns = service.options, settings.max_turns
        worker = Worker(storage, options, (), commands=service.commands, max_turns=max_turns, share=share)
        loop = asyncio.get_running_loop()  # a program may send from another one
        service.on_sent = lambda context_id: loop.call_soon_threadsafe(worker.wake, context_id, EventKind.PROGRAM)
        pressure = Pressure(max_waiting=settings.max_waiting)
        await stack.enter_async_context(pressure.watching(storage))
        inbox = Inbox(
            storage,
            worker.wake,
            options.clock,
            pressure=pressure,
            work=LocalWork(share if has_worker else None, _local(transports), worker.holds),
            access=options.access,
        )
        for transport in transports:
            stack.push_async_callback(transport.close)
        if has_worker:
            await _check_alerts(settings, storage, {each.name for each in transports})
            await stack.enter_async_context(_working(settings, service, storage, worker, embedder))
        refused = await _start_transports(transports, inbox, storage, worker, stack)
        warnings = [*refused, *await _find_warnings(storage)]
        yield Application(settings, service, storage, worker if has_worker else None, transports, warnings, inbox)


def _local(transports: Sequence[Transport]) -> set[str]:
    return {each.name for each in transports if each.is_local}


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
    if refused and started <= _local(transports):
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
    if platform is None:
        raise SettingsError("ALERTS_TO names a context on no platform: nobody would see what is told there")
    if platform not in platforms:
        raise SettingsError(f"ALERTS_TO names a chat on {platform}, which is not set up: set its token")


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
) -> Embedder | None:
    """Return the embedder, apply access and budgets, and register what is closed in the end."""
    llm = service.agent.llm
    stack.enter_context(loading_alongside(partial(counter_for, None if llm is None else llm.model)))
    if llm is not None:
        stack.push_async_callback(llm.close)
    embedder = service.embedder or await asyncio.to_thread(build_embedder, settings)
    if embedder is not None:
        stack.push_async_callback(embedder.close)
        from botservice.history.indexing import EmbeddingIndexer

        await stack.enter_async_context(EmbeddingIndexer(storage, embedder))
    govern(settings, service)
    if service.options.gate is not None and settings.gate_model is not None:  # otherwise the agent has its model
        stack.push_async_callback(service.options.gate.close)
    if service.options.speaker is not None:
        stack.push_async_callback(service.options.speaker.close)
    return embedder


@contextlib.asynccontextmanager
async def _working(
    settings: Settings, service: AgentService, storage: Storage, worker: Worker, embedder: Embedder | None
) -> AsyncIterator[None]:
    """Run the worker and the background work until the block is left; running turns have their grace."""
    await worker.start()
    try:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(Maintenance(storage, Retention.of(settings)).running())
            observer = build_observer(settings, service, storage)
            if observer is not None:
                if settings.observer_model is not None:  # otherwise the agent has it, whose turns may still run
                    stack.push_async_callback(observer.close)
                await stack.enter_async_context(observer)
            if settings.alerts_to is not None:
                alerts = FailureAlerts(storage, settings.alerts_to, service.options.clock, worker)
                await stack.enter_async_context(alerts.running())
            await stack.enter_async_context(KnowledgeWatcher(storage, settings.knowledge, embedder).running())
            yield
    finally:
        await worker.stop(grace_seconds=0.0 if storage.refusal else GRACE_SECONDS)
