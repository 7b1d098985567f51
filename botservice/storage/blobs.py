"""The bytes of files, once per context."""

import hashlib
import re
from collections.abc import Collection

from sqlalchemy import Connection, Text, delete, select, type_coerce
from sqlalchemy.dialects import postgresql, sqlite

from botservice.storage.chunks import chunks
from botservice.storage.columns import Json
from botservice.storage.statements import execute
from botservice.storage.tables import blobs, messages, metadata

_DIGEST = re.compile(r"[0-9a-f]{64}")
_PAGE = 500
# Every text that may name a blob, so that a new one is not forgotten; what people said names none.
_REFERRING = [
    column
    for table in metadata.sorted_tables
    if "context_id" in table.c and table is not blobs
    for column in table.c
    if isinstance(column.type, Text | Json) and column is not messages.c.text
]


def digest_of(data: bytes) -> str:
    """Return the SHA-256 digest that names data."""
    return hashlib.sha256(data).hexdigest()


_INSERT = {
    name: dialect.insert(blobs).on_conflict_do_nothing()
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}


def store_blob(connection: Connection, context_id: int, data: bytes) -> str:
    """Keep data once in its context and return its SHA-256 digest."""
    digest = digest_of(data)
    values = {"context_id": context_id, "sha256": digest, "data": data}
    execute(connection, _INSERT[connection.dialect.name], values)
    return digest


def read_blobs(connection: Connection, context_id: int, digests: Collection[str]) -> dict[str, bytes]:
    """Return the bytes that are known in a context under these SHA-256 digests."""
    found: dict[str, bytes] = {}
    for chunk in chunks(digests):
        query = select(blobs.c.sha256, blobs.c.data).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(chunk))
        found.update((row.sha256, row.data) for row in connection.execute(query))
    return found


def delete_orphans(connection: Connection, context_id: int, digests: Collection[str]) -> None:
    """Delete those of these digests' bytes that nothing in the context refers to any more.

    References are digests inside JSON, so every such text of the context is looked through: deleting files is rare.
    """
    orphans = set(digests)
    for column in _REFERRING:
        if not orphans:
            return
        query = select(type_coerce(column, Text)).where(column.table.c.context_id == context_id, column.is_not(None))
        with connection.execute(query.execution_options(yield_per=_PAGE)) as texts:
            for text in texts.scalars():
                orphans.difference_update(_DIGEST.findall(text))
    for chunk in chunks(orphans):
        connection.execute(delete(blobs).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(chunk)))
