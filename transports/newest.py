"""What a process remembers for as long as there is room: the newest."""

from collections import UserDict
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Newest(UserDict[Key, Value]):
    """A mapping in which the oldest entry makes room for one too many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self._most:
            del self[next(iter(self))]
