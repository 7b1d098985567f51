"""The command that asks cases, and tells which of them fail."""

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from botservice.cli.console import AppOption, load_settings, open_storage, quiet_service, run
from botservice.cli.replay import read_text
from botservice.cli.turns import MOST_ID
from botservice.core.errors import BotServiceError

if TYPE_CHECKING:
    from botservice.devtools.cases import Suite
    from botservice.devtools.evaluation import CaseResult


def evaluate(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Cases in YAML; see docs/guides/trying-again.md.")
    ] = None,
    *,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Another model.")] = None,
    prompt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instructions that replace those of the agent.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="CONTEXT", help="Print a past turn of this conversation as a case.")
    ] = None,
    turn: Annotated[int | None, typer.Option(max=MOST_ID, help="With --from: which turn.")] = None,
    app: AppOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Evaluate a prompt or a model with cases. The exit code is 1 if one fails. No tool runs."""
    if (file is None) == (source is None):
        raise BotServiceError("say one: FILE with cases, or --from CONTEXT --turn N to begin such a file")
    if source is not None:
        if turn is None:
            raise BotServiceError("say which turn: --turn N, as `botservice replay CONTEXT` shows it")
        typer.echo(run(_export(source, turn, app)), nl=False)
        return
    from botservice.devtools.cases import read_suite

    assert file is not None  # noqa: S101 - one of both is given
    suite = read_suite(read_text(file), str(file))
    own = None if prompt is None else read_text(prompt).strip()
    results, currency = run(_run(suite, app, own, model or suite.model))
    _show(results, currency, as_json=as_json)
    if not all(each.passes for each in results):
        raise typer.Exit(1)


async def _run(
    suite: "Suite", app: str | None, prompt: str | None, model: str | None
) -> "tuple[list[CaseResult], str]":
    from botservice.cli.contexts import find_context_id
    from botservice.devtools.evaluation import evaluate as evaluate_suite
    from botservice.devtools.replaying import model_named
    from botservice.factories import govern

    settings = load_settings()
    service = quiet_service(settings, app)
    govern(settings, service)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(service)
        storage = await stack.enter_async_context(open_storage(settings)) if suite.needs_record else None
        llm = await stack.enter_async_context(model_named(settings, model))
        judge = await stack.enter_async_context(model_named(settings, suite.judge if suite.needs_judge else None))
        results = await evaluate_suite(
            suite, service, prompt=prompt, llm=llm, judge=judge, storage=storage, find_context=find_context_id
        )
    return results, service.options.budgets.currency


async def _export(source: str, turn: int, app: str | None) -> str:
    from botservice.cli.contexts import find_context_id
    from botservice.devtools.cases import write_case
    from botservice.devtools.replaying import read_again

    settings = load_settings()
    service = quiet_service(settings, app)
    async with open_storage(settings) as storage, service:
        context_id = await find_context_id(storage, source)
        return write_case(await read_again(service, context_id, turn, storage=storage))


def _show(results: "list[CaseResult]", currency: str, *, as_json: bool) -> None:
    if as_json:
        passed = sum(1 for each in results if each.passes)
        told = {"passed": passed, "failed": len(results) - passed, "currency": currency}
        typer.echo(json.dumps({**told, "cases": [each.as_dict() for each in results]}, indent=2))
        return
    from botservice.conversation.replay import show
    from botservice.devtools.reports import render_results

    show(render_results(results, currency))
