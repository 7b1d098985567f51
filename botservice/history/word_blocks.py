"""Where the words of very long chats stand: the queries that own the table.

The messages of such a chat are divided into stretches of equal numbers of positions. Once a stretch is full, its words
are written down by the first search that comes by; when one of its messages changes or goes, they are deleted with it,
and written anew later.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, delete, insert, select

from botservice.search.block_format import BLOCKS, FORMAT
from botservice.storage.chunks import chunks
from botservice.storage.database import Connection
from botservice.storage.tables.conversations import contexts, messages, word_blocks

LARGEST_ID: Final = 2**63 - 1
_MARK: Final = BLOCKS  # the number of the row that says that a stretch is written down, and in which format
_MARK_DATA: Final = bytes([FORMAT])

_LOCK = select(contexts.c.deletion_version).where(contexts.c.id == bindparam("context")).with_for_update()
_OF_CONTEXT = word_blocks.c.context_id == bindparam("context")
_STRETCHES = select(word_blocks.c.first_position, word_blocks.c.last_position, word_blocks.c.data).where(
    _OF_CONTEXT, word_blocks.c.block == _MARK
)
_BLOCKS = select(word_blocks.c.first_position, word_blocks.c.block, word_blocks.c.data).where(
    _OF_CONTEXT, word_blocks.c.block.in_(bindparam("blocks", expanding=True))
)
_INSERT = insert(word_blocks)
_DELETE_ALL = delete(word_blocks).where(_OF_CONTEXT)
_DELETE = _DELETE_ALL.where(
    word_blocks.c.first_position <= bindparam("last"), word_blocks.c.last_position >= bindparam("first")
)
# A sum, so that no index is chosen by it: for ten ids SQLite would rather look through the whole context.
_IS_OF_CONTEXT = messages.c.context_id + 0 == bindparam("context")
_POSITIONS = select(messages.c.position).where(_IS_OF_CONTEXT, messages.c.id.in_(bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True)
class WordBlock:
    """The words of the messages from one position to another, of one context.

    Attributes:
        deletion_version: The context's, when they were read.
        blocks: As `SearchIndex.blocks` gives them, by number.
    """

    context_id: int
    first_position: int
    last_position: int
    deletion_version: int
    blocks: dict[int, bytes]


def find_stretches(connection: Connection, context_id: int) -> set[tuple[int, int]]:
    """Return the first and the last position of each stretch that is written down."""
    rows = connection.execute(_STRETCHES, {"context": context_id})
    return {(row.first_position, row.last_position) for row in rows if bytes(row.data) == _MARK_DATA}


def write_stretch(connection: Connection, stretch: WordBlock) -> None:
    """Write a stretch down in the place of what was there, unless messages have changed or gone since it was read."""
    # The lock: deleting a message takes it as well, before the words are deleted.
    version = connection.execute(_LOCK, {"context": stretch.context_id}).scalar_one_or_none()
    if version != stretch.deletion_version:
        return
    area = {"context": stretch.context_id, "first": stretch.first_position, "last": stretch.last_position}
    connection.execute(_DELETE, area)
    place = {
        "context_id": stretch.context_id,
        "first_position": stretch.first_position,
        "last_position": stretch.last_position,
    }
    rows = [{**place, "block": number, "data": data} for number, data in {**stretch.blocks, _MARK: _MARK_DATA}.items()]
    connection.execute(_INSERT, rows)


def read_blocks(connection: Connection, context_id: int, numbers: Collection[int]) -> list[tuple[int, int, bytes]]:
    """Return the first position, the number and the data of each block with one of numbers."""
    rows = connection.execute(_BLOCKS, {"context": context_id, "blocks": list(numbers)})
    return [(first, number, bytes(data)) for first, number, data in rows]


def forget_words(connection: Connection, context_id: int, message_ids: Iterable[int] | None = None) -> None:
    """Delete the words of the stretches that have these messages, all of the context's by default.

    To be called before the messages are deleted, in the same transaction.
    """
    connection.execute(_LOCK, {"context": context_id})
    stretches = connection.execute(_STRETCHES, {"context": context_id}).all()
    if not stretches:
        return
    if message_ids is None:
        connection.execute(_DELETE_ALL, {"context": context_id})
        return
    for ids in chunks(number for number in message_ids if 0 < number <= LARGEST_ID):
        positions = connection.execute(_POSITIONS, {"context": context_id, "ids": ids}).scalars().all()
        for row in stretches:
            if any(row.first_position <= position <= row.last_position for position in positions):
                area = {"context": context_id, "first": row.first_position, "last": row.last_position}
                connection.execute(_DELETE, area)
