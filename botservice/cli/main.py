"""The command line."""

import gc
import logging
import os
import sys
from typing import Annotated

import typer

from botservice.cli.access import access_cli, usage
from botservice.cli.approvals import approvals
from botservice.cli.chat import chat
from botservice.cli.console import AppOption, build_service, load_settings, run, tell, with_storage
from botservice.cli.contexts import contexts_cli
from botservice.cli.database import backup, compact, copy, encrypt, migrate
from botservice.cli.evaluate import evaluate
from botservice.cli.export_and_forget import export, forget
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

cli = typer.Typer(
    name="botservice",
    help="An agent for Telegram and Slack that remembers each chat, answers once and loses nothing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


cli.command()(export)
cli.command()(forget)
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
    from botservice.conversation.refusal_queries import forget_refusals as delete_refusals

    if forget_refusals:
        count = with_storage(lambda storage: storage.write(delete_refusals))
        typer.echo(f"Forgotten: {count}. Processes that run know it within a minute.")
    settings, findings = read_settings()
    settings.log_level = LogLevel.ERROR
    prepare(settings)
    findings += run(check_everything(settings, app=app))
    for finding in findings:
        typer.echo(f"{finding.mark} {finding.name:<10} {finding.text}")
    if any(finding.is_wrong for finding in findings):
        raise typer.Exit(1)


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
