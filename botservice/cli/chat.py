"""botservice chat: the same service on the terminal, in this process or in one that runs already."""

import asyncio
import sys
from functools import partial
from typing import Annotated

import typer

from botservice.cli.console import AppOption, build_service, load_settings
from botservice.config.setting_choices import LogLevel
from botservice.core.errors import DatabaseInUse
from botservice.transport_plugins import TERMINAL, load_plugin


def chat(
    app: AppOption = None,
    session: Annotated[str, typer.Option(help="The conversation; each one has its own memory.")] = "default",
    *,
    history: Annotated[bool, typer.Option("--history/--no-history", help="Whether to store what you type.")] = True,
) -> None:
    """Talk to the same service on the terminal.

    If `botservice serve` runs on the same SQLite file, that service answers, with its own agent.
    """
    settings = load_settings()
    if settings.log_level is LogLevel.INFO:
        settings.log_level = LogLevel.ERROR  # the terminal is for the conversation
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # what is no text is shown as such
    try:
        chatting = load_plugin(TERMINAL).chat(
            settings, partial(build_service, settings, app), session, has_history=history
        )
        was_interrupted = asyncio.run(chatting)
    except DatabaseInUse as error:
        once_more = f"botservice chat --app {app}" if app else "botservice chat"
        raise DatabaseInUse(
            f"{error}\nIf that is `botservice serve`, chat in its page in the browser. "
            f"Or give this chat a file of its own: DATABASE_URL=sqlite:///chat.db {once_more}"
        ) from error
    if was_interrupted:
        raise typer.Exit(130)
