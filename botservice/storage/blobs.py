"""The bytes of files, once per context."""

import hashlib
from collections.abc import Collection

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from botservice.storage.tables import blobs


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
    connection.execute(_INSERT[connection.dialect.name], values)
    return digest


def read_blobs(connection: Connection, context_id: int, digests: Collection[str]) -> dict[str, bytes]:
    """Return the bytes that are known in a context under these SHA-256 digests."""
    if not digests:
        return {}
    query = select(blobs.c.sha256, blobs.c.data).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(digests))
    return {row.sha256: row.data for row in connection.execute(query)}
