"""What was read in files lately: an edit of a message, or a reply to it, does not have them read again."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

FileKey = tuple[str, str]
"""A platform, and its own name of a file."""

_MAX_CHARACTERS = 2_000_000
_KEPT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class FileText:
    """What a message says of one of its files.

    Attributes:
        text: For the model.
        unread: What the file is called, where the person is to be told that it was not read.
        is_for_good: Whether reading it again would give the same.
    """

    text: str
    unread: str | None = None
    is_for_good: bool = True


class KeptTexts:
    """Keeps what was read for an hour, in memory alone; two who need the same file read it once."""

    def __init__(self, *, max_characters: int = _MAX_CHARACTERS, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_characters = max_characters
        self._clock = clock
        self._kept: OrderedDict[FileKey, tuple[float, FileText]] = OrderedDict()
        self._size = 0
        self._locks: WeakValueDictionary[FileKey, asyncio.Lock] = WeakValueDictionary()

    async def once(self, key: FileKey | None, read: Callable[[], Awaitable[FileText]]) -> FileText:
        """Return what is known of a file, or what read returns; without a key, it is always read."""
        if key is None:
            return await read()
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            known = self._find(key)
            if known is None:
                known = await read()
                if known.is_for_good:
                    self._keep(key, known)
            return known

    def _find(self, key: FileKey) -> FileText | None:
        until, text = self._kept.get(key, (0.0, None))
        return text if until > self._clock() else None

    def _keep(self, key: FileKey, text: FileText) -> None:
        self._drop(key)
        self._kept[key] = self._clock() + _KEPT_SECONDS, text
        self._size += len(text.text)
        while self._kept and (self._size > self._max_characters or self._is_old()):
            self._drop(next(iter(self._kept)))

    def _is_old(self) -> bool:
        return next(iter(self._kept.values()))[0] <= self._clock()

    def _drop(self, key: FileKey) -> None:
        _, text = self._kept.pop(key, (0.0, None))
        self._size -= len(text.text) if text is not None else 0
