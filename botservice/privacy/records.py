"""Removing words from the records of the agent's work in chats that stay: prompts, steps, deliveries."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    type_coerce,
    update,
)

from botservice.core.messages import Author, Role
from botservice.history.shown import FORMS
from botservice.people.fact_queries import drop_facts, put_aside
from botservice.people.facts import Known
from botservice.people.queries import identities_of
from botservice.privacy.clearing_long_chats import bites
from botservice.privacy.deletion_counts import Forgotten
from botservice.privacy.own_messages import contexts_of
from botservice.storage.blobs import find_holding
from botservice.storage.chunks import chunks
from botservice.storage.database import Storage
from botservice.storage.ranges import sure_up_to
from botservice.storage.tables.columns import Compressed
from botservice.storage.tables.conversations import blobs, deliveries, prompt_log, steps, tool_calls, turns

_GONE: Final = "[deleted]"
_TEXT_BLOB = re.compile(r'"\$text": ?"([0-9a-f]{64})"')
_SEAL: Final = '"model_items":'
# Where words lie, and by what their rows are found again.
_RECORDS: Final = (
    (steps.c.data, steps.c.id),
    (prompt_log.c.content, prompt_log.c.turn_id),
    (tool_calls.c.result, tool_calls.c.step_id),
    (deliveries.c.payload, deliveries.c.id),
)
_KINDS: Final = frozenset({"kind", "role", "type"})  # of records: what stands there is one of ours
_OURS: Final = frozenset(Role) | FORMS.keys()
_ARGUMENTS: Final = "arguments"
_DONE: Final = "done"
_ROWS_AT_ONCE: Final = 100
_TEXTS_AT_ONCE: Final = 20
_STEPS: Final = (
    select(steps.c.id)
    .where(steps.c.context_id == bindparam("context"), steps.c.id > bindparam("after"))
    .order_by(steps.c.id)
    .limit(_ROWS_AT_ONCE)
)


@dataclass(frozen=True, slots=True)
class Cleared:
    """How far the records of a chat were cleared, and which turns were still writing theirs."""

    up_to: int
    going_on: Sequence[int]


_NOTHING: Final[Mapping[int, Cleared]] = MappingProxyType({})


async def forget_facts(storage: Storage, find: Callable[[Connection], Sequence[Known]]) -> Forgotten:
    """Delete facts, and their texts from every chat of their persons, a little at a time.

    No prompt has them from the beginning on. They go last, so that a process that is cut off finds them again.
    """
    known = await storage.read(find, is_long=True)
    if not known:
        return Forgotten()
    ids = [each.id for each in known]
    told = await storage.write(lambda connection: put_aside(connection, ids, storage.now()))
    for person_id in sorted({each.person_id for each in known}):
        accounts = await storage.read(partial(identities_of, person_id=person_id))
        texts = [each.text for each in known if each.person_id == person_id]
        await clear_quotes(storage, [each.author for each in accounts], texts)
    await storage.write(lambda connection: drop_facts(connection, ids))
    return Forgotten(facts=told)


def erase_facts(connection: Connection, known: Iterable[Known]) -> None:
    """Remove deleted facts from the prompts of every chat of their persons."""
    for each in known:
        authors = [identity.author for identity in identities_of(connection, each.person_id)]
        erase_quotes(connection, authors, each.text)


async def clear_quotes(storage: Storage, authors: Collection[Author], texts: Collection[str]) -> Mapping[int, Cleared]:
    """Remove texts from the records of all chats of some authors, a little at a time.

    Returns up to where that was done, by chat: the last transaction need only look at what came since.
    """
    context_ids = await storage.read(lambda connection: contexts_of(connection, authors))
    return {each: await clear_records(storage, each, texts) for each in context_ids}


async def clear_records(storage: Storage, context_id: int, texts: Collection[str]) -> Cleared:
    """Remove texts from the records of one chat, a little at a time; return how far that got."""
    here = {"context": context_id}
    cleared = await storage.read(partial(_read_turns, context_id=context_id), is_long=True)
    for some in chunks(texts, _TEXTS_AT_ONCE):
        spellings = [spelling for text in some for spelling in _spellings(text)]
        for column, key in _RECORDS:
            bite = partial(_erase_at, column=column, key=key, spellings=spellings)
            async for _ in bites(storage, _holding(column, key, spellings), here, bite):
                pass
        gone = await storage.read(partial(_long_texts, context_id=context_id, texts=some), is_long=True)
        for chunk in chunks(gone, _ROWS_AT_ONCE):
            await storage.write(partial(_delete_blobs, context_id=context_id, digests=chunk))
    async for _ in bites(storage, _STEPS, here, _break_seals):
        pass
    return cleared


def erase_quotes(
    connection: Connection, authors: Collection[Author], text: str, cleared: Mapping[int, Cleared] = _NOTHING
) -> None:
    """Remove a text from the records of all chats of some authors: prompts and steps."""
    for context_id in contexts_of(connection, authors):
        erase_from_records(connection, context_id, text, cleared.get(context_id))


def erase_from_records(connection: Connection, context_id: int, text: str, cleared: Cleared | None = None) -> None:
    """Remove a text from the records of one chat."""
    turn_ids = None if cleared is None else _turns_since(connection, context_id, cleared)
    for column, key in _RECORDS:
        _erase(connection, column, _is_of(key.table, context_id, turn_ids), _spellings(text))
    _delete_blobs(connection, _long_texts(connection, context_id, [text], turn_ids), context_id)
    of_agent = select(steps.c.id).where(_is_of(steps, context_id, turn_ids))
    for chunk in chunks(connection.execute(of_agent).scalars().all()):
        _break_seals(connection, chunk)


def _read_turns(connection: Connection, context_id: int) -> Cleared:
    of_context = turns.c.context_id == context_id
    newest = connection.execute(select(func.max(turns.c.id)).where(of_context)).scalar_one() or 0
    is_going_on = of_context & (turns.c.status != _DONE)
    going_on = connection.execute(select(turns.c.id).where(is_going_on)).scalars().all()
    return Cleared(sure_up_to(connection, newest), going_on)


def _turns_since(connection: Connection, context_id: int, cleared: Cleared) -> list[int]:
    later = select(turns.c.id).where(turns.c.context_id == context_id, turns.c.id > cleared.up_to)
    return [*cleared.going_on, *connection.execute(later).scalars()]


def _is_of(table: Any, context_id: int, turn_ids: Sequence[int] | None) -> ColumnElement[bool]:
    """Return the condition for the records of a conversation, or of a few of its turns alone."""
    if turn_ids is None:
        return cast("ColumnElement[bool]", table.c.context_id == context_id)
    # A sum, so that no index is chosen by it: it is about few rows, and the conversation may have many.
    is_here = table.c.context_id + 0 == context_id
    if "turn_id" in table.c:
        return cast("ColumnElement[bool]", is_here & table.c.turn_id.in_(turn_ids))
    of_turns = select(steps.c.id).where(steps.c.turn_id.in_(turn_ids))
    return cast("ColumnElement[bool]", is_here & table.c.step_id.in_(of_turns))


def _holding(column: ColumnElement[Any], key: Any, spellings: Sequence[str]) -> Select[int]:
    """Return the query of the next rows of a conversation that may hold a text: of what is compressed, all."""
    table, kept = key.table, _text_of(column)
    is_next = (table.c.context_id == bindparam("context")) & (key > bindparam("after"))
    query = select(key).distinct().where(is_next).order_by(key).limit(_ROWS_AT_ONCE)
    if isinstance(kept.type, Compressed):
        return query
    return query.where(or_(*(func.replace(kept, each, "") != kept for each in spellings)))


def _text_of(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column as the text that it keeps."""
    return column if isinstance(column.type, Compressed) else type_coerce(column, Text)


