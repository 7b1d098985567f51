"""The command line."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Coroutine
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from botservice.errors import BotServiceError
from botservice.settings import LogLevel, Settings

cli = typer.Typer(
    name="botservice",
    help="An agent for Telegram and Slack that remembers each chat, answers once and loses nothing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AppOption = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE:SERVICE", help="Your own AgentService; the current folder is importable."),
]
ContextArgument = Annotated[
    str, typer.Argument(metavar="CONTEXT", help="A context's number, as `botservice contexts` lists it.")
]


@cli.callback(invoke_without_command=True)
def root(
    *, show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False
) -> None:
    """Read the settings from the environment, and from a .env file in the current folder."""
    if show_version:
        typer.echo(f"botservice {version('botservice')}")
        raise typer.Exit


@cli.command()
def serve(app: AppOption = None) -> None:
    """Run the web server, every transport that has a token, and the worker, in one process."""
    from botservice import app as composition
    from transports.registry import build_transports

    settings = _settings()
    composition.prepare(settings)
    service = composition.load_service(app) if app else composition.build_service(settings)
    _run(composition.serve(settings, service, build_transports(settings)))


@cli.command()
def chat(
    app: AppOption = None,
    session: Annotated[str, typer.Option(help="Which conversation; each remembers its own.")] = "default",
) -> None:
    """Talk to the same service on the terminal. Piped input is answered line by line."""
    from botservice import app as composition

    settings = _settings()
    if settings.log_level is LogLevel.INFO:
        settings.log_level = LogLevel.ERROR  # the terminal is for the conversation
    composition.prepare(settings)
    service = composition.load_service(app) if app else composition.build_service(settings)
    _run(_chat(settings, service, session))


async def _chat(settings: Settings, service: Any, session: str) -> None:
    from botservice.app import running
    from transports.terminal import TerminalTransport

    terminal = TerminalTransport(session_id=session)
    async with running(settings, service, [terminal]):
        loop = asyncio.get_running_loop()
        conversation = asyncio.ensure_future(terminal.converse())
        stopping: set[asyncio.Task[None]] = set()

        def on_interrupt() -> None:
            if terminal.is_waiting:
                stopping.add(asyncio.ensure_future(terminal.interrupt()))
            else:
                conversation.cancel()

        loop.add_signal_handler(signal.SIGINT, on_interrupt)
        loop.add_signal_handler(signal.SIGTERM, conversation.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await conversation


@cli.command()
def migrate() -> None:
    """Bring the database's tables up to date."""
    from botservice.storage import DatabaseUrl
    from botservice.storage.schema import migrate as bring_up_to_date

    settings = _settings()
    reached = bring_up_to_date(DatabaseUrl.parse(settings.database_url))
    typer.echo(f"the database has version {reached}")


@cli.command()
def contexts(
    *, as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False
) -> None:
    """List the conversations, those with the newest messages first."""
    from botservice.overview import list_contexts

    for each in _run(_with_storage(list_contexts)):
        if as_json:
            typer.echo(json.dumps(each.as_dict()))
        else:
            keys = " ".join(f"{key}={value}" for key, value in each.keys.items())
            last = f"{each.last_message_at:%Y-%m-%d %H:%M}" if each.last_message_at else "-"
            typer.echo(f"{each.id:>6}  {each.message_count:>7} messages  {last:<16}  {keys}")


@cli.command()
def replay(
    context: ContextArgument,
    *,
    turn: Annotated[int | None, typer.Option(help="One turn only, by its number.")] = None,
    detailed: Annotated[bool, typer.Option(help="Everything uncut, with what the model was given.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The steps as JSON.")] = False,
) -> None:
    """Show what was asked, found, done and answered in a conversation."""
    from botservice.overview import read_turns

    found = _run(_with_storage(lambda storage: read_turns(storage, _number(context), turn)))
    if as_json:
        typer.echo(json.dumps([each.as_dict() for each in found], indent=2))
        return
    from rich.console import Console

    from botservice.memory.replay import render_steps

    console = Console()
    for each in found:
        console.rule(f"turn {each.id} · {each.status} · {each.created_at:%Y-%m-%d %H:%M} UTC")
        console.print(render_steps(each.steps, detailed=detailed))


@cli.command()
def export(context: ContextArgument) -> None:
    """Write everything that is kept of a conversation to standard output, as JSON."""
    from botservice.overview import export_context

    typer.echo(json.dumps(_run(_with_storage(lambda storage: export_context(storage, _number(context)))), indent=2))


@cli.command()
def forget(
    context: ContextArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a conversation for good: its messages, steps, files and events."""
    from botservice.overview import forget_context

    number = _number(context)
    if not yes:
        typer.confirm(f"Delete everything of context {number}? There is no way back", abort=True)
    _run(_with_storage(lambda storage: forget_context(storage, number)))
    typer.echo(f"context {number} is forgotten")


@cli.command()
def doctor() -> None:
    """Check every setting against the real thing, and say what to do."""
    from botservice.app import prepare
    from botservice.doctor import check_everything

    settings = _settings()
    settings.log_level = LogLevel.ERROR
    prepare(settings)
    findings = _run(check_everything(settings))
    for finding in findings:
        typer.echo(f"{finding.mark} {finding.name:<10} {finding.text}")
    if any(finding.is_wrong for finding in findings):
        raise typer.Exit(1)


async def _with_storage(work: Any) -> Any:
    from botservice.storage import Storage

    async with Storage.open(_settings().database_url, migrate=False) as storage:
        return await work(storage)


def _settings() -> Settings:
    return Settings.load(Path(".env"))


def _number(context: str) -> int:
    if not context.isdigit():
        raise BotServiceError(f"CONTEXT must be a number, as `botservice contexts` lists it, not {context!r}")
    return int(context)


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def main() -> None:
    """Run the command line; what goes wrong on purpose is said in one line."""
    try:
        cli(standalone_mode=True)
    except BotServiceError as error:
        typer.echo(f"botservice: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
