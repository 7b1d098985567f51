"""Words that SQLite leaves in the gaps of its pages: overwritten, a few pages at a time.

`secure_delete` overwrites a row where it is deleted. Where a page was rebuilt before that, a copy of the row stays
between the page's rows, and no statement of SQL reaches it but VACUUM, which rewrites the whole file. Nothing reads
such a gap, so that zeros may be written there; what has to be kept away meanwhile is a checkpoint, which writes whole
pages.

Source: SQLite, "Database File Format", 1.6 "B-tree Pages".
"""

import contextlib
import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from botservice.core.errors import StorageError

_STEP_BYTES: Final = 4 * 1024 * 1024  # looked through in some hundredths of a second, for which nobody else writes
_LONGEST_WAIT_SECONDS: Final = 0.25  # for readers: writers have to wait as well
_TREES: Final = (2, 5, 10, 13)  # what the first byte of a page of a table or an index is
_LEAVES: Final = (10, 13)
_FILE_HEADER = 100  # bytes of the first page
_LARGEST = 65_536
# A page that goes on with a long row begins with the number of the next one: from here on, with what begins a tree.
_MOST_PAGES: Final = min(_TREES) << 24


class GapSweep:
    """One pass over a database's file.

    Attributes:
        is_done: Whether every page was looked at.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        """Make a pass.

        Args:
            descriptor: Of the file, open for reading and writing. It must stay open as long as this process uses the
                database: closing it would give up SQLite's own locks ("How To Corrupt An SQLite Database File", 2.2).
        """
        self.is_done = False
        self._path = path
        self._descriptor = descriptor
        self._next = 0  # the first page that was not looked at

    def step(self) -> bool:
        """Empty the log and clean the next pages; return whether that was possible. Blocks for a moment.

        It is not while another connection reads the log, or writes into it in between.

        Raises:
            StorageError: it never will be, with this file.
        """
        timeout = _LONGEST_WAIT_SECONDS
        with contextlib.closing(sqlite3.connect(self._path, timeout=timeout, isolation_level=None)) as connection:
            try:
                return self._step(connection)
            except sqlite3.OperationalError:
                return False

    def _step(self, connection: sqlite3.Connection) -> bool:
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            return False
        connection.execute("BEGIN IMMEDIATE")
        try:
            # With nothing in the log, and nobody else writing, nothing is written into the file but by this.
            if self._log_size():
                return False
            _check_cleanable(connection)
            is_changed = self._clean(connection)
            if is_changed:
                # A change of nothing: all others read anew what they know of these pages, and write nothing old back.
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return True

    def _clean(self, connection: sqlite3.Connection) -> bool:
        """Clean the next pages, and return whether there was anything to clean."""
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (count,) = connection.execute("PRAGMA page_count").fetchone()
        first = self._next
        last = min(count, first + max(1, _STEP_BYTES // size))
        data = os.pread(self._descriptor, (last - first) * size, first * size)
        is_changed = False
        for start in range(0, len(data) - size + 1, size):
            page = data[start : start + size]
            for begin, end in find_gaps(page, is_first=first + start == 0):
                if page.count(0, begin, end) < end - begin:
                    os.pwrite(self._descriptor, bytes(end - begin), first * size + start + begin)
                    is_changed = True
        if is_changed:
            os.fsync(self._descriptor)
        self._next, self.is_done = last, last == count
        return is_changed

    def _log_size(self) -> int:
        try:
            return Path(f"{self._path}-wal").stat().st_size
        except FileNotFoundError:
            return 0


def _check_cleanable(connection: sqlite3.Connection) -> None:
    """Return if no page of a file only looks like one of a table or an index.

    Raises:
        StorageError: some may.
    """
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0]:
        raise StorageError("the gaps of a file with auto_vacuum cannot be cleaned: run VACUUM on it")
    (count,) = connection.execute("PRAGMA page_count").fetchone()
    if count >= _MOST_PAGES:
        raise StorageError(f"the gaps of a file of {count} pages cannot be cleaned: run VACUUM on it")


def find_gaps(page: bytes, *, is_first: bool = False) -> Iterator[tuple[int, int]]:
    """Yield where a page holds nothing that counts: its first byte, and the one behind its last.

    Nothing of a page that is none of a table or an index, or that is not as it should be.
    """
    header = _FILE_HEADER if is_first else 0
    if page[header] not in _TREES:
        return
    free, cells, content = struct.unpack_from(">HHH", page, header + 1)
    begin, end = header + (8 if page[header] in _LEAVES else 12) + 2 * cells, content or _LARGEST
    if not begin <= end <= len(page):
        return
    yield begin, end
    last = end
    while last <= free <= len(page) - 4:  # they stand in their order
        following, size = struct.unpack_from(">HH", page, free)
        if size < 4 or free + size > len(page):
            return
        yield free + 4, free + size
        free, last = following, free + size
