"""The vectors of messages: the queries that own their table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sqlalchemy import and_, bindparam, delete, func, insert, or_, select

from botservice.core.messages import Role
from botservice.storage.chunks import chunks
from botservice.storage.database import Connection, Row
from botservice.storage.tables.conversations import messages, vectors

_KEPT_AS = np.dtype("<f2")  # half floats: half the bytes rank the same

_PAGE = (
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
_NEWEST = select(func.max(messages.c.id))


@dataclass(frozen=True, slots=True)
class VectorPage:
    """Some vectors of one context.

    Attributes:
        last_id: Where the next page begins.
    """

    message_ids: list[int]
    matrix: NDArray[np.float16]
    last_id: int


def read_vectors(
    connection: Connection, context_id: int, model_key: str, *, after: int, limit: int
) -> VectorPage | None:
    """Return the next vectors of one model in a context, in the order in which they were stored; None at the end."""
    wanted = {"context": context_id, "model": model_key, "after": after, "most": limit}
    return _page(connection.execute(_PAGE, wanted).all())


def read_vectors_of(
    connection: Connection, context_id: int, model_key: str, message_ids: Collection[int]
) -> VectorPage | None:
    """Return the vectors of one model that some messages have; None if none has any."""
    rows: list[Any] = []
    for ids in chunks(message_ids):
        rows += connection.execute(_OF_MESSAGES, {"context": context_id, "model": model_key, "ids": ids})
    return _page(rows)


def _page(rows: Sequence[Row[*tuple[Any, ...]]]) -> VectorPage | None:
    if not rows:
        return None
    width = len(rows[-1].data)
    rows_of_width = [row for row in rows if len(row.data) == width]
    matrix = np.frombuffer(b"".join(row.data for row in rows_of_width), _KEPT_AS).reshape(len(rows_of_width), -1)
    return VectorPage([row.message_id for row in rows_of_width], matrix, rows[-1].id)


def write_vectors(
    connection: Connection, context_ids: Mapping[int, int], model_key: str, matrix: NDArray[np.float16]
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
    return connection.execute(_NEWEST).scalar_one() or 0


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


def as_unit_rows(found: ArrayLike, count: int) -> NDArray[np.float16]:
    """Return what an embedder gave as it is kept: one unit vector per row.

    Raises:
        ValueError: it is not one vector of finite numbers for each of count texts.
    """
    matrix = np.asarray(found, np.float32)
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0 or not np.isfinite(matrix).all():
        raise ValueError(f"{count} texts were to be embedded, and what came back has the shape {matrix.shape}")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return (matrix / np.where(lengths > 0, lengths, 1)).astype(_KEPT_AS)
