"""`botservice copy`: everything from one database into another."""

from typing import Annotated

import typer

from botservice.cli.console import counted, load_settings
from botservice.cli.long_work import long_work


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE_URL", help="Such as sqlite:///botservice.db")],
    target: Annotated[str, typer.Argument(metavar="TARGET_URL", help="An empty database; postgresql://…")],
) -> None:
    """Copy everything from one database into an empty one, SQLite or Postgres. No service may run on either."""
    from botservice.background.copying import copy_database

    load_settings()  # for the log
    with long_work("copy", left="The same command goes on where it was.") as progress:
        copied = copy_database(source, target, progress)
    rows = sum(copied.rows.values())
    typer.echo(f"{counted(rows, 'row')} in {len(copied.rows)} tables are copied and compared: nothing differs.")
    typer.echo(
        f"{counted(copied.rows['messages'], 'message')}, {counted(copied.rows['blobs'], 'file')}. "
        "Set DATABASE_URL to the target, keep ENCRYPTION_KEY as it is, and start the service."
    )