def _erase_at(
    connection: Connection, ids: Sequence[int], column: Any, key: ColumnElement[int], spellings: Sequence[str]
) -> None:
    _erase(connection, column, key.in_(ids), spellings)


def _erase(connection: Connection, column: Any, which: ColumnElement[bool], spellings: Sequence[str]) -> None:
    """Remove texts from records that hold them: from what they say alone, so that they can be read as before."""
    kept = _text_of(column)
    names = column.table.primary_key.columns
    query = select(*names, kept.label("kept")).where(which, column.is_not(None))
    if not isinstance(kept.type, Compressed):
        find = func.instr if connection.dialect.name == "sqlite" else func.strpos
        query = query.where(or_(*(find(kept, spelling) > 0 for spelling in spellings)))
    for row in connection.execute(query).all():
        left = _without(row.kept, spellings) if any(spelling in row.kept for spelling in spellings) else row.kept
        if left != row.kept:
            is_it = and_(*(name == value for name, value in zip(names, row, strict=False)))
            connection.execute(update(column.table).where(is_it).values({column: literal(left, kept.type)}))


def _without(record: str, spellings: Sequence[str]) -> str:
    """Return a record without texts."""

    def clear(text: str) -> str:
        for spelling in spellings:
            text = text.replace(spelling, _GONE)
        return text

    try:
        parsed = json.loads(record)
    except ValueError:  # it is no record, but what was said
        return clear(record)
    return json.dumps(_cleared(parsed, clear), separators=(",", ":"))


