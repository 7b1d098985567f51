"""Every statement of what search keeps besides messages: their vectors."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select

from botservice.storage.database import Connection, Row
from botservice.storage.tables.conditions import MESSAGE_IS_SAID
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
        messages.c.id > bindparam("after"), messages.c.id <= bindparam("last"), MESSAGE_IS_SAID, vectors.c.id.is_(None)
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


_LOCK = select(contexts.c.deletion_version).where(contexts.c.id == bindparam("context")).with_for_update()
_DELETE_WORDS = delete(word_blocks).where(word_blocks.c.context_id == bindparam("context"))


def forget_words(connection: Connection, context_id: int) -> None:
    """Delete where the words of a context stand: releases before 1.3 wrote that down of very long chats, and read it.

    To be called before messages change or are deleted, in the same transaction.
    """
    connection.execute(_LOCK, {"context": context_id})  # such a release takes it before it writes, and looks again
    connection.execute(_DELETE_WORDS, {"context": context_id})
