"""The processes of a service, from start to signal: `serve` with a web server, `work` without one."""

import asyncio
import contextlib
import gc
import itertools
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

import uvicorn

from botservice import __version__
from botservice.app import GRACE_SECONDS, Application, running
from botservice.background.model_watch import watching_models
from botservice.config.settings import Settings
from botservice.core.background_task import background_task
from botservice.core.errors import SettingsError
from botservice.core.states import API, Outcome
from botservice.people.names import check_platforms
from botservice.server.connection_limits import (
    MOST_QUEUED,
    GuardedConnection,
    SharedConnection,
    UnacceptedConnections,
    most_at_once,
    most_connections,
)
from botservice.server.start_summary import describe, describe_model
from botservice.server.web_app import build_web_app
from botservice.service import AgentService
from botservice.storage.database import Storage
from botservice.storage.url import DatabaseUrl
from botservice.telemetry.exporting import tracing
from botservice.telemetry.instrumentation import sending_to
from botservice.telemetry.logs import logs_json
from botservice.telemetry.metrics import Metrics
from botservice.transport_plugins import build_transports, load_plugins
from botservice.turns.transport import Transport
from botservice.turns.turn import Share
from botservice.turns.usage_recorder import models_of

logger = logging.getLogger(__name__)

_LAST_REQUESTS_SECONDS = 1
_MAX_HEAD_BYTES = 16 * 1024
_OUT_SECONDS = 10.0  # what a PaaS gives between SIGTERM and SIGKILL
_REFUSED_SECONDS = 3.0  # nothing can be stored any more: there is nothing to wait for


