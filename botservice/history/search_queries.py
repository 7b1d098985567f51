"""Every statement of what search keeps besides messages: their vectors, and where the words of very long chats stand.

The messages of a very long chat are divided into stretches of equal numbers of positions. Once a stretch is full, its
words are written down by the first search that comes by; when one of its messages changes or goes, they are deleted
with it, and written again later.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select

from botservice.core.messages import Role
from botservice.search.block_format import BLOCKS, FORMAT
from botservice.storage.database import Connection, Row
from botservice.storage.statements import LARGEST_ID, chunks
from botservice.storage.tables.conversations import contexts, messages, vectors, word_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VECTORS = (
    select(vectors.c.id, vectors.c.message_id, vectors.c.data)
    .where(
        vectors.c.context_id == bindparam("context"),
        vectors.c.model_key == bindparam("model"),
        vectors.c.id > bindparam("after"),
    )
    .order_by(vectors.c.id)
    .limit(bindparam("most"))
)
_OF_MESSAGES = select(vectors.c.id, vectors.c.message_id, vectors.c.data).where(
    vectors.c.context_id + 0 == bindparam("context"),  # a sum, so that the messages' index is chosen
    vectors.c.model_key == bindparam("model"),
    vectors.c.message_id.in_(bindparam("ids", expanding=True)),
)
_MISSING = (
    select(
        messages.c.id,
        messages.c.context_id,
        messages.c.role,
        messages.c.text,
        messages.c.attachments,
        messages.c.said_by_others,
    )
    .select_from(
        messages.outerjoin(
            vectors,
            and_(
                vectors.c.message_id == messages.c.id,
                or_(vectors.c.model_key == bindparam("model"), vectors.c.id > bindparam("replaceable")),
            ),
        )
    )
    .where(
        messages.c.id > bindparam("after"),
        messages.c.id <= bindparam("last"),
        messages.c.role.in_([Role.USER.value, Role.ASSISTANT.value]),
        vectors.c.id.is_(None),
    )
    .order_by(messages.c.id.desc())
    .limit(bindparam("most"))
)
_NEWEST_VECTOR = select(vectors.c.id, vectors.c.model_key).order_by(vectors.c.id.desc()).limit(1)
_NEWEST_MESSAGE = select(func.max(messages.c.id))


def read_vectors(
    connection: Connection, context_id: int, model_key: str, *, after: int, limit: int
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the rows of the next vectors of one model in a context, in the order in which they were stored."""
    wanted = {"context": context_id, "model": model_key, "after": after, "most": limit}
    return connection.execute(_VECTORS, wanted).all()


def read_vectors_of(
    connection: Connection, context_id: int, model_key: str, message_ids: Collection[int]
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the rows of the vectors of one model that some messages have."""
    rows: list[Row[*tuple[Any, ...]]] = []
    for ids in chunks(message_ids):
        rows += connection.execute(_OF_MESSAGES, {"context": context_id, "model": model_key, "ids": ids})
    return rows


def write_vectors(
    connection: Connection, context_ids: Mapping[int, int], model_key: str, matrix: "NDArray[np.float16]"
) -> None:
    """Store vectors in the place of those that their messages had; of messages that are gone, nothing is kept.

    Args:
        context_ids: Each message's context, by the message's id, in the order of matrix.
    """
    there = set(connection.execute(select(messages.c.id).where(messages.c.id.in_(context_ids))).scalars())
    connection.execute(delete(vectors).where(vectors.c.message_id.in_(there)))
    rows = [
        {"context_id": context_id, "message_id": message_id, "model_key": model_key, "data": vector.tobytes()}
        for (message_id, context_id), vector in zip(context_ids.items(), matrix, strict=True)
        if message_id in there
    ]
    if rows:
        connection.execute(insert(vectors), rows)


def find_newest(connection: Connection) -> int:
    """Return the id of the newest message of all contexts; 0 where there is none."""
    return connection.execute(_NEWEST_MESSAGE).scalar_one() or 0


def find_newest_vector(connection: Connection) -> tuple[int, str]:
    """Return the id of the newest vector of all contexts, and its model's key; (0, "") where there is none."""
    row = connection.execute(_NEWEST_VECTOR).one_or_none()
    return (row.id, row.model_key) if row is not None else (0, "")


def find_missing(
    connection: Connection, model_key: str, *, replaceable: int, after: int, last: int, limit: int
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return messages with an id above after, up to last, that have no vector of a model, the newest first.

    Args:
        replaceable: Other models' vectors count as none up to this id; those that are newer are left alone.
    """
    wanted = {"model": model_key, "replaceable": replaceable, "after": after, "last": last, "most": limit}
    return connection.execute(_MISSING, wanted).all()


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
