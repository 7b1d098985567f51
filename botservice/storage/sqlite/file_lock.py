"""What the processes and the storages of one SQLite file agree on."""

import os
import threading
import weakref
from pathlib import Path
from typing import ClassVar

from filelock import FileLock, Timeout

from botservice.errors import DatabaseInUse, StorageUnavailable
from botservice.storage.claim import Claim


class WorkerLock:
    """The lock of an SQLite file: whoever holds it may work on contexts and migrate."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = FileLock(f"{path}.lock", thread_local=False, mode=0o600)
        self._guard = threading.RLock()  # see SharedFile.guard
        self._holders = 0

    def acquire(self) -> None:
        """Take the lock, once more if this process has it.

        Raises:
            DatabaseInUse: another process has it.
            StorageUnavailable: the file of the lock cannot be written.
        """
        with self._guard:
            if self._holders == 0:
                try:
                    self._file.acquire(blocking=False)
                except Timeout:
                    raise DatabaseInUse(
                        f"another process works on {self._path}: stop it, talk to it instead, or use Postgres, "
                        "which takes many (DATABASE_URL=postgresql://...)"
                    ) from None
                except OSError as error:
                    raise StorageUnavailable(f"cannot lock {self._path}: {error.strerror or error}") from error
            self._holders += 1

    def release(self) -> None:
        """Give it back; the last one unlocks the file."""
        with self._guard:
            self._holders -= 1
            if self._holders == 0:
                self._file.release()


class SharedFile:
    """What all Storages of this process share about one SQLite file.

    Attributes:
        guard: Re-entrant, because the garbage collector may abandon a claim in the middle of any line that holds it.
    """

    _known: ClassVar[weakref.WeakValueDictionary[Path, "SharedFile"]] = weakref.WeakValueDictionary()
    _guard = threading.Lock()

    def __init__(self, path: Path) -> None:
        self.lock = WorkerLock(path)
        self.claims: dict[int, Claim] = {}
        self.guard = threading.RLock()
        self._path = path
        self._descriptor: int | None = None

    def descriptor(self) -> int:
        """Return the file itself, open for reading and writing until no Storage of this process uses it.

        Closed earlier, it would give up the locks that SQLite has on it (SQLite, "How To Corrupt", 2.2).
        """
        with self.guard:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDWR)
                weakref.finalize(self, os.close, self._descriptor)
            return self._descriptor

    @classmethod
    def at(cls, path: Path) -> "SharedFile":
        """Return the one object for the file at path."""
        with cls._guard:
            real = path.resolve()
            shared = cls._known.get(real)
            if shared is None:
                shared = cls._known[real] = cls(real)
            return shared
