"""Turning the quotes and forwards in messages of earlier versions into references, a little at a time.

Such a version may work beside this one, so that more of its messages can come at any time. Forgetting a person, or
exporting their data, converts the messages concerned first; upkeep converts the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, bindparam, case, func, or_, select, update

from botservice.core.messages import Author, Role
from botservice.core.references import Reference, ReferenceKind
from botservice.people.older_texts import Taken, take_apart, without_cut
from botservice.storage.chunks import chunks
from botservice.storage.database import Storage
from botservice.storage.references import keep_references
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import messages

_AT_ONCE: Final = 5_000  # rows that are looked at: some milliseconds
_WRITTEN_AT_ONCE: Final = 100
_NEAR: Final = 1_000  # positions before a message in which the one is looked for that it quotes
_TELLING: Final = 12  # characters that hardly two people say alike

_IS_OLDER = and_(
    MESSAGE_IS_OF_A_PERSON,
    messages.c.said_by_others.is_(None),
    or_(messages.c.text.startswith("[", autoescape=True), messages.c.text.contains("\n[shared", autoescape=True)),
)
_OLDER = select(
    *messages.c["id", "context_id", "position", "text", "own_text", "attachments", "author_platform"]
).where(_IS_OLDER)
_OF_ALL = _OLDER.where(messages.c.id > bindparam("after"), messages.c.id <= bindparam("last")).order_by(messages.c.id)
_OF_CONTEXT = _OLDER.where(messages.c.context_id == bindparam("context")).order_by(messages.c.id)
_LAST = select(func.max(messages.c.id))


@dataclass(frozen=True, slots=True)
class UpgradeProgress:
    """How far all messages were looked through: up to an id."""

    last_id: int = 0
    is_whole: bool = False


async def bring_over_contexts(storage: Storage, context_ids: Sequence[int]) -> None:
    """Bring over all messages of some conversations."""
    for context_id in context_ids:
        await _bring_over(storage, await storage.read(partial(_find, query=_OF_CONTEXT, context=context_id)))


async def bring_over_next(storage: Storage, done: UpgradeProgress) -> UpgradeProgress:
    """Bring over the next messages of all conversations, and return how far that is."""
    newest = await storage.read(lambda connection: connection.execute(_LAST).scalar_one() or 0)
    last = min(done.last_id + _AT_ONCE, newest)
    await _bring_over(storage, await storage.read(partial(_find, query=_OF_ALL, after=done.last_id, last=last)))
    return UpgradeProgress(last, is_whole=last == newest)


def _find(connection: Connection, query: Any, **sought: int) -> Sequence[Row[*tuple[Any, ...]]]:
    return connection.execute(query, sought).all()


async def _bring_over(storage: Storage, rows: Sequence[Row[*tuple[Any, ...]]]) -> None:
    for chunk in chunks(rows, _WRITTEN_AT_ONCE):
        await storage.write(partial(_rewrite, rows=chunk))


def _rewrite(connection: Connection, rows: Sequence[Row[*tuple[Any, ...]]]) -> None:
    for row in rows:
        taken = take_apart(row.text, has_files=bool(row.attachments))
        if not taken.references:
            continue
        # Nobody has changed it meanwhile.
        is_same = and_(messages.c.id == row.id, messages.c.said_by_others.is_(None), messages.c.text == row.text)
        own = _own(row, taken)
        if connection.execute(update(messages).where(is_same).values(text=taken.text, own_text=own)).rowcount:
            found = [_identified(connection, row, _with_files(row, each)) for each in taken.references]
            keep_references(connection, row.context_id, row.id, found)


def _with_files(row: Row[*tuple[Any, ...]], reference: Reference) -> Reference:
    """Return a reference with the files that are surely its: all of a forwarded message."""
    is_whole = reference.kind is ReferenceKind.FORWARD
    return replace(reference, file_count=len(row.attachments or ())) if is_whole else reference


def _own(row: Row[*tuple[Any, ...]], taken: Taken) -> str | None:
    own: str | None = taken.own_text if row.own_text is None else row.own_text
    return None if own == taken.text else own


def _identified(connection: Connection, row: Row[*tuple[Any, ...]], reference: Reference) -> Reference:
    """Return a reference with who said it, where the message is found that it repeats; their name alone otherwise."""
    said = without_cut(reference.text)
    name = None if reference.author is None else reference.author.name
    role = Role.ASSISTANT if reference.is_of_assistant else Role.USER
    find = func.instr if connection.dialect.name == "sqlite" else func.strpos
    query = (
        select(messages.c.author_platform, messages.c.author_id, messages.c.author_name, messages.c.external_id)
        .where(
            messages.c.context_id == row.context_id,
            messages.c.position < row.position,
            messages.c.position >= row.position - _NEAR,
            messages.c.role == role.value,
            find(messages.c.text, said) > 0,
        )
        .order_by(case((messages.c.author_name == name, 0), else_=1), messages.c.position.desc())
        .limit(1)
    )
    found = connection.execute(query).one_or_none() if said else None
    if found is None or (found.author_name != name and len(said) < _TELLING):
        author = reference.author and Author(row.author_platform, None, name)
        return replace(reference, author=author)
    author = Author(found.author_platform, found.author_id, name or found.author_name)
    return replace(reference, author=None if reference.is_of_assistant else author, external_id=found.external_id)
