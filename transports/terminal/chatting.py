"""A chat on this terminal: with a service of this process, or with one that runs already."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from botservice.cli.console import begin_collecting
from botservice.config.settings import Settings
from transports.terminal.lines import EditedLines, LineSource, PlainLines, history_file
from transports.terminal.screens import PlainScreen, Screen

if TYPE_CHECKING:
    from botservice.service import AgentService
    from transports.terminal.joining_client import JoinedChat
    from transports.terminal.rendering import RenderedScreen

_PLAIN_TERMINALS = frozenset({"", "dumb", "unknown"})


async def chat(
    settings: Settings, make_service: "Callable[[], AgentService]", session: str, *, has_history: bool
) -> bool:
    """Chat until the input ends, and return whether it was interrupted."""
    lines, screen = _terminal(has_history=has_history)
    screen.greet()
    edited = lines if isinstance(lines, EditedLines) else None
    if edited is not None:
        edited.begin()  # typing can begin while the rest is loaded
    try:
        joined = await _join(settings)
        if joined is None:
            service = await asyncio.to_thread(make_service)
            return await _chat_here(settings, service, session, lines, screen)
        is_interactive = sys.stdin.isatty()
        conversation = asyncio.create_task(joined.converse(session, lines, screen, is_interactive=is_interactive))
        return await _until_over(conversation, lambda: joined.can_interrupt, joined.interrupt)
    finally:
        if edited is not None:
            await edited.cancel()


async def _chat_here(
    settings: Settings, service: "AgentService", session: str, lines: LineSource, screen: Screen
) -> bool:
    from botservice.app import running
    from transports.terminal.app import TerminalTransport

    bot_name, is_interactive = service.name or settings.bot_name, sys.stdin.isatty()
    terminal = TerminalTransport(session, lines, screen, is_interactive=is_interactive, bot_name=bot_name)
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


async def _join(settings: Settings) -> "JoinedChat | None":
    """Return a connection to the service that runs on the same SQLite file, or None if none does."""
    from transports.terminal.joining_client import join

    path = await asyncio.to_thread(_path_of, settings.database_url)
    return None if path is None else await join(path)


def _path_of(database_url: str) -> Path | None:
    from botservice.storage.url import DatabaseUrl

    return DatabaseUrl.parse(database_url).path


def _terminal(*, has_history: bool) -> "tuple[LineSource, PlainScreen | RenderedScreen]":
    """Return what reads and what shows: with a line editor and Markdown on a terminal that can do that, or plainly."""
    is_typed, is_seen = sys.stdin.isatty(), sys.stdout.isatty()
    if not is_typed or not is_seen or os.environ.get("TERM", "") in _PLAIN_TERMINALS:
        return PlainLines(sys.stdin), PlainScreen(sys.stdout, is_interactive=is_typed)
    from rich.console import Console

    from transports.terminal.rendering import RenderedScreen

    return EditedLines(history_file() if has_history else None), RenderedScreen(Console(highlight=False))
