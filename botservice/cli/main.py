"""The command line."""

import contextlib
import gc
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from botservice.cli.access import access_cli, usage
from botservice.cli.approvals import approvals
from botservice.cli.chat import chat
from botservice.cli.console import (
    AppOption,
    MaybeContextArgument,
    build_service,
    counted,
    load_settings,
    long_work,
    run,
    tell,
    with_storage,
)
from botservice.cli.contexts import contexts_cli
from botservice.cli.database import backup, compact, copy, encrypt, migrate
from botservice.cli.evaluate import evaluate
from botservice.cli.installation import check_packages
from botservice.cli.knowledge import knowledge_cli
from botservice.cli.new import new
from botservice.cli.prove import prove
from botservice.cli.replay import replay
from botservice.cli.send import send
from botservice.cli.turns import turns_cli
from botservice.config.setting_choices import LogLevel
from botservice.core.errors import BotServiceError
from botservice.core.loading import loading

if TYPE_CHECKING:
    from botservice.privacy.forgotten_counts import Forgotten
    from botservice.storage.database import Storage

_CLEANING_SECONDS = 60.0  # a large file is written again in that time, unless it is read all the while
_CLEAN = "Its bytes have left the files of the database"
_NOT_CLEAN = "The last traces leave the files of the database at its next clean-up: see docs/privacy.md"

cli = typer.Typer(
    name="botservice",
    help="An agent for Telegram and Slack that remembers each chat, answers once and loses nothing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PersonOption = Annotated[
    str | None, typer.Option(metavar="PLATFORM:ID", help="A person instead of a conversation, such as telegram:42.")
]


@cli.callback(invoke_without_command=True)
def root(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version, and where it is from.", is_eager=True)
    ] = False,
) -> None:
    """Read the settings from the environment, and from a .env file in the current folder."""
    if show_version:
        from botservice.cli.installation import origin_of_this

        typer.echo(f"botservice {origin_of_this().describe()}")
        raise typer.Exit


@cli.command()
def serve(
    app: AppOption = None,
    *,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Whether this process works on turns.")] = True,
    processes: Annotated[int, typer.Option(min=1, max=64, help="Processes that work on turns, on Postgres.")] = 1,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of PORT; 0 takes any.")] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Restart when code or configuration changes.")] = False,
    opens: Annotated[bool, typer.Option("--open", help="Open the chat in a browser.")] = False,
) -> None:
    """Run the web server, every transport that has a token, and the worker, in one process."""
    if reload:
        from botservice.cli.serve_processes import serve_again

        serve_again()
        return
    with loading():
        from functools import partial

        from botservice.cli.serve_processes import keep_workers, open_page
        from botservice.server import serving
        from botservice.turns.turn import Share

    settings = load_settings()
    if port is not None:
        settings.port = port
    service = build_service(settings, app)
    if processes > 1 and not worker:
        raise BotServiceError("--processes says how many work on turns, --no-worker that none does: say one of them")
    alongside = partial(keep_workers, processes, app) if processes > 1 else None
    on_ready = open_page if opens else None
    share = Share(0, processes)
    run(serving.serve(settings, service, has_worker=worker, share=share, alongside=alongside, on_ready=on_ready))


@cli.command()
def worker(
    app: AppOption = None,
    *,
    share: Annotated[str | None, typer.Option(hidden=True, help="INDEX/COUNT, from `serve --processes`.")] = None,
) -> None:
    """Work on turns without a web server, together with `serve --no-worker`. It needs Postgres."""
    with loading():
        from botservice.cli.serve_processes import end_with_parent, read_share
        from botservice.server import serving

    settings = load_settings()
    service = build_service(settings, app)
    on_ready = None if share is None else end_with_parent
    run(serving.work(settings, service, share=read_share(share), on_ready=on_ready))


cli.command()(chat)
cli.command()(migrate)
cli.add_typer(contexts_cli, name="contexts", invoke_without_command=True)
cli.command()(copy)
cli.command()(new)
cli.command()(prove)
cli.command()(send)
cli.add_typer(turns_cli, name="turns", invoke_without_command=True)
cli.add_typer(knowledge_cli, name="knowledge")
cli.add_typer(access_cli, name="access", invoke_without_command=True)
cli.command()(approvals)
cli.command()(usage)
cli.command()(replay)
cli.command("eval")(evaluate)


@cli.command()
def export(
    context: MaybeContextArgument = None,
    person: PersonOption = None,
    archive: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --person: write a zip file with pages to read and files.")
    ] = None,
) -> None:
    """Write everything stored about a conversation or a person as JSON."""
    from botservice.cli.contexts import find_context_id, parse_person
    from botservice.devtools.conversations import export_context
    from botservice.privacy.exported_data import as_values, make_archive, read_person

    _check_one_of(context, person)

    async def read(storage: "Storage") -> Any:
        if context is not None:
            return await export_context(storage, await find_context_id(storage, context))
        return await read_person(storage, parse_person(person or ""), progress)

    if archive is not None and person is None:
        raise BotServiceError("--archive is for a person: name one with --person PLATFORM:ID")
    if archive is not None:
        _check_new(archive)
    with long_work("export", left="Nothing is written.") as progress:
        found = with_storage(read)
        if archive is not None:
            _write_archive(archive, make_archive(found, max_files_bytes=None))
        elif person is not None:
            found = as_values(found)
    typer.echo(f"{archive} is written" if archive is not None else json.dumps(found, indent=2))


