"""The files of a folder that are documents, and what they hold; never a link, a pipe or a device."""

import asyncio
import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from botservice.core.errors import KnowledgeError
from botservice.core.messages import storable
from botservice.knowledge.reading import ENDINGS, MOST_BYTES

_MOST_FILES: Final = 20_000
_LONGEST_PATH: Final = 600  # characters, which an index of Postgres can hold
_FORMAT: Final = "2"  # of how passages are cut: another one reads every document again


@dataclass(frozen=True, slots=True)
class File:
    """A document as it is listed: its path below the folder, its size and time, and where it is."""

    path: str
    stamp: str
    where: Path


async def list_files(name: str, location: str) -> list[File]:
    """Return the files of a source.

    Raises:
        KnowledgeError: there is none.
    """
    found = await asyncio.to_thread(_files_of, Path(location))
    if not found:
        raise KnowledgeError(f"{name}: {location} is missing or has no documents; what was read of it is kept")
    return found


def _files_of(path: Path) -> list[File]:
    """Return the documents below a folder, or a file itself; hidden files and links are left out."""
    if path.is_file():
        return [_described(path, path.name, path.stat())]
    found = list(_walk(path))
    if len(found) > _MOST_FILES:
        raise KnowledgeError(f"{path} has more than {_MOST_FILES:,} documents: add its folders one by one")
    return found


def _walk(folder: Path) -> Iterator[File]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            path = Path(root) / name
            if path.suffix.lower() not in ENDINGS or name.startswith((".", "~$")):
                continue
            with contextlib.suppress(FileNotFoundError):  # it is gone meanwhile
                state = path.lstat()
                if stat.S_ISREG(state.st_mode):
                    yield _described(path, path.relative_to(folder).as_posix(), state)


def _described(path: Path, name: str, state: os.stat_result) -> File:
    kept = storable(name)
    if len(kept) > _LONGEST_PATH:
        kept = f"{kept[: _LONGEST_PATH - 40]}…{digest_of(kept.encode()).hex()}"
    return File(kept, f"{_FORMAT}:{state.st_size}:{state.st_mtime_ns}", path)


def read_bytes(path: Path, flags: int = 0) -> bytes:
    """Return what a file holds, as far as it may be read; never wait for a pipe that has taken its place.

    Raises:
        OSError: it cannot be opened, or is no file.
    """
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | flags)
    with open(number, "rb") as file:  # noqa: PTH123 - of a descriptor
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return file.read(MOST_BYTES + 1)


def digest_of(data: bytes) -> bytes:
    """Return what is the same for the same bytes, as long as passages are cut in the same way."""
    return hashlib.blake2b(_FORMAT.encode() + data, digest_size=16).digest()
