"""botservice chat: the same service on the terminal, in this process or in one that runs already."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from botservice.cli.console import begin_collecting, build_service, load_settings
from botservice.config.setting_choices import LogLevel
from botservice.core.errors import DatabaseInUse

if TYPE_CHECKING:
    from botservice.config.settings import Settings
    from botservice.service import AgentService
    from transports.terminal.joining_client import JoinedChat
    from transports.terminal.lines import LineSource
    from transports.terminal.rendering import RenderedScreen
    from transports.terminal.screens import PlainScreen, Screen

_PLAIN_TERMINALS = frozenset({"", "dumb", "unknown"})


def chat(
    app: Annotated[
        str | None,
        typer.Option("--app", metavar="MODULE:SERVICE", help="Your own AgentService; by default that of bot.py here."),
    ] = None,
    session: Annotated[str, typer.Option(help="Which conversation; each remembers its own.")] = "default",
    *,
    history: Annotated[
        bool, typer.Option("--history/--no-history", help="Whether what you type is kept for the arrow keys.")
    ] = True,
) -> None:
    """Talk to the same service on the terminal. Piped input is answered line by line.

    Where `botservice serve` runs on the same SQLite file, it answers; with its own agent.
    """
    settings = load_settings()
    if settings.log_level is LogLevel.INFO:
        settings.log_level = LogLevel.ERROR  # the terminal is for the conversation
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # what is no text is shown as such
    try:
        was_interrupted = asyncio.run(_chat(settings, app, session, has_history=history))
    except DatabaseInUse as error:
        once_more = f"botservice chat --app {app}" if app else "botservice chat"
        raise DatabaseInUse(
            f"{error}\nIf that is `botservice serve`, chat in its page in the browser. "
            f"Or give this chat a file of its own: DATABASE_URL=sqlite:///chat.db {once_more}"
        ) from error
    if was_interrupted:
        raise typer.Exit(130)


async def _chat(settings: "Settings", app: str | None, session: str, *, has_history: bool) -> bool:
    """Chat until the input ends, and return whether it was interrupted."""
    from transports.terminal.lines import EditedLines

    lines, screen = _terminal(has_history=has_history)
    screen.greet()
    edited = lines if isinstance(lines, EditedLines) else None
    if edited is not None:
        edited.begin()  # typing can begin while the rest is loaded
    try:
        joined = await _join(settings)
        if joined is None:
            service = await asyncio.to_thread(build_service, settings, app)
            return await _chat_here(settings, service, session, lines, screen)
        is_interactive = sys.stdin.isatty()
        conversation = asyncio.create_task(joined.converse(session, lines, screen, is_interactive=is_interactive))
        return await _until_over(conversation, lambda: joined.can_interrupt, joined.interrupt)
    finally:
        if edited is not None:
            await edited.cancel()


async def _chat_here(
    settings: "Settings", service: "AgentService", session: str, lines: "LineSource", screen: "Screen"
) -> bool:
    from botservice.app import running
    from transports.terminal.app import TerminalTransport

    terminal = TerminalTransport(
        session_id=session, lines=lines, screen=screen, bot_name=service.name or settings.bot_name
    )
    stopping: set[asyncio.Task[None]] = set()
    async with running(settings, service, [terminal]):
        conversation = asyncio.create_task(terminal.converse())
        was_interrupted = await _until_over(
            conversation,
            lambda: terminal.can_interrupt,
            lambda: stopping.add(asyncio.create_task(terminal.interrupt())),
        )
        for task in stopping:
            await task
    return was_interrupted


async def _until_over(
    conversation: "asyncio.Task[None]", can_interrupt: Callable[[], bool], interrupt: Callable[[], object]
) -> bool:
    """Return when a conversation is over, and whether that was an interruption. Ctrl+C stops an answer first."""

    def on_interrupt() -> None:
        if can_interrupt():
            interrupt()
        else:
            conversation.cancel()

    begin_collecting()  # everything is loaded
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    loop.add_signal_handler(signal.SIGTERM, conversation.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await conversation
    return conversation.cancelled() and not sys.stdin.isatty()


async def _join(settings: "Settings") -> "JoinedChat | None":
    """Return a connection to the service that runs on the same SQLite file, or None if none does."""
    from transports.terminal.joining_client import join

    path = await asyncio.to_thread(_path_of, settings.database_url)
    return None if path is None else await join(path)


def _path_of(database_url: str) -> Path | None:
    from botservice.storage.url import DatabaseUrl

    return DatabaseUrl.parse(database_url).path


def _terminal(*, has_history: bool) -> "tuple[LineSource, PlainScreen | RenderedScreen]":
    """Return what reads and what shows: with a line editor and Markdown on a terminal that can do that, or plainly."""
    from transports.terminal.lines import EditedLines, PlainLines, history_file
    from transports.terminal.screens import PlainScreen

    is_typed, is_seen = sys.stdin.isatty(), sys.stdout.isatty()
    if not is_typed or not is_seen or os.environ.get("TERM", "") in _PLAIN_TERMINALS:
        return PlainLines(sys.stdin), PlainScreen(sys.stdout, is_interactive=is_typed)
    from rich.console import Console

    from transports.terminal.rendering import RenderedScreen

    return EditedLines(history_file() if has_history else None), RenderedScreen(Console(highlight=False))