@cli.command()
def forget(
    context: MaybeContextArgument = None,
    person: PersonOption = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a conversation, or everything about a person, for good: messages, facts, steps, files, events."""
    from botservice.cli.contexts import find_context_id, parse_person
    from botservice.devtools.conversations import forget_context
    from botservice.privacy.forgetting import forget_person

    _check_one_of(context, person)

    if context is not None:
        address = context
        number = with_storage(lambda storage: find_context_id(storage, address))
        _confirm(yes, f"Delete everything of context {number}?")
        with_storage(lambda storage: forget_context(storage, number))
        typer.echo(f"context {number} is forgotten")
        return
    author = parse_person(person or "")
    _confirm(yes, f"Delete everything of {person}, and of the accounts that are linked with it?")

    async def erase(storage: "Storage") -> "tuple[Forgotten, bool]":
        forgotten = await forget_person(storage, author)
        return forgotten, storage.is_scrubbed or await storage.scrub(patience_seconds=_CLEANING_SECONDS)

    gone, is_clean = with_storage(erase)
    typer.echo(
        f"{person} is forgotten: {counted(gone.contexts, 'conversation')} of theirs alone; in all conversations "
        f"{counted(gone.messages, 'message')}, {counted(gone.answers, 'answer')}, {counted(gone.files, 'file')}, "
        f"{counted(gone.facts, 'fact')} and {counted(gone.reminders, 'reminder')}. "
        f"What others said stays. {_CLEAN if is_clean else _NOT_CLEAN}"
    )


cli.command()(backup)
cli.command()(compact)
cli.command()(encrypt)


@cli.command()
def doctor(
    *,
    app: AppOption = None,
    forget_refusals: Annotated[
        bool, typer.Option("--forget-refusals", help="First forget which features models refused.")
    ] = False,
) -> None:
    """Test every setting, and your own bot, against the real servers, and say what to do."""
    from botservice.app import prepare
    from botservice.cli.doctor import check_everything, read_settings
    from botservice.conversation.refusal_queries import forget_refusals as forget

    if forget_refusals:
        count = with_storage(lambda storage: storage.write(forget))
        typer.echo(f"Forgotten: {count}. Processes that run know it within a minute.")
    settings, findings = read_settings()
    settings.log_level = LogLevel.ERROR
    prepare(settings)
    findings += run(check_everything(settings, app=app))
    for finding in findings:
        typer.echo(f"{finding.mark} {finding.name:<10} {finding.text}")
    if any(finding.is_wrong for finding in findings):
        raise typer.Exit(1)


def _check_one_of(context: str | None, person: str | None) -> None:
    if (context is None) == (person is None):
        raise BotServiceError("say which: CONTEXT or --person PLATFORM:ID")


def _check_new(file: Path) -> None:
    """Refuse to write over what is there; a pipe or a device may be written to."""
    with _writing(file):
        is_there = file.is_file() or file.is_dir()
    if is_there:
        raise BotServiceError(f"{file} exists already: name a file that does not")


def _write_archive(file: Path, data: bytes) -> None:
    from botservice.storage.sqlite_files import write_private

    with _writing(file):
        write_private(file, data)


@contextlib.contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BotServiceError(f"cannot write {file}: {error.strerror}") from error


def _confirm(is_sure: bool, question: str) -> None:  # noqa: FBT001 - the option of the same name
    if not is_sure:
        typer.confirm(f"{question} There is no way back", abort=True)


def main() -> None:
    """Run the command line; what goes wrong on purpose is said in one line."""
    gc.disable()  # what loading makes stays, and the search for garbage took a fifth of the time
    _open_streams()
    try:
        check_packages()
        cli(standalone_mode=True)
    except BotServiceError as error:
        tell(f"botservice: {error}", logging.ERROR)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # as in `botservice contexts | head -1`
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - a border: the traceback of an unforeseen error holds no secret either
        _check_output("\n" if isinstance(error, OSError) else "")  # was it writing there that failed?
        import traceback

        tell(traceback.format_exc(), logging.ERROR)
        sys.exit(1)
    finally:
        _check_output()


def _open_streams() -> None:
    """Have what was closed by the caller of this, as in `botservice migrate >&-`, read nothing and drop all.

    A file that is opened later would otherwise get the number of a stream, and with it what is said.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - open to the end


def _check_output(more: str = "") -> None:
    """Write out what is left, or drop it if it finds no room: Python would complain of that at its very end."""
    try:
        sys.stdout.write(more)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            tell(f"botservice: the output cannot be written: {error.strerror}", logging.ERROR)
            sys.exit(1)
