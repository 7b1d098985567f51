"""The commands about the database as a whole: migrate, copy, backup, compact and encrypt."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from botservice.cli.console import counted, load_settings, long_work, open_storage, run, with_storage
from botservice.core.errors import BotServiceError, SettingsError
from botservice.core.progress import Progress, unwatched

if TYPE_CHECKING:
    from botservice.background.maintenance import Compacted
    from botservice.config.settings import Settings
    from botservice.storage.database import Storage

_MEBIBYTE = 1024 * 1024


def migrate() -> None:
    """Bring the database's tables up to date."""
    from botservice.storage.schema import read_version

    async def done(storage: "Storage") -> str:
        return f"{storage.name} has version {await storage.read(read_version)}"

    with long_work("migrate", left="No table is half done; run it again to finish.") as progress:
        open_storage(load_settings(), migrate=True).migrate(progress)
    typer.echo(with_storage(done, migrate=True))


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE_URL", help="Such as sqlite:///botservice.db")],
    target: Annotated[str, typer.Argument(metavar="TARGET_URL", help="An empty database; postgresql://…")],
) -> None:
    """Copy everything from one database into an empty one, SQLite or Postgres. No service may run on either."""
    from botservice.storage.copying import copy_database

    load_settings()  # for the log
    with long_work("copy", left="The same command goes on where it was.") as progress:
        copied = copy_database(source, target, progress)
    rows = sum(copied.rows.values())
    typer.echo(f"{counted(rows, 'row')} in {len(copied.rows)} tables are copied and compared: nothing differs.")
    typer.echo(
        f"{counted(copied.rows['messages'], 'message')}, {counted(copied.rows['blobs'], 'file')}. "
        "Set DATABASE_URL to the target, keep ENCRYPTION_KEY as it is, and start the service."
    )


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file; an existing one is not replaced.")],
) -> None:
    """Copy an SQLite database to a file, also while the service runs. For Postgres, use pg_dump."""
    from botservice.storage.sqlite_files import back_up
    from botservice.storage.url import DatabaseUrl

    path = DatabaseUrl.parse(load_settings().database_url).path
    if path is None:
        raise SettingsError(
            'DATABASE_URL is no SQLite file. For Postgres: pg_dump --format=custom --file=backup.dump "$DATABASE_URL"'
        )
    with long_work("backup", left="No copy is left, and the database is as it was.") as progress:
        size = back_up(path, file, progress)
    typer.echo(f"{path} is copied to {file}: {size / _MEBIBYTE:.1f} MiB, checked")


def compact(
    *, shrink: Annotated[bool, typer.Option("--shrink", help="Then make an SQLite file smaller.")] = False
) -> None:
    """Delete now what is past its retention (KEEP_STEPS_DAYS, KEEP_EVENTS_DAYS, LEDGER_DAYS)."""
    settings = load_settings()
    with long_work("compact", left="What is taken away stays so; the next pass does the rest.") as progress:
        said = compact_database(settings, shrinks=shrink, progress=progress)
    typer.echo(said)


def encrypt(
    give_up_unreadable: Annotated[  # noqa: FBT002 - typer
        bool, typer.Option("--give-up-unreadable", help="First delete the files whose key is lost, for good.")
    ] = False,
) -> None:
    """Encrypt files that are not encrypted, or by an older key, with the first key of ENCRYPTION_KEY."""
    from botservice.storage.blobs import encrypt_files
    from botservice.storage.blobs import give_up_unreadable as give_up

    if load_settings().encryption_key is None:
        raise BotServiceError("set ENCRYPTION_KEY first: one or more random texts, the one to encrypt with first")
    if give_up_unreadable:
        with long_work("encrypt", left="What is deleted stays so; the next run does the rest.") as progress:
            lost = with_storage(lambda storage: give_up(storage, progress))
        typer.echo(f"{counted(lost, 'unreadable file')} {'is' if lost == 1 else 'are'} deleted")
    left = "Every file can be read; run it again before you take an older key away."
    with long_work("encrypt", left=left) as progress:
        count = with_storage(lambda storage: encrypt_files(storage, progress))
    typer.echo(f"{counted(count, 'file')} {'is' if count == 1 else 'are'} encrypted with the first key")


def compact_database(settings: "Settings", *, shrinks: bool, progress: Progress = unwatched) -> str:
    """Do a pass of compaction at full speed, and return what to print.

    Args:
        shrinks: Whether to give the unused pages of an SQLite file back afterwards.

    Raises:
        DatabaseInUse: the service works on this SQLite file; it compacts by itself.
    """
    from botservice.storage.sqlite_files import shrink
    from botservice.storage.url import DatabaseUrl

    done = run(_compact(settings, progress))
    if not done.is_whole:
        return "another process compacts this database at the moment"
    said = f"{done.turns} turns have lost their steps, {done.events} events are deleted"
    if not shrinks:
        return said
    path = DatabaseUrl.parse(settings.database_url).path
    if path is None:
        return f"{said}; Postgres gives space back by itself, or with VACUUM FULL"
    before, after = shrink(path, progress=progress)  # in this thread, so that Ctrl+C stops it
    return f"{said}; {path} had {before / _MEBIBYTE:.1f} MiB and has {after / _MEBIBYTE:.1f} MiB"


async def _compact(settings: "Settings", progress: Progress) -> "Compacted":
    from botservice.background.maintenance import Maintenance, Retention

    async with open_storage(settings) as storage:
        with storage.claims.working():
            return await Maintenance(storage, Retention.of(settings), rest=_no_rest, report=progress).run_once()


async def _no_rest(_seconds: float) -> None:
    return None
