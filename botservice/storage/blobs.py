"""The bytes of files, once per context."""

import hashlib
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, func, select, update

from botservice.errors import StorageError
from botservice.storage.chunks import chunks
from botservice.storage.statements import execute, of_each_database
from botservice.storage.tables.conversations import blobs

if TYPE_CHECKING:
    from botservice.storage.encryption import Cipher

_CIPHER: Final = "botservice_cipher"  # the name of the option of a connection
DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def digest_of(data: bytes) -> str:
    """Return the SHA-256 digest that names data."""
    return hashlib.sha256(data).hexdigest()


_insert = of_each_database(lambda insert: insert(blobs).on_conflict_do_nothing())


def with_cipher(engine: Engine, cipher: "Cipher | None") -> Engine:
    """Return an engine whose connections encrypt the blobs that they store, and read encrypted ones."""
    return engine if cipher is None else engine.execution_options(**{_CIPHER: cipher})


def store_blob(connection: Connection, context_id: int, data: bytes) -> str:
    """Keep data once in its context and return its SHA-256 digest; encrypted, where the storage has a key."""
    digest = digest_of(data)
    cipher = _cipher_of(connection)
    kept = data if cipher is None else cipher.encrypt(data)
    values = {"context_id": context_id, "sha256": digest, "data": kept, "is_encrypted": cipher is not None}
    execute(connection, _insert(connection), values)
    return digest


def read_blobs(connection: Connection, context_id: int, digests: Collection[str]) -> dict[str, bytes]:
    """Return the bytes that are known in a context under these SHA-256 digests.

    Raises:
        StorageError: they are encrypted, and the storage has no key, or another one.
    """
    found: dict[str, bytes] = {}
    for chunk in chunks(digests):
        query = select(blobs.c.sha256, blobs.c.data, blobs.c.is_encrypted).where(
            blobs.c.context_id == context_id, blobs.c.sha256.in_(chunk)
        )
        for row in connection.execute(query):
            found[row.sha256] = _decrypt(connection, row.data) if row.is_encrypted else row.data
    return found


def encrypt_stored(connection: Connection, after: int, limit: int) -> list[int]:
    """Encrypt, with the first key, blobs that are stored in the clear or under an older key, and return their ids.

    Args:
        after: The id of the last blob that was done, to begin with 0.
    """
    cipher = _cipher_of(connection)
    if cipher is None:
        return []
    rows = connection.execute(select(blobs).where(blobs.c.id > after).order_by(blobs.c.id).limit(limit)).all()
    for row in rows:
        data = _decrypt(connection, row.data) if row.is_encrypted else row.data
        change = update(blobs).where(blobs.c.id == row.id)
        connection.execute(change.values(data=cipher.encrypt(data), is_encrypted=True))
    return [row.id for row in rows]


def find_newest_blob(connection: Connection) -> int:
    """Return the id of the newest blob; 0 where there is none."""
    return int(connection.execute(select(func.max(blobs.c.id))).scalar_one() or 0)


def count_plain(connection: Connection) -> int:
    """Return how many blobs are stored in the clear."""
    return int(connection.execute(select(func.count()).where(blobs.c.is_encrypted.is_(False))).scalar_one())


def check_newest(connection: Connection) -> None:
    """Return if the newest encrypted blob can be read.

    Raises:
        StorageError: it cannot; this is another key.
    """
    query = select(blobs.c.data).where(blobs.c.is_encrypted.is_(True)).order_by(blobs.c.id.desc()).limit(1)
    data = connection.execute(query).scalar_one_or_none()
    if data is not None:
        _decrypt(connection, data)


def _cipher_of(connection: Connection) -> "Cipher | None":
    found: Cipher | None = connection.get_execution_options().get(_CIPHER)
    return found


def _decrypt(connection: Connection, data: bytes) -> bytes:
    cipher = _cipher_of(connection)
    if cipher is None:
        raise StorageError("files are stored encrypted: set ENCRYPTION_KEY to the key that they were stored with")
    return cipher.decrypt(bytes(data))
