"""Files that lose a reference: deleted once nothing in their conversation refers to them any more.

References are digests inside JSON, so that every such text of a conversation has to be looked through. That grows with
it: a write only notes which files may be orphans, and a reader looks.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
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
)

from botservice.storage.blobs import DIGEST
from botservice.storage.statements import chunks
from botservice.storage.tables.columns import Compressed, Json, metadata
from botservice.storage.tables.conditions import TURN_IS_OPEN
from botservice.storage.tables.conversations import blobs, contexts, loose_files, messages, steps, turns

if TYPE_CHECKING:
    from botservice.storage.database import Storage

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
