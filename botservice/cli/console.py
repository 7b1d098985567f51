"""What every command needs: settings, database, service, text that a terminal can show, and progress of long work."""

import asyncio
import contextlib
import gc
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from botservice.config.setting_choices import LogFormat, LogLevel
from botservice.core.errors import BotServiceError
from botservice.core.progress import Progress

if TYPE_CHECKING:
    from botservice.config.settings import Settings
    from botservice.service import AgentService
    from botservice.storage.database import Storage

logger = logging.getLogger(__name__)

T = TypeVar("T")

AppOption = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE:SERVICE", help="Your own AgentService; by default the one in bot.py here."),
]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
MaybeContextArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[CONTEXT]", help="A number, as `botservice contexts` lists it, or keys: telegram:42, chat_id=42."
    ),
]


def load_settings() -> "Settings":
    """Read the settings; what must never be shown is known from then on, and what goes wrong is logged."""
    from botservice.config.settings import Settings  # what checks them takes a third of the time of `--help`
    from botservice.telemetry.logs import configure_logging, register_secret

    settings = Settings.load()
    for secret in settings.secrets():
        register_secret(secret)
    is_quiet = settings.log_format is LogFormat.TEXT and settings.log_level is LogLevel.INFO
    configure_logging(level="WARNING" if is_quiet else settings.log_level.value, style=settings.log_format.value)
    return settings


def tell(text: str, level: int = logging.INFO) -> None:
    """Write a line to standard error, without secrets; with LOG_FORMAT=json, as a line of the log."""
    from botservice.telemetry.logs import configure_logging, logs_json, redact

    if os.environ.get("LOG_FORMAT", "").strip().lower() == LogFormat.JSON and not logs_json():  # before the settings
        configure_logging(level="INFO", style="json")
    if logs_json():
        logger.log(level, "command.says", extra={"text": text})
    else:
        typer.echo(redact(text), err=True)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do the work of a command, and return its result."""
    begin_collecting()
    return asyncio.run(work)


def begin_collecting() -> None:
    """Look for garbage from now on, and never among what was loaded until now: `main` had that wait."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def with_storage(work: "Callable[[Storage], Awaitable[T]]", *, migrate: bool = False) -> T:
    """Run work on the database of the settings, and return its result."""
    opened = open_storage(load_settings(), migrate=migrate)

    async def done() -> T:
        async with opened as storage:
            return await work(storage)

    return run(done())


def open_storage(settings: "Settings", *, migrate: bool = False) -> "Storage":
    """Return the database of the settings, to be entered."""
    from botservice.config.settings import reveal
    from botservice.storage.database import Storage

    key = reveal(settings.encryption_key)
    records = migrate and settings.record_transitions  # other commands only look
    return Storage.open(settings.database_url, migrate=migrate, encryption_key=key, records_transitions=records)


def quiet_service(settings: "Settings", app: str | None) -> "AgentService":
    """Return the service of the settings, or one's own, logging only errors unless more is set."""
    if settings.log_level is LogLevel.INFO:
        settings.log_level = LogLevel.ERROR
    return build_service(settings, app, says_which=False)


def printable(text: str) -> str:
    """Return text without anything that would move a terminal's cursor."""
    return text if text.isprintable() else ascii(text)


def read_day(text: str) -> datetime:
    """Return when the day that --since names begins, in UTC."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise BotServiceError(f"--since must be a day such as 2026-01-31, not {text!r}") from None


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: `1 call`, `2 calls`."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def build_service(settings: "Settings", app: str | None, *, says_which: bool = True) -> "AgentService":
    """Return the service of one's own that is named or found here, or the one that the settings describe.

    Args:
        app: What --app names.
        says_which: Whether standard error names a service that was found and not named.
    """
    from botservice.app import prepare
    from botservice.cli.own_bot import find_own_bot, load_service
    from botservice.config.env_files import check_spelling
    from botservice.factories import build_service as build

    prepare(settings)
    for slip in check_spelling(type(settings).model_fields):
        tell(f"botservice: {slip.text}; it does nothing", logging.WARNING)
    own = find_own_bot(app, settings)
    if own is None:
        return build(settings)
    service = load_service(own.name, source=own.source)
    if says_which and app is None:
        tell(f"bot      {own.name}")
    return service


EVERY_SECONDS = 5.0
_LEAST_FOR_AN_ESTIMATE = 0.01  # of less, an estimate may be days for what takes seconds
INTERRUPTED = 130  # what a shell says of a command that Ctrl+C ended


@contextlib.contextmanager
def long_work(what: str, *, left: str) -> Iterator[Progress]:
    """Show how far work is while the block runs, on standard error.

    Args:
        what: What is done, in a word or two.
        left: What Ctrl+C leaves behind.
    """
    begin_collecting()
    lines = LineProgress(what, tell, time.monotonic)
    try:
        with _bar(what) if sys.stderr.isatty() else contextlib.nullcontext(lines) as progress:
            yield progress
    except KeyboardInterrupt:
        tell(f"botservice: stopped. {left}", logging.WARNING)
        raise typer.Exit(INTERRUPTED) from None


@contextlib.contextmanager
def _bar(what: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None, note="")
        yield lambda done, total, note="": bars.update(task, completed=done, total=total or None, note=note)


class LineProgress:
    """Writes the progress of work in lines, for logs and screen readers."""

    def __init__(self, what: str, say: Callable[[str], object], clock: Callable[[], float]) -> None:
        self._what = what
        self._say = say
        self._clock = clock
        self._began = self._said = clock()

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """Write a line, unless the last one was just now."""
        now = self._clock()
        if now - self._said < EVERY_SECONDS:
            return
        self._said = now
        parts = [f"{self._what}: {self._state(done, total, now - self._began)}", note]
        self._say(", ".join(filter(None, parts)))

    @staticmethod
    def _state(done: float, total: float, passed: float) -> str:
        if total <= 0:
            return f"{passed:.0f} s"
        part = min(done / total, 1.0)
        if part < _LEAST_FOR_AN_ESTIMATE:
            return f"{part:.0%}"
        return f"{part:.0%}, about {passed * (1 - part) / part:.0f} s left"