def _cleared(value: Any, clear: Callable[[str], str], *, is_given: bool = False) -> Any:
    """Return a value of a record with what clear leaves of each text; names, digests and numbers stay.

    Args:
        is_given: Whether it is what a tool was given: nothing of that is ours, not even a number or a name.
    """
    if isinstance(value, dict):
        return {
            key if _is_kept_name(key, clear, is_given=is_given) else clear(key): each
            if isinstance(each, str) and not is_given and (key in _KINDS or key.startswith("$"))
            else _cleared(each, clear, is_given=is_given or key == _ARGUMENTS)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_cleared(each, clear, is_given=is_given) for each in value]
    if isinstance(value, str):
        return value if value in _OURS and not is_given else clear(value)
    is_told = is_given and isinstance(value, int | float) and clear(json.dumps(value)) == _GONE
    return _GONE if is_told else value


def _is_kept_name(key: str, clear: Callable[[str], str], *, is_given: bool) -> bool:
    return key.removeprefix("$").isidentifier() and not (is_given and clear(key) == _GONE)


def _spellings(text: str) -> list[str]:
    """Return how a text may stand in a record: as it is, in JSON, and in JSON within JSON, as arguments of tools do."""
    once = [json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)]
    twice = [json.dumps(each, ensure_ascii=is_ascii)[1:-1] for each in once for is_ascii in (True, False)]
    return list(dict.fromkeys([*twice, *once, text]))


def _long_texts(
    connection: Connection, context_id: int, texts: Collection[str], turn_ids: Sequence[int] | None = None
) -> list[str]:
    """Return the long texts of prompts that hold a text; without them, such a prompt says that it was deleted."""
    contents = select(prompt_log.c.content).where(_is_of(prompt_log, context_id, turn_ids))
    digests = {each for content in connection.execute(contents).scalars() for each in _TEXT_BLOB.findall(content)}
    return [each for chunk in chunks(digests) for each in find_holding(connection, context_id, chunk, texts)]


def _delete_blobs(connection: Connection, digests: Collection[str], context_id: int) -> None:
    for chunk in chunks(digests):
        connection.execute(delete(blobs).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(chunk)))


def _break_seals(connection: Connection, ids: Sequence[int]) -> None:
    """Remove what models gave beside their words from steps: nobody can tell what that repeats."""
    for row in connection.execute(select(steps.c.id, steps.c.data).where(steps.c.id.in_(ids))).all():
        record = json.loads(row.data) if _SEAL in row.data else {}
        if record.pop("model_items", None) is not None:
            change = update(steps).where(steps.c.id == row.id)
            connection.execute(change.values(data=json.dumps(record, separators=(",", ":"))))
