"""The commands about turns that wait, run or were set aside."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from botservice.cli.console import JsonLinesOption, counted, printable, with_storage
from botservice.core.errors import BotServiceError

if TYPE_CHECKING:
    from botservice.storage.database import Storage
    from botservice.turns.administration import ListedTurn

turns_cli = typer.Typer(help="List turns that are waiting, running, set aside or not delivered; retry or drop one.")
MOST_ID = 2**63 - 1
TurnArgument = Annotated[
    int, typer.Argument(metavar="TURN", max=MOST_ID, help="A number, as `botservice turns` lists it.")
]


@turns_cli.callback()
def turns(command: typer.Context, *, as_json: JsonLinesOption = False) -> None:
    """List the turns that run, wait, are suspended or were set aside, and answers that are not delivered yet."""
    from botservice.people.names import key_text
    from botservice.turns.administration import list_turns

    if command.invoked_subcommand is not None:
        return

    async def look(storage: "Storage") -> "tuple[datetime, list[ListedTurn]]":
        return storage.now(), await list_turns(storage)

    now, found = with_storage(look)
    for each in found:
        if as_json:
            typer.echo(json.dumps(each.as_dict(now)))
            continue
        age = timedelta(seconds=max(0, int((now - each.created_at).total_seconds())))
        keys = " ".join(f"{key}={printable(key_text(value))}" for key, value in sorted(each.context_keys.items()))
        about = f"{each.messages} messages  " if each.messages > 1 else ""
        again = f"  next try at {each.due_at:%H:%M:%S} UTC" if each.is_put_off(now) else ""
        error = f"{again}  {printable(each.error)}" if each.error else ""
        typer.echo(f"{each.id:>6}  {each.status:<9}  {age!s:>8}  {each.transport:<8}  {about}{keys}{error}")
        for waits_for in each.waits_for:
            typer.echo(f"{'':>6}  waits for {printable(waits_for)}")


@turns_cli.command()
def retry(
    turn: Annotated[
        int | None, typer.Argument(metavar="[TURN]", max=MOST_ID, help="A number, as `botservice turns` lists it.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every turn that was set aside.")] = False,
    failed_since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With --all: only those that failed since this time (ISO 8601, UTC)."),
    ] = None,
) -> None:
    """Retry a turn that was set aside or waits for its next try."""
    from botservice.turns.administration import retry_all, retry_turn

    if (turn is None) is not every:
        raise BotServiceError("name one turn, or give --all for every turn that was set aside")
    since = None if failed_since is None else _moment(failed_since)
    if turn is not None:
        if since is not None:
            raise BotServiceError("--failed-since goes with --all")
        with_storage(lambda storage: retry_turn(storage, turn, storage.now()))
        typer.echo(f"turn {turn} is tried again by the service")
        return
    tried, refused = with_storage(lambda storage: retry_all(storage, storage.now(), since))
    typer.echo(f"{counted(len(tried), 'turn')} {'is' if len(tried) == 1 else 'are'} tried again by the service")
    for reason in refused.values():
        typer.echo(f"not tried: {printable(reason)}")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BotServiceError(f"--failed-since must be a time such as 2026-01-31T08:00, not {text!r}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@turns_cli.command()
def drop(turn: TurnArgument) -> None:
    """End a turn without an answer; a running turn is stopped."""
    from botservice.turns.administration import drop_turn

    with_storage(lambda storage: drop_turn(storage, turn, storage.now()))
    typer.echo(f"turn {turn} is dropped")
