"""Upkeep by hand: what `botservice backup` and `botservice compact` do, and what they say."""

from pathlib import Path

from botservice.errors import SettingsError
from botservice.storage import DatabaseUrl, Storage
from botservice.storage.sqlite.files import back_up, shrink
from botservice.upkeep.retention import Retention
from botservice.upkeep.upkeep import Upkeep

_MEBIBYTE = 1024 * 1024


def back_up_database(url: str, target: Path) -> str:
    """Copy an SQLite database, and return what to tell whoever asked.

    Raises:
        SettingsError: it is no SQLite file.
        StorageError: there is a file of that name already, or the copy is damaged.
        StorageUnavailable: the database cannot be read, or the copy cannot be written.
    """
    where = DatabaseUrl.parse(url)
    if where.path is None:
        raise SettingsError(
            'DATABASE_URL is no SQLite file. For Postgres: pg_dump --format=custom --file=backup.dump "$DATABASE_URL"'
        )
    size = back_up(where.path, target)
    return f"{where.path} is copied to {target}: {size / _MEBIBYTE:.1f} MiB, checked"


async def compact_database(url: str, steps_days: int | None, events_days: int | None, *, shrinks: bool) -> str:
    """Do a pass of compaction at full speed, and return what to tell whoever asked.

    Args:
        shrinks: Whether to give the unused pages of an SQLite file back afterwards.

    Raises:
        DatabaseInUse: the service works on this SQLite file; it compacts by itself.
    """
    async with Storage.open(url, migrate=False) as storage:
        with storage.claims.working():
            retention = Retention.of_days(steps=steps_days, events=events_days)
            done = await Upkeep(storage, retention, rest=_no_rest).run_once()
            path = storage.where.path
            if not done.is_whole:
                return "another process compacts this database at the moment"
            said = f"{done.turns} turns have lost their steps, {done.events} events are deleted"
            if not shrinks:
                return said
            if path is None:
                return f"{said}; Postgres gives space back by itself, or with VACUUM FULL"
            await storage.scrub()
            before, after = shrink(path)
            return f"{said}; {path} had {before / _MEBIBYTE:.1f} MiB and has {after / _MEBIBYTE:.1f} MiB"


async def _no_rest(_seconds: float) -> None:
    return None
