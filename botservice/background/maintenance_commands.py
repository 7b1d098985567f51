"""Upkeep by hand: what `botservice backup` and `botservice compact` do, and what they say."""

import asyncio
from pathlib import Path

from botservice.background.maintenance import Maintenance
from botservice.background.retention import Retention
from botservice.core.errors import SettingsError, StorageUnavailable
from botservice.core.progress import Progress, unwatched
from botservice.storage.database import Storage
from botservice.storage.sqlite_files import back_up, shrink
from botservice.storage.url import DatabaseUrl

_MEBIBYTE = 1024 * 1024


def back_up_database(url: str, target: Path, progress: Progress = unwatched) -> str:
    """Copy an SQLite database, and return what to print.

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
    size = back_up(where.path, target, progress)
    return f"{where.path} is copied to {target}: {size / _MEBIBYTE:.1f} MiB, checked"


async def compact_database(
    url: str, steps_days: int | None, events_days: int | None, *, shrinks: bool, progress: Progress = unwatched
) -> str:
    """Do a pass of compaction at full speed, and return what to print.

    Args:
        shrinks: Whether to give the unused pages of an SQLite file back afterwards.

    Raises:
        DatabaseInUse: the service works on this SQLite file; it compacts by itself.
    """
    async with Storage.open(url, migrate=False) as storage:
        with storage.claims.working():
            retention = Retention.of_days(steps=steps_days, events=events_days)
            done = await Maintenance(storage, retention, rest=_no_rest, report=progress).run_once()
            path = storage.where.path
            if not done.is_whole:
                return "another process compacts this database at the moment"
            said = f"{done.turns} turns have lost their steps, {done.events} events are deleted"
            if not shrinks:
                return said
            if path is None:
                return f"{said}; Postgres gives space back by itself, or with VACUUM FULL"
            before, after = await _shrink(path, progress)
            return f"{said}; {path} had {before / _MEBIBYTE:.1f} MiB and has {after / _MEBIBYTE:.1f} MiB"


async def _shrink(path: Path, progress: Progress) -> tuple[int, int]:
    """Make a file smaller in a thread; where this is cancelled, not before that has stopped."""
    is_cancelled = False

    def watch(done: float, total: float, note: str = "") -> None:
        if is_cancelled:
            raise KeyboardInterrupt
        progress(done, total, note)

    task = asyncio.ensure_future(asyncio.to_thread(_shrink_or_stop, path, watch))
    try:
        sizes = await asyncio.shield(task)
    except asyncio.CancelledError:
        is_cancelled = True
        await asyncio.wait([task])
        raise
    if sizes is None:
        raise StorageUnavailable(f"cannot make {path} smaller: it was interrupted")
    return sizes


def _shrink_or_stop(path: Path, progress: Progress) -> tuple[int, int] | None:
    """Return the bytes before and after, or None if it was stopped. No thread raises KeyboardInterrupt."""
    try:
        return shrink(path, progress=progress)
    except KeyboardInterrupt:
        return None


async def _no_rest(_seconds: float) -> None:
    return None
