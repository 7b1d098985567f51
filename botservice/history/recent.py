"""The newest messages of chats, kept as they were read: none of them changes while its chat's version stays."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, ClassVar, Final

from botservice.core.messages import Message, Role
from botservice.history.queries import list_between, list_newest
from botservice.history.rows import read_message
from botservice.storage.database import Connection, Row, Storage

Kept = Message | Row[*tuple[Any, ...]]
"""A message, or its row where more has to be read or counted: its files, tokens of another encoding."""

DEFAULT_LIMIT_BYTES: Final = 32 * 1024 * 1024
_PAGE: Final = 32  # messages that are read at once
_OLDER_PAGE: Final = 128
_MOST: Final = 2_048  # of one chat
_LARGEST_BYTES: Final = 2 * 1024 * 1024  # of one chat
_LEFT: Final = 0.25  # of both, for what is said later
_MESSAGE_BYTES: Final = 700  # besides its text


@dataclass(frozen=True, slots=True)
class Recent:
    """All messages of one chat after a position and up to another, oldest first.

    Attributes:
        version: The chat's deletion version.
        encoding: The name of the one that the tokens are counted in.
        at: The messages by their positions.
        positions: Their positions by their ids.
        size_bytes: Estimated bytes.
        speakers: The people who have lately spoken, and maybe more; None if nobody has looked.
    """

    version: int
    encoding: str
    after: int
    last: int
    at: dict[int, Kept] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    size_bytes: int = 0
    speakers: frozenset[object] | None = None

    @property
    def has_room(self) -> bool:
        """Whether there are older messages, and more of them may be kept."""
        size, count = self.size_bytes / _LARGEST_BYTES, (len(self.at) + _OLDER_PAGE) / _MOST
        return self.after > 0 and max(size, count) < 1 - _LEFT

    @property
    def is_of_one(self) -> bool:
        """Whether it is known that no more than one person has lately spoken."""
        return self.speakers is not None and len(self.speakers) < 2

    def newest_first(self, before: int | None) -> Iterator[tuple[int, Kept]]:
        """Yield messages with their positions, from the last one before a position on."""
        every = reversed(self.at.items())
        return every if before is None else (item for item in every if item[0] < before)

    def may_hold(self, position: int | None, message: Message | None) -> bool:
        """Return whether a message may stand at a position: another does where what was written last was lost.

        A database that is restored, or whose standby takes over, gives out its positions once more.
        """
        kept = None if position is None else self.at.get(position)
        return kept is None or message is None or _is_same(kept, message)

    def since(self, position: int) -> list[Kept]:
        """Return the messages after a position, which is not before all."""
        return [self.at[each] for each in takewhile(position.__lt__, reversed(self.at))][::-1]

    def of_ids(self, numbers: Iterable[int]) -> dict[int, tuple[int, Message]]:
        """Return those messages with some ids that are here in full, each with its position."""
        found = {}
        for number in numbers:
            position = self.positions.get(number)
            kept = None if position is None else self.at[position]
            if position is not None and isinstance(kept, Message):
                found[number] = position, kept
        return found

    def extended(self, rows: Sequence[Row[*tuple[Any, ...]]], last: int) -> "Recent":
        """Return these with rows behind them, which are all up to a position; of too many the newest."""
        new = {row.position: self._kept(row) for row in rows}
        speakers = None if self.speakers is None else self.speakers.union(_speakers(new.values()))
        size = self.size_bytes + sum(_MESSAGE_BYTES + len(each.text) for each in new.values())
        positions = {**self.positions, **{row.id: row.position for row in rows}}
        longer = replace(
            self, last=last, at={**self.at, **new}, positions=positions, size_bytes=size, speakers=speakers
        )
        return longer if size <= _LARGEST_BYTES and len(longer.at) <= _MOST else _newest_half(longer)

    def widened(self, rows: Sequence[Row[*tuple[Any, ...]]], after: int) -> "Recent":
        """Return these with rows before them, which are all after a position; as they are if that is too much."""
        older = Recent(self.version, self.encoding, after, after).extended(rows, self.after)
        size, count = older.size_bytes + self.size_bytes, len(older.at) + len(self.at)
        if older.after != after or size > _LARGEST_BYTES * (1 - _LEFT) or count > _MOST * (1 - _LEFT):
            return self
        at, positions = {**older.at, **self.at}, {**older.positions, **self.positions}
        return replace(self, after=after, at=at, positions=positions, size_bytes=size)

    def _kept(self, row: Row[*tuple[Any, ...]]) -> Kept:
        return row if row.attachments or row.token_encoding != self.encoding else read_message(row, None, None)


def _is_same(one: Kept, other: Kept) -> bool:
    return bool(one.id == other.id and one.created_at == other.created_at)


def _newest_half(recent: Recent) -> Recent:
    items = list(recent.at.items())
    middle = (len(items) + 1) // 2
    older, newer = items[:middle], dict(items[middle:])
    gone = sum(_MESSAGE_BYTES + len(each.text) for _, each in older)
    positions = {number: position for number, position in recent.positions.items() if position in newer}
    return replace(recent, after=older[-1][0], at=newer, positions=positions, size_bytes=recent.size_bytes - gone)


def _speakers(said: Iterable[Kept]) -> Iterator[object]:
    """Yield who the people are that said something, as the query for two of them tells them apart."""
    for each in said:
        author = each.author if isinstance(each, Message) else read_message(each, None, None).author
        if each.role == Role.USER and author is not None and (author.id is not None or author.name is not None):
            yield author.platform, author.id, author.name if author.id is None else None


class RecentMessages:
    """The newest messages of one storage's chats; of the least recently read chats, they go when all take too much."""

    _of_storage: ClassVar["weakref.WeakKeyDictionary[Storage, RecentMessages]"] = weakref.WeakKeyDictionary()

    def __init__(self, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._chats: OrderedDict[int, Recent] = OrderedDict()
        self._size = 0
        self._guard = threading.Lock()

    @classmethod
    def of(cls, storage: Storage) -> "RecentMessages":
        """Return the messages that are kept of a storage."""
        known = cls._of_storage.get(storage)
        return cls._of_storage.setdefault(storage, cls()) if known is None else known

    def catch_up(
        self, connection: Connection, context_id: int, *, version: int, last: int, encoding: str | None = None
    ) -> Recent | None:
        """Return what is kept of a chat with what is new, as a view of the database shows it; None for nothing.

        Args:
            last: The chat's last position.
        """
        known = self._chats.get(context_id)
        if known is None or known.version != version or known.last > last or encoding not in (None, known.encoding):
            return None
        if known.last == last:
            return known
        first, newest = next(reversed(known.at.items()), (known.last + 1, None))  # it is read again, to see if it is
        rows = list_between(connection, context_id, first - 1, last, _PAGE)
        if len(rows) == _PAGE or (newest is not None and not (rows and _is_same(newest, rows[0]))):
            return None
        return self.keep(context_id, known.extended(rows if newest is None else rows[1:], last))

    def newest(
        self,
        connection: Connection,
        context_id: int,
        version: int,
        last: int,
        encoding: str,
        *,
        asked: tuple[int | None, Message | None] = (None, None),
    ) -> Recent:
        """Return the newest messages of a chat as a view of the database shows them, and keep them.

        Args:
            asked: A message with its position: what is kept next to another one there is read again.
        """
        known = self.catch_up(connection, context_id, version=version, last=last, encoding=encoding)
        if known is not None and known.may_hold(*asked):
            return known
        rows = list_newest(connection, context_id, _PAGE)[::-1]
        after = rows[0].position - 1 if len(rows) == _PAGE else 0
        return self.keep(context_id, Recent(version, encoding, after, after).extended(rows, last))

    def reach_back(self, connection: Connection, context_id: int, recent: Recent) -> Recent:
        """Return messages of a chat with a page of those before them, where there is room for it, and keep them."""
        if not recent.has_room:
            return recent
        rows = list_newest(connection, context_id, _OLDER_PAGE, before=recent.after + 1)[::-1]
        after = rows[0].position - 1 if len(rows) == _OLDER_PAGE else 0
        return self.keep(context_id, recent.widened(rows, after))

    def known(self, context_id: int, version: int) -> Recent | None:
        """Return what is kept of a chat at a version; None for nothing."""
        known = self._chats.get(context_id)
        return known if known is not None and known.version == version else None

    def is_of_one(self, context_id: int) -> bool:
        """Return whether no more than one person had spoken in a chat when it was last read."""
        known = self._chats.get(context_id)
        return known is not None and known.is_of_one

    def widen(
        self, context_id: int, rows: Sequence[Row[*tuple[Any, ...]]], *, version: int, after: int, last: int
    ) -> None:
        """Keep also a page of a chat, all its messages from one position to another, if what is kept begins there."""
        known = self._chats.get(context_id)
        if known is not None and known.version == version and after < known.after <= last <= known.last:
            older = [row for row in rows if row.position <= known.after]
            self.keep(context_id, known.widened(older, after))

    def keep(self, context_id: int, recent: Recent) -> Recent:
        """Keep messages of a chat, unless later ones are, and return them."""
        with self._guard:
            known = self._chats.get(context_id)
            if known is not None and (known.version, known.last) > (recent.version, recent.last):
                return recent
            self._size -= known.size_bytes if known is not None else 0
            self._chats[context_id] = recent
            self._chats.move_to_end(context_id)
            self._size += recent.size_bytes
            while len(self._chats) > 1 and self._size > self._limit_bytes:
                self._size -= self._chats.popitem(last=False)[1].size_bytes
        return recent