async def serve(
    settings: Settings,
    service: AgentService,
    *,
    has_worker: bool = True,
    share: Share = Share(),  # noqa: B008 - frozen
    alongside: Callable[[asyncio.Event], Awaitable[None]] | None = None,
    on_ready: Callable[[Settings], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        has_worker: Whether this process works on turns; otherwise `work` does, in others.
        share: Which conversations this process works on first.
        alongside: Runs as well, as workers with the other shares do, until the event is set: they end while this does.
        on_ready: Called once, when the service has begun, with the port that it listens at.

    Raises:
        SettingsError: the port is taken, or the settings do not allow for several processes.
        DatabaseInUse: another process works on the same SQLite file.
    """
    _check(settings, service, is_split=not has_worker or alongside is not None)
    listener, ending = listen(settings), asyncio.Event()
    with listener:
        settings.port = listener.getsockname()[1]  # PORT=0 takes any
        transports = build_transports(settings, service)
        metrics = metrics_of(service, transports)
        async with (
            tracing(__version__),
            contextlib.AsyncExitStack() as last,
            running(settings, service, transports, has_worker=has_worker, share=share) as application,
            watching_models(settings, service),
        ):
            if alongside is not None:
                last.push_async_callback(_end, asyncio.ensure_future(alongside(ending)), ending)
            for line in describe(application):
                _say(line)
            gc.collect()
            gc.freeze()  # what was loaded until now stays: no later collection looks through it and holds the loop up
            with sending_to(metrics):
                await _serve_web(application, metrics, listener, ending, on_ready)


async def _end(alongside: Awaitable[None], ending: asyncio.Event) -> None:
    """Return once the processes alongside this one have ended, too."""
    ending.set()
    await alongside


def metrics_of(service: AgentService, transports: Sequence[Transport]) -> Metrics:
    """Build the numbers of a process, with what alarms and the dashboard look for as 0."""
    names = [API, *(transport.name for transport in transports)]
    return Metrics(__version__, itertools.product(names, Outcome), models_of(service.agent))


async def _serve_metrics(application: Application, metrics: Metrics, port: int) -> None:
    """Serve a worker's /metrics, /healthz and /readyz until it is to end."""
    with listen(application.settings.model_copy(update={"port": port})) as listener:
        _say(f"  listening  {application.settings.host}:{listener.getsockname()[1]}")
        await _serve_web(replace(application, transports=()), metrics, listener, asyncio.Event(), None)


async def _until_ended(storage: Storage, on_ready: Callable[[Callable[[], None]], None] | None) -> None:
    ending = asyncio.Event()
    with _on_signals(lambda: _stop(ending.set)):
        if on_ready is not None:
            on_ready(lambda: _stop(ending.set))
        async with _ending_where_refused(storage, ending.set):
            await ending.wait()


async def work(
    settings: Settings,
    service: AgentService,
    *,
    share: Share = Share(),  # noqa: B008 - frozen
    on_ready: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Work on turns until SIGTERM or SIGINT, without a web server.

    Args:
        share: Which conversations this process works on first.
        on_ready: Called once, with what ends it.

    Raises:
        SettingsError: the settings do not allow for several processes.
    """
    _check(settings, service, is_split=True)
    async with (
        tracing(__version__),
        running(settings, service, build_transports(settings, service), share=share) as application,
        watching_models(settings, service),
    ):
        _say("botservice works on turns, and serves no chats. Ctrl+C stops it.")
        _say(f"  model      {describe_model(application)}")
        _say(f"  database   {application.storage.name}")
        gc.collect()
        gc.freeze()
        metrics, port = metrics_of(service, application.transports), settings.metrics_port
        with sending_to(metrics):
            if port is not None and share == Share():  # of several on one machine, nobody could tell which answers
                await _serve_metrics(application, metrics, port)
            else:
                await _until_ended(application.storage, on_ready)
        for transport in application.transports:
            await transport.stop()


@contextlib.asynccontextmanager
async def _ending_where_refused(storage: Storage, stop: Callable[[], None]) -> AsyncIterator[None]:
    """Call stop if nothing can be kept in the database after all, and raise why when the block is left.

    Raises:
        UnsuitableDatabase: its sessions do not last, or it is not the one that was asked for.
    """

    async def watch() -> None:
        logger.error("storage.refused", extra={"reason": str(await storage.refused())})
        _stop(stop, exit_code=1)

    async with background_task(watch(), name="botservice-storage"):
        yield
    if storage.refusal is not None:
        raise storage.refusal


def _check(settings: Settings, service: AgentService, *, is_split: bool) -> None:
    """Refuse settings that do not allow for several processes, or that name people where no platform is."""
    where = DatabaseUrl.parse(settings.database_url) if service.storage is None else service.storage
    if is_split and where.is_sqlite:
        raise SettingsError(
            "a worker in a process of its own needs Postgres, because one process works on an SQLite file: "
            "set DATABASE_URL=postgresql://..., or run `botservice serve` alone, which does both"
        )
    if not service.transports and service.access is None:
        # What transports of its own serve, it alone knows.
        check_platforms(settings.owners | settings.allowed, [plugin.name for plugin in load_plugins()])


async def _serve_web(
    application: Application,
    metrics: Metrics,
    listener: socket.socket,
    ending: asyncio.Event,
    on_ready: Callable[[Settings], None] | None,
) -> None:
    server = _WebServer(
        application,
        uvicorn.Config(
            build_web_app(application, metrics),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=_LAST_REQUESTS_SECONDS,
            server_header=False,
            # A proxy has one address for everybody: there, it has to share.
            http=SharedConnection if application.settings.public_url is None else GuardedConnection,
            limit_concurrency=most_connections(),
            backlog=most_at_once(),
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        ),
    )

    def exit_server() -> None:
        ending.set()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    if loop.get_exception_handler() is None:
        loop.set_exception_handler(UnacceptedConnections())
    with _on_signals(lambda: _stop(exit_server)):
        if on_ready is not None:
            on_ready(application.settings)
        async with _ending_where_refused(application.storage, exit_server):
            await server.serve(sockets=[listener])


def _stop(begin: Callable[[], None], *, exit_code: int = 0) -> None:
    begin()
    if not exit_code:
        _say(f"stopping: answers that are being made have {GRACE_SECONDS:g} seconds")
    # Everything is stored; whatever does not let go by then is of no use any more.
    watchdog = threading.Timer(_REFUSED_SECONDS if exit_code else _OUT_SECONDS, os._exit, [exit_code])
    watchdog.daemon = True
    watchdog.start()


def _say(line: str) -> None:
    """Print a line for the person who started this; answers go on where nobody reads it any more."""
    if logs_json():
        logger.info("serve.says", extra={"text": " ".join(line.split())})
        return
    with contextlib.suppress(BrokenPipeError):
        print(line, flush=True)  # noqa: T201


@contextlib.contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call stop at SIGTERM, SIGINT, or SIGHUP, if that is not ignored; a second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        numbers.append(signal.SIGHUP)

    def release() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)

    def on_signal() -> None:
        release()
        stop()

    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        release()


class _WebServer(uvicorn.Server):
    """A web server that leaves signals to the process: turns have their grace after the last request."""

    def __init__(self, application: Application, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._application = application

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, with a queue for more connections than are taken at once: asyncio knows one number for both."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(MOST_QUEUED)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the transports first: the server would otherwise wait for a browser's event stream."""
        for transport in self._application.transports:
            await transport.stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def listen(settings: Settings) -> socket.socket:
    """Return a socket that listens where HOST and PORT say.

    Raises:
        SettingsError: the port is taken, or the address is not this machine's.
    """
    host = settings.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where the protocol is named does asyncio switch off the delay of small packets, up to 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, settings.port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; "
            "set PORT, or HOST, to one that is free here"
        ) from error
    return listener
