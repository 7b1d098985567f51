"""The composition root: every object is built here, from the settings, and closed here in reverse."""

import asyncio
import contextlib
import importlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from botservice.agents import FunctionsBasedAgent
from botservice.agents.functions_based import DEFAULT_PROMPT
from botservice.errors import SettingsError, StorageUnavailable
from botservice.history import NoMessages, TokenWindowMessageSelector
from botservice.llm import ChatLLM, OpenAIChatLLM
from botservice.llm.demo import DemoChatLLM
from botservice.llm.tokens import counter_for
from botservice.service import AgentService
from botservice.settings import Settings, reveal
from botservice.storage import Storage
from botservice.telemetry import configure_logging, register_secret
from botservice.tools.builtin import current_time
from botservice.turns.inbox import Inbox
from botservice.turns.worker import Worker
from transports.served import ServedTransport

GRACE_SECONDS = 9.0  # of the ten that a PaaS gives between SIGTERM and SIGKILL
_READY_SECONDS = 3.0
_DEMO_SEARCH_K = 8
# Where each PaaS says that it is one, and that its disk does not outlive a deployment.
_THROWAWAY_DISKS = ("DYNO", "RENDER", "RAILWAY_ENVIRONMENT", "K_SERVICE", "FLY_APP_NAME")


@dataclass(slots=True)
class Application:
    """A service that runs: its storage is open and its worker works."""

    settings: Settings
    service: AgentService
    storage: Storage
    worker: Worker
    transports: Sequence[ServedTransport]

    async def is_ready(self) -> str | None:
        """Return why requests had better go elsewhere; None where they are welcome."""
        if not self.worker.is_running:
            return "the worker does not run"
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await self.storage.ping()
        except (StorageUnavailable, TimeoutError):
            return "the database does not answer"
        return None


def prepare(settings: Settings) -> None:
    """Set up what is the process's own: logging, and what must never be shown."""
    for secret in settings.secrets():
        register_secret(secret)
    configure_logging(level=settings.log_level.value, style=settings.log_format.value)


def build_service(settings: Settings) -> AgentService:
    """Return the service that the settings describe, without a storage."""
    llm: ChatLLM
    if settings.has_model:
        llm = OpenAIChatLLM(
            settings.openai_model,
            base_url=settings.openai_base_url,
            api_key=reveal(settings.openai_api_key),
            timeout_seconds=settings.model_timeout_seconds,
        )
    else:
        llm = DemoChatLLM()
    agent = FunctionsBasedAgent(
        tools=[current_time],
        llm=llm,
        # The demo shows what searching finds, so nothing else stands in its prompt.
        message_selector=TokenWindowMessageSelector(settings.window_tokens) if settings.has_model else NoMessages(),
        search_k=settings.search_k if settings.has_model else _DEMO_SEARCH_K,
        prompt=settings.system_prompt or DEFAULT_PROMPT,
    )
    return AgentService(agent, max_steps=settings.max_steps)


def load_service(name: str) -> AgentService:
    """Return the service that `module:attribute` names; the current folder is importable.

    Raises:
        SettingsError: there is no such module or service.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise SettingsError(f"--app must be module:service, such as mybot:service, not {name!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0] and error.name != module_name:
            raise
        raise SettingsError(f"--app {name}: there is no module {module_name} in {Path.cwd()}") from error
    service = getattr(module, attribute, None)
    if not isinstance(service, AgentService):
        raise SettingsError(f"--app {name}: {attribute} is no AgentService in {module_name}")
    return service


@contextlib.asynccontextmanager
async def running(
    settings: Settings, service: AgentService, transports: Sequence[ServedTransport]
) -> AsyncIterator[Application]:
    """Run a service until the block is left; then let running turns have their grace.

    Raises:
        DatabaseInUse: another process works on the same SQLite file.
    """
    async with contextlib.AsyncExitStack() as stack:
        storage = service.storage or Storage.open(settings.database_url)
        if not storage.is_open:
            await stack.enter_async_context(storage)
        service.storage = storage
        stack.enter_context(storage.claims.working())
        await asyncio.to_thread(counter_for, getattr(getattr(service.agent, "llm", None), "model", None))
        worker = Worker(storage, service.options, transports)
        inbox = Inbox(storage, worker.wake)
        for transport in transports:
            stack.push_async_callback(transport.close)
        await worker.start()
        stack.push_async_callback(worker.stop, grace_seconds=GRACE_SECONDS)
        for transport in transports:
            await transport.start(inbox, storage)
            stack.push_async_callback(transport.stop)
        yield Application(settings, service, storage, worker, transports)


def build_web_app(application: Application) -> Starlette:
    """Return the web server's application."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        reason = await application.is_ready()
        return JSONResponse({"ready": reason is None, "reason": reason}, status_code=200 if reason is None else 503)

    routes: list[BaseRoute] = [Route("/healthz", healthz), Route("/readyz", readyz)]
    handlers: dict[Any, Any] = {}
    for transport in application.transports:
        routes.extend(transport.routes)
        handlers.update(getattr(transport, "exception_handlers", {}))
    return Starlette(routes=routes, exception_handlers=handlers)


async def serve(settings: Settings, service: AgentService, transports: Sequence[ServedTransport]) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        SettingsError: the port is taken.
    """
    listener = _listen(settings)
    with listener:
        async with running(settings, service, transports) as application:
            for line in describe(application, listener.getsockname()[1]):
                print(line, flush=True)  # noqa: T201 - what serve says to whoever started it
            await _serve_web(build_web_app(application), listener)


async def _serve_web(app: Starlette, listener: socket.socket) -> None:
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            server_header=False,
        )
    )
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await server.serve(sockets=[listener])
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


class _Server(uvicorn.Server):
    """A web server that leaves signals to the process: turns have their grace after the last request."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; set PORT, or HOST, to one that is free"
        ) from error
    return listener


def describe(application: Application, port: int) -> list[str]:
    """Return what is on, what is off, and which setting turns it on."""
    settings = application.settings
    on = {transport.name: transport.describe() for transport in application.transports}
    model = getattr(getattr(application.service.agent, "llm", None), "model", "your own")
    lines = {
        "database": application.storage.name,
        "model": "demo script; set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server" if model == "demo" else model,
        "telegram": on.get("telegram", "off; set TELEGRAM_BOT_TOKEN"),
        "slack": on.get("slack", "off; set SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET or SLACK_APP_TOKEN"),
        "browser": on.get("web", "off"),
        "listening": f"{settings.host}:{port}",
    }
    said = [f"  {name:<10} {value}" for name, value in lines.items()]
    paas = next((name for name in _THROWAWAY_DISKS if os.environ.get(name)), None)
    if application.storage.is_sqlite and paas is not None:
        said.append(f"  warning    {paas} is set: the disk here may not last; set DATABASE_URL to a Postgres")
    return ["botservice is running. Ctrl+C stops it.", *said]

