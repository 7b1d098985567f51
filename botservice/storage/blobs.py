"""The bytes of files, once per context: kept, encrypted, and encrypted again."""

import functools
import hashlib
import logging
import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, bindparam, delete, func, select, update

from botservice.core.errors import StorageError
from botservice.core.progress import Progress, unwatched
from botservice.storage.statements import chunks, execute_each, of_each_database
from botservice.storage.tables.conversations import blobs

if TYPE_CHECKING:
    from botservice.storage.database import Storage
    from botservice.storage.encryption import Cipher

logger = logging.getLogger(__name__)

_CHECKED: Final = 5  # blobs at either end of the table
_CIPHER: Final = "botservice_cipher"  # the name of the option of a connection
DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def digest_of(data: bytes) -> str:
    """Return the SHA-256 digest that names data."""
    return hashlib.sha256(data).hexdigest()


_BY_DIGEST = select(*blobs.c["sha256", "data", "is_encrypted"]).where(
    blobs.c.context_id == bindparam("context"), blobs.c.sha256.in_(bindparam("digests", expanding=True))
)
_insert = of_each_database(lambda insert: insert(blobs).on_conflict_do_nothing())


def with_cipher(engine: Engine, cipher: "Cipher | None") -> Engine:
    """Return an engine whose connections encrypt the blobs that they store, and read encrypted ones."""
    return engine if cipher is None else engine.execution_options(**{_CIPHER: cipher})


def store_blob(connection: Connection, context_id: int, data: bytes) -> str:
    """Keep data once in its context and return its SHA-256 digest; encrypted, where the storage has a key."""
    return store_blobs(connection, [(context_id, data)])[0]


def store_blobs(connection: Connection, given: Sequence[tuple[int, bytes]]) -> list[str]:
    """Keep data, each once in its context, and return the digests (see `store_blob`)."""
    cipher = _cipher_of(connection)
    rows: list[dict[str, Any]] = [
        {
            "context_id": context_id,
            "sha256": digest_of(data),
            "data": data if cipher is None else cipher.encrypt(data),
            "is_encrypted": cipher is not None,
        }
        for context_id, data in given
    ]
    if rows:
        execute_each(connection, _insert(connection), rows)
    return [row["sha256"] for row in rows]


def read_blobs(connection: Connection, context_id: int, digests: Collection[str]) -> dict[str, bytes]:
    """Read the bytes that a context has under these SHA-256 digests.

    What is encrypted with a key that the storage does not have is left out: a chat must go on without its old files.
    """
    found: dict[str, bytes] = {}
    for chunk in chunks(digests):
        for row in connection.execute(_BY_DIGEST, {"context": context_id, "digests": chunk}):
            try:
                found[row.sha256] = _decrypt(connection, row.data) if row.is_encrypted else row.data
            except StorageError as error:
                _warn_once(str(error))
    return found


def find_holding(
    connection: Connection, context_id: int, digests: Collection[str], texts: Collection[str]
) -> list[str]:
    """Find the blobs of long texts that hold one of some texts, or may: of one whose key is lost, nobody can tell."""
    sought = [text.encode("utf-8", "surrogatepass") for text in texts]
    found = read_blobs(connection, context_id, digests)
    return [each for each in digests if each not in found or any(text in found[each] for text in sought)]


@functools.cache
def _warn_once(reason: str) -> None:
    logger.error("storage.files_unreadable", extra={"reason": reason})


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


def check_readable(connection: Connection) -> None:
    """Check that the oldest and the newest encrypted blobs can be read.

    Raises:
        StorageError: one of them cannot; the storage has no key, or another one.
    """
    encrypted = select(blobs.c.data).where(blobs.c.is_encrypted.is_(True)).limit(_CHECKED)
    for order in (blobs.c.id.asc(), blobs.c.id.desc()):
        for data in connection.execute(encrypted.order_by(order)).scalars():
            _decrypt(connection, data)


def delete_unreadable(connection: Connection, after: int, limit: int) -> tuple[list[int], int]:
    """Delete, among the next blobs, those that no key of the storage decrypts.

    Args:
        after: The id of the last blob that was looked at, to begin with 0.

    Returns:
        The ids that were looked at, and how many of them are deleted.
    """
    query = select(blobs.c.id, blobs.c.data).where(blobs.c.id > after, blobs.c.is_encrypted.is_(True))
    rows = connection.execute(query.order_by(blobs.c.id).limit(limit)).all()
    lost = [row.id for row in rows if not _is_readable(connection, row.data)]
    connection.execute(delete(blobs).where(blobs.c.id.in_(lost)))
    return [row.id for row in rows], len(lost)


def _is_readable(connection: Connection, data: bytes) -> bool:
    try:
        _decrypt(connection, data)
    except StorageError:
        return False
    return True


def _cipher_of(connection: Connection) -> "Cipher | None":
    found: Cipher | None = connection.get_execution_options().get(_CIPHER)
    return found


def _decrypt(connection: Connection, data: bytes) -> bytes:
    cipher = _cipher_of(connection)
    if cipher is None:
        raise StorageError("files are stored encrypted: set ENCRYPTION_KEY to the key that they were stored with")
    return cipher.decrypt(bytes(data))


_AT_ONCE = 50  # files, each of them in memory


async def give_up_unreadable(storage: "Storage", progress: Progress = unwatched) -> int:
    """Delete every stored file that no key decrypts, and return how many there were."""
    lost, last = 0, 0
    newest = await storage.read(find_newest_blob)
    while True:
        ids, count = await storage.write(partial(delete_unreadable, after=last, limit=_AT_ONCE))
        if not ids:
            return lost
        lost, last = lost + count, ids[-1]
        progress(last, newest)


async def encrypt_files(storage: "Storage", progress: Progress = unwatched) -> int:
    """Encrypt every stored file with the first key, and return how many there are; the clear bytes leave the database.

    It may run alongside the service, and again after it was cut off.
    """
    done, last = 0, 0
    newest = await storage.read(find_newest_blob)
    while ids := await storage.write(partial(encrypt_stored, after=last, limit=_AT_ONCE)):
        done, last = done + len(ids), ids[-1]
        progress(last, newest)
    await storage.scrub()
    return done
