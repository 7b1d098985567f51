"""The commands about turns that wait, run or were set aside, and about what was decided of their calls of tools."""

import csv
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from botservice.cli.console import JsonLinesOption, counted, printable, read_day, with_storage
from botservice.core.errors import BotServiceError

if TYPE_CHECKING:
    from botservice.storage.database import Storage
    from botservice.turns.administration import ListedTurn
    from botservice.turns.ledger_queries import LedgerEntry

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


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # a spreadsheet would run what begins so


def approvals(
    since: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Only what was decided from this day on (UTC).")
    ] = None,
    *,
    as_json: JsonLinesOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A table for spreadsheets.")] = False,
) -> None:
    """List decided approvals: call, asker, decider and result."""
    from botservice.turns.ledger_queries import list_approvals

    if as_json and as_csv:
        raise BotServiceError("say --json or --csv, not both")
    start = None if since is None else read_day(since)
    found = with_storage(
        lambda storage: storage.read(lambda connection: list_approvals(connection, since=start), is_long=True)
    )
    if as_csv:
        _write_csv(found)
        return
    for each in found:
        typer.echo(json.dumps(each.as_dict()) if as_json else _line(each))


def _write_csv(found: "Sequence[LedgerEntry]") -> None:
    from botservice.turns.ledger_queries import FIELDS

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(FIELDS)
    for each in found:
        writer.writerow([_cell(value) for value in {**each.as_dict(), "arguments": each.arguments}.values()])


def _cell(value: Any) -> str:
    """Return a value for a cell; one that begins as a formula does gets an apostrophe, so that it stays a text."""
    text = "" if value is None else str(value)
    return printable(f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text)


def _line(entry: "LedgerEntry") -> str:
    is_by_somebody = entry.decider is not None or entry.decision in ("allowed", "denied")
    by = f" by {_who(entry, entry.decider)}" if is_by_somebody else ""
    result = entry.result.value.replace("_", " ")
    return (
        f"{entry.call:>6}  {entry.decided_at:%Y-%m-%d %H:%M}  {entry.decision}{by}, {result}: "
        f"{printable(entry.tool)} {entry.arguments} for {_who(entry, entry.asker)} in {printable(entry.chat)}"
    )


def _who(entry: "LedgerEntry", account: str | None) -> str:
    if account is None:
        return "a program"
    name = entry.names.get(account)
    return printable(f"{name} ({account})" if name else account)
