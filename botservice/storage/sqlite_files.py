"""SQLite files: copies of one that is being written, and making one smaller."""

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

from botservice.core.errors import StorageError, StorageUnavailable
from botservice.core.progress import Progress, unwatched
from botservice.storage.claims import SharedFile
from botservice.storage.limits import StorageLimits

_PARTIAL = ".partial"
_PAGES_AT_ONCE = 1_000
STEPS_AT_ONCE = 100_000  # of SQLite's own machine: some milliseconds
_OWNER_ALONE = 0o600  # what people wrote is in these files
_HEADER = b"SQLite format 3\0"  # SQLite, "Database File Format", 1.3.1
_SIDE_FILES = ("-wal", "-shm")  # SQLite gives what it makes next to a database the database's own mode


def check_interrupted(error: BaseException | None) -> None:
    """Raise KeyboardInterrupt where that is why a statement has ended: SQLite says only that something ended it."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from error


def make_private(path: Path) -> None:
    """Make a database's file where there is none, and close it to the other users of this machine.

    A file of another user stays as it is, and so does one that is no database: an address that is wrong leads to it.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, _OWNER_ALONE))
    is_open = [
        each for each in (path, *(Path(f"{path}{ending}") for ending in _SIDE_FILES)) if _is_open_to_others(each)
    ]
    if is_open and _may_be_database(path):
        for each in is_open:
            with contextlib.suppress(FileNotFoundError, PermissionError):
                each.chmod(_OWNER_ALONE)


def _is_open_to_others(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, PermissionError):
        return False
    return stat.S_ISREG(mode) and mode & 0o077 != 0  # what is no file, such as a folder, is refused later, as it is


def _may_be_database(path: Path) -> bool:
    """Return whether a file is SQLite's, or empty.

    It is read as all Storages of this process share it: closing it would give up the locks that SQLite has on it.
    """
    try:
        return os.pread(SharedFile.at(path).descriptor(), len(_HEADER), 0) in (b"", _HEADER)
    except OSError:
        return False


def write_private(path: Path, data: bytes) -> None:
    """Write a file that nobody but its owner can read, whole or not at all, whatever stood there before."""
    if path.exists() and not path.is_file():  # a pipe or the like is written to, and never replaced
        path.write_bytes(data)
        return
    path = path.resolve()
    partial = path.with_name(path.name + _PARTIAL)
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, _OWNER_ALONE), "wb") as file:
            partial.chmod(_OWNER_ALONE)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a power cut might leave an empty file under the name
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def back_up(path: Path, target: Path, progress: Progress = unwatched) -> int:
    """Copy a database, also while it is written, and return the copy's bytes. The copy is of one moment, and checked.

    It stands under its name only when it is whole. Blocks, and Ctrl+C leaves nothing of it.

    Raises:
        StorageError: there is a file of that name already, or the copy is damaged.
        StorageUnavailable: the database cannot be read, or the copy cannot be written.
    """
    _check_new(path, target)
    partial = target.with_name(target.name + _PARTIAL)
    try:
        partial.unlink(missing_ok=True)
        make_private(partial)
        _copy(path, partial, progress)
        _sync(partial)
        partial.rename(target)
        _sync(target.absolute().parent)
        return target.stat().st_size
    except (sqlite3.Error, OSError) as error:
        check_interrupted(error)
        raise StorageUnavailable(f"cannot copy {path} to {target}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _check_new(path: Path, target: Path) -> None:
    try:
        is_there, has_database = target.exists(), path.exists()
    except OSError as error:  # such as a name that is too long
        raise StorageUnavailable(f"cannot copy {path} to {target}: {error.strerror}") from error
    if is_there:
        raise StorageError(f"{target} exists already: name a file that does not")
    if not has_database:
        raise StorageUnavailable(f"there is no database {path}")


def shrink(
    path: Path,
    limits: StorageLimits = StorageLimits(),  # noqa: B008 - frozen
    progress: Progress = unwatched,
) -> tuple[int, int]:
    """Give the pages that a database does not use back to the disk; return its bytes before and after. Blocks.

    It takes as much free space as the database is large while it runs, and no other process may use the database.
    Ctrl+C leaves it as it was.

    Raises:
        DatabaseInUse: a service works on it.
        StorageUnavailable: it is locked, or there is no room.
    """
    before, lock = path.stat().st_size, SharedFile.at(path).lock
    lock.acquire()
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=limits.lock, isolation_level=None)) as connection:
            connection.set_progress_handler(lambda: progress(0, 0, "rewritten"), STEPS_AT_ONCE)
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        check_interrupted(error)
        raise StorageUnavailable(f"cannot make {path} smaller: {error}") from error
    finally:
        lock.release()
    return before, path.stat().st_size


def _copy(path: Path, target: Path, progress: Progress) -> None:
    with (
        contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as source,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        # Within one transaction that reads: a copy in pieces would otherwise begin again at every write in
        # between (SQLite, "Backup API"). With a write-ahead log nobody waits for it: it reads what was there at first.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        source.backup(
            copy, pages=_PAGES_AT_ONCE, progress=lambda _, left, total: progress(total - left, total, "copied")
        )
        copy.set_progress_handler(lambda: progress(1, 1, "checked"), STEPS_AT_ONCE)  # here Ctrl+C is noticed, too
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()  # one file, nothing next to it
        if copy.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            raise StorageError(f"the copy of {path} is damaged: check the disk, and the database")


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
