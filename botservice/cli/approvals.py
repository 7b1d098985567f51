"""The command that lists decided approvals, for people, programs and spreadsheets."""

import csv
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from botservice.cli.console import JsonLinesOption, printable, read_day, with_storage
from botservice.core.errors import BotServiceError

if TYPE_CHECKING:
    from botservice.turns.approval_queries import LedgerEntry

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
    from botservice.turns.approval_queries import list_approvals

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
    from botservice.turns.approval_queries import FIELDS

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(FIELDS)
    for each in found:
        writer.writerow([_cell(value) for value in {**each.as_dict(), "arguments": each.arguments}.values()])


def _cell(value: Any) -> str:
    """Return a value for a cell; one that begins as a formula does gets an apostrophe, so that it stays a text."""
    text = "" if value is None else str(value)
    return printable(f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text)


def _line(entry: "LedgerEntry") -> str:
    is_decided_by_person = entry.decider is not None or entry.decision in ("allowed", "denied")
    by = f" by {_who(entry, entry.decider)}" if is_decided_by_person else ""
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
