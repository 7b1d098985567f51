"""The container of memory items."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from botservice.errors import InvalidField
from botservice.memory.fields.codec import dumps, loads
from botservice.memory.items import MemoryItem, checked_item


class Memory:
    """Items in their order.

    `content` is a list to append to, insert into and delete from; it stays the same list for the memory's whole life.
    A None that somebody put into it counts as nothing. Two memories are equal when their content is.
    """

    def __init__(self, content: Iterable[MemoryItem | Mapping[str, Any]] = ()) -> None:
        self._content: list[MemoryItem] = []
        self.load(content)

    @property
    def content(self) -> list[MemoryItem]:
        """The items themselves. Assigning copies the new ones in."""
        return self._content

    @content.setter
    def content(self, content: Iterable[MemoryItem | Mapping[str, Any]]) -> None:
        self.load(content)

    @property
    def length(self) -> int:
        """The number of items."""
        return sum(1 for _ in self._items())

    @property
    def list_content(self) -> list[dict[str, Any]]:
        """The records of the items, as `MemoryItem.to_dict` gives them."""
        return [item.to_dict() for item in self._items()]

    def is_empty(self) -> bool:
        """Whether there is no item."""
        return next(self._items(), None) is None

    def get_latest_item(self) -> MemoryItem | None:
        """Return the last item; None when there is none."""
        return next((item for item in reversed(self._content) if item is not None), None)

    def add_memory_item(self, memory_item: MemoryItem) -> None:
        """Append an item.

        Raises:
            InvalidField: it is not a MemoryItem.
        """
        self._content.append(checked_item(memory_item))

    def load(self, content: Iterable[MemoryItem | Mapping[str, Any]]) -> None:
        """Replace everything by a copy of content: the items of the list, not the list itself.

        Args:
            content: Items, or their records as `to_dict` gives them.

        Raises:
            InvalidField: something else is among them; nothing is changed then.
        """
        if isinstance(content, str | bytes | Mapping) or not isinstance(content, Iterable):
            raise InvalidField(f"a memory loads a list of items, not a {type(content).__name__}")
        self._content[:] = [MemoryItem.from_dict(i) if isinstance(i, Mapping) else checked_item(i) for i in content]

    def clear(self) -> None:
        """Remove every item."""
        self._content.clear()

    def delete_memory_item(self, step: int) -> None:
        """Remove the items with this step number, if there are any."""
        self._content[:] = [item for item in self._items() if not _has_step(item, [step])]

    def filter_memory_from_steps(self, steps: Iterable[int]) -> list[dict[str, Any]]:
        """Return the records of the items whose step number is among steps."""
        wanted = list(steps)
        return [item.to_dict() for item in self._items() if _has_step(item, wanted)]

    def filter_memory_from_keys(self, keys: Iterable[str]) -> list[dict[str, Any]]:
        """Return one dict per item, with those of the keys that it has; see `MemoryItem.filter`."""
        wanted = keys if isinstance(keys, str) else list(keys)
        return [item.filter(wanted) for item in self._items()]

    def to_json(self) -> str:
        """Return the records of the items as a JSON list; `from_json` is the inverse."""
        return dumps(self.list_content)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the memory that `to_json` was asked for.

        Raises:
            InvalidField: text was not written by `to_json`.
        """
        new = cls()
        new.load(loads(text))
        return new

    def _items(self) -> Iterator[MemoryItem]:
        return (checked_item(item) for item in self._content if item is not None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory) or type(other) is not type(self):
            return NotImplemented
        return list(self._items()) == list(other._items())

    __hash__ = None  # type: ignore[assignment]  # as for every class whose equal instances may change

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._content)} items)"


def _has_step(item: MemoryItem, steps: list[int]) -> bool:
    step = item.get_value("step")
    return step is not None and step in steps
