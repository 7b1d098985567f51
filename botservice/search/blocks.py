"""Where the words of a stretch of messages stand, packed to be stored: one block for each group of words.

A block is little-endian: how many keys it has (u4), the keys in order (u4 each), where each one's offsets end (u4
each), the offsets (u2 each). A key is a word's checksum: two words of one key cost a look at a message for nothing,
because what is found is read and ranked by its text.
"""

import zlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.arrays import each_once
from botservice.search.block_format import BLOCKS

LONGEST_STRETCH: Final = 1 << 16  # what two bytes count

_U4: Final = np.dtype("<u4")
_U2: Final = np.dtype("<u2")


def key_of(word: str) -> int:
    """Return the key of a word, equal in every process."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def block_of(key: int) -> int:
    """Return the number of the block that has a key."""
    return key % BLOCKS


def pack(keys: NDArray[np.uint32], offsets: NDArray[np.int64]) -> dict[int, bytes]:
    """Return blocks by number: keys[i] stands at offsets[i], which is below LONGEST_STRETCH."""
    wide = keys.astype(np.uint64)
    entries = each_once((wide % BLOCKS) << np.uint64(48) | wide << np.uint64(16) | offsets.astype(np.uint64))
    numbers = (entries >> np.uint64(48)).astype(np.int64)
    starts = np.searchsorted(numbers, np.arange(BLOCKS + 1)).tolist()
    return {
        number: _packed(entries[first:last]) for number, (first, last) in enumerate(pairwise(starts)) if first < last
    }


def _packed(entries: NDArray[Any]) -> bytes:
    words = (entries >> np.uint64(16) & np.uint64(0xFFFFFFFF)).astype(_U4)
    ends = np.append(np.flatnonzero(words[1:] != words[:-1]) + 1, len(words))
    parts = (np.array([len(ends)], _U4), words[ends - 1], ends.astype(_U4), (entries & np.uint64(0xFFFF)).astype(_U2))
    return b"".join(part.tobytes() for part in parts)


def unpack(block: bytes, keys: Iterable[int]) -> dict[int, NDArray[np.uint16]]:
    """Return the offsets of those of keys that a block has."""
    count = int(np.frombuffer(block, _U4, 1)[0])
    words, ends = np.frombuffer(block, _U4, 2 * count, 4).reshape(2, count)
    offsets = np.frombuffer(block, _U2, -1, 4 + 8 * count)
    found = {}
    for key in keys:
        place = int(words.searchsorted(key))
        if place < count and words[place] == key:
            found[key] = offsets[int(ends[place - 1]) if place else 0 : int(ends[place])]
    return found
