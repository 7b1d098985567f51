"""The bytes of files, once per context: kept, encrypted, and deleted once nothing in their conversation refers to them.

References are digests inside JSON, so that every such text of a conversation has to be looked through. That grows with
it: a write only notes which files may be orphans, and a reader looks.
"""

import functools
import hashlib
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    type_coerce,
    union_all,
    update,
)

from botservice.core.errors import StorageError
from botservice.core.progress import Progress, unwatched
from botservice.storage.statements import chunks, execute_each, of_each_database
from botservice.storage.tables.columns import Compressed, Json, metadata
from botservice.storage.tables.conditions import TURN_IS_OPEN
from botservice.storage.tables.conversations import blobs, contexts, loose_files, messages, steps, turns

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


# Files that lost a reference

_PAGE: Final = 500
_CONTEXTS_AT_ONCE: Final = 100
_FILES_AT_ONCE: Final = 2_000
# Every text that may name a blob, so that a new one is not forgotten; what people said names none.
_REFERRING: Final = {
    table: texts
    for table in metadata.sorted_tables
    if "context_id" in table.c and table not in (blobs, loose_files)
    if (
        texts := [
            column if isinstance(column.type, Compressed) else type_coerce(column, Text)
            for column in table.c
            if isinstance(column.type, Text | Json | Compressed)
            if column not in {messages.c.text, messages.c.said_by_others}
        ]
    )
}
_NOTED: Final = select(loose_files.c.context_id).distinct().limit(_CONTEXTS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class _FoundFiles:
    """What was looked for in a conversation, at one moment.

    Attributes:
        digests: Those that nothing referred to.
        notes: The notes that were seen, by their ids.
        last_ids: The newest row of each table then.
        going_on: The turns that were not done then.
    """

    digests: Collection[str]
    notes: Mapping[int, str]
    last_ids: Mapping[str, int]
    going_on: Collection[int]

    def parts(self) -> "Iterator[_FoundFiles]":
        """Yield this in parts that are not long to delete."""
        for ids in chunks(self.notes, _FILES_AT_ONCE):
            notes = {each: self.notes[each] for each in ids}
            yield replace(self, notes=notes, digests=set(notes.values()).intersection(self.digests))


def loosen_files(connection: Connection, context_id: int, digests: Collection[str]) -> None:
    """Note that these files of a context may be orphans; `sweep_files` checks and deletes them."""
    rows = [{"context_id": context_id, "sha256": digest} for digest in digests]
    if rows:
        connection.execute(insert(loose_files), rows)


def loosen_all_files(connection: Connection, context_id: int) -> None:
    """Note that every file of a context may be an orphan."""
    every = select(literal(context_id), blobs.c.sha256).where(blobs.c.context_id == context_id)
    connection.execute(insert(loose_files).from_select(["context_id", "sha256"], every))


async def sweep_files(storage: "Storage") -> None:
    """Delete the files that were noted and that nothing refers to."""
    while context_ids := await storage.read(lambda connection: connection.execute(_NOTED).scalars().all()):
        for context_id in context_ids:
            found = await storage.read(partial(_find_orphans, context_id=context_id), is_long=True)
            for part in found.parts():
                await storage.write(partial(_delete_orphans, context_id=context_id, found=part))


def _find_orphans(connection: Connection, context_id: int) -> _FoundFiles:
    noted = select(loose_files.c.id, loose_files.c.sha256).where(loose_files.c.context_id == context_id)
    notes = {row.id: row.sha256 for row in connection.execute(noted)}
    is_open = turns.c.context_id.between(context_id, context_id) & TURN_IS_OPEN
    going_on = connection.execute(select(turns.c.id).where(is_open)).scalars().all()
    digests = set(notes.values()) - _read_references(connection, context_id, set(notes.values()))
    last_ids = {
        table.name: connection.execute(_last_id(table), {"context": context_id}).scalar_one_or_none() or 0
        for table in _REFERRING
        if "id" in table.c
    }
    return _FoundFiles(digests, notes, last_ids, going_on)


def _delete_orphans(connection: Connection, context_id: int, found: _FoundFiles) -> None:
    """Delete the files that are still orphans: rows that came since, or may still change, are searched again."""
    # Postgres: a transaction that stores something here holds the row until it is committed and can be seen.
    connection.execute(select(contexts.c.id).where(contexts.c.id == context_id).with_for_update())
    digests = set(found.digests) - _read_references(connection, context_id, found.digests, found)
    for chunk in chunks(digests):
        connection.execute(delete(blobs).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(chunk)))
    for ids in chunks(found.notes):
        connection.execute(delete(loose_files).where(loose_files.c.id.in_(ids)))


def _read_references(
    connection: Connection, context_id: int, digests: Collection[str], since: _FoundFiles | None = None
) -> set[str]:
    """Return those of digests that something in a context refers to.

    Args:
        since: Look only at later rows than these, and at what belongs to turns that were not done then, or are not now.
    """
    named: set[str] = set()
    for table, texts in _REFERRING.items():
        if named.issuperset(digests):
            break
        query = select(*texts)
        if since is None:
            query = query.where(table.c.context_id == context_id)
        else:  # a sum, so that no index is chosen by it: it is about few rows, and the context may have many
            query = query.where(table.c.context_id + 0 == context_id, _is_new(table, context_id, since))
        with connection.execute(query.execution_options(yield_per=_PAGE)) as rows:
            for row in rows:
                found = (digest for text in row if text is not None for digest in DIGEST.findall(text))
                named.update(digest for digest in found if digest in digests)
    return named


def _is_new(table: Table, context_id: int, since: _FoundFiles) -> ColumnElement[bool]:
    of_context, after = select(turns.c.id).where(turns.c.context_id == context_id), since.last_ids
    changing = union_all(
        of_context.where(turns.c.id > after[turns.name]),
        of_context.where(TURN_IS_OPEN),
        of_context.where(turns.c.id.in_(since.going_on)),
    )
    if table is turns:
        return turns.c.id.in_(changing)
    if "turn_id" in table.c:
        return table.c.turn_id.in_(changing)
    if "step_id" in table.c:
        return table.c.step_id.in_(select(steps.c.id).where(steps.c.turn_id.in_(changing)))
    return table.c.id > after[table.name] if "id" in table.c else literal(True)  # noqa: FBT003 - of SQL


def _last_id(table: Table) -> Select[Any]:
    return select(func.max(table.c.id)).where(table.c.context_id == bindparam("context"))
