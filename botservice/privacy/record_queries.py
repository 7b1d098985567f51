"""Every statement that removes something from the records of an agent's work: prompts, steps, results, deliveries.

Also the queue of what is to be removed: controls in `events`, which go with their chat.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    type_coerce,
    update,
)

from botservice.core.messages import Role
from botservice.core.states import API, EventKind
from botservice.history.message_rendering import FORMS
from botservice.storage.blobs import find_holding
from botservice.storage.database import Connection
from botservice.storage.statements import chunks
from botservice.storage.tables.columns import Compressed
from botservice.storage.tables.conditions import EVENT_IS_UNHANDLED, TURN_IS_DONE, TURN_IS_WHOLE
from botservice.storage.tables.conversations import blobs, deliveries, events, prompt_log, steps, tool_calls, turns
from botservice.storage.tables.waiting import pending_calls

# The queue

CLEANING: Final = EventKind.FORGET.value
"""The kind of a control that asks for a chat's records to be cleaned; 1.0.0 leaves it alone."""
_IS_QUEUED = and_(EVENT_IS_UNHANDLED, events.c.kind == CLEANING)
_QUEUED: Final = select(events.c.id, events.c.raw).where(_IS_QUEUED, events.c.context_id == bindparam("context"))
_CHATS: Final = select(events.c.context_id).where(_IS_QUEUED).distinct().order_by(events.c.context_id)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What is to be removed from the records of a chat.

    Attributes:
        id: Its row in the queue.
        texts: Words that go from every record.
        turns: The first and the last of the turns whose records go whole, once they are over.
    """

    id: int
    texts: Sequence[str] = ()
    turns: tuple[int, int] | None = None


def queue_texts(connection: Connection, context_ids: Collection[int], texts: Collection[str], now: datetime) -> None:
    """Ask for texts to be removed from the records of chats."""
    for context_id in sorted(context_ids) if texts else ():
        _queue(connection, context_id, {"texts": sorted(texts)}, now)


def queue_turns(connection: Connection, context_id: int, first: int, last: int, now: datetime) -> None:
    """Ask for the records of a chat's turns to be deleted, from one turn to another."""
    _queue(connection, context_id, {"turns": [first, last]}, now)


def find_chats_to_clean(connection: Connection) -> list[int]:
    """Return the chats for which something is queued."""
    return list(connection.execute(_CHATS).scalars())


def read_cleanings(connection: Connection, context_id: int) -> list[Cleaning]:
    """Return what is queued for a chat, oldest first."""
    found = []
    for row in connection.execute(_QUEUED.order_by(events.c.id), {"context": context_id}):
        asked = json.loads(row.raw or b"{}")
        turn_ids = asked.get("turns")
        found.append(Cleaning(row.id, asked.get("texts", ()), turn_ids and (turn_ids[0], turn_ids[1])))
    return found


def end_cleaning(connection: Connection, row_id: int) -> None:
    """Take from the queue what is done, with its words."""
    connection.execute(delete(events).where(events.c.id == row_id))


def _queue(connection: Connection, context_id: int, asked: dict[str, Any], now: datetime) -> None:
    values = {"key": f"{CLEANING}:{uuid4()}", "context_id": context_id, "transport": API, "kind": CLEANING}
    raw = json.dumps(asked).encode()
    connection.execute(insert(events).values(**values, order_key=0, raw=raw, received_at=now))


# Whole records

_ROWS_AT_ONCE: Final = 100
_IS_OWED = exists().where(deliveries.c.turn_id == turns.c.id, deliveries.c.finished_at.is_(None))
_IS_KEPT = exists().where(events.c.turn_id == turns.c.id, events.c.raw.is_not(None))
IS_OVER: Final = and_(TURN_IS_DONE, ~_IS_OWED)
_HAS_RECORDS = or_(TURN_IS_WHOLE, turns.c.error.is_not(None), _IS_KEPT)


def find_turns_over(connection: Connection, after: int, context_id: int, *conditions: ColumnElement[bool]) -> list[int]:
    """Return the next turns of a chat that are over and meet conditions."""
    over = select(turns.c.id).where(turns.c.context_id == context_id, turns.c.id > after, IS_OVER, *conditions)
    return list(connection.execute(over.order_by(turns.c.id).limit(_ROWS_AT_ONCE)).scalars())


def find_recorded(connection: Connection, after: int, context_id: int, last: int) -> list[int]:
    """Return the next turns of a chat that are over and have records, up to a last one."""
    return find_turns_over(connection, after, context_id, turns.c.id <= last, _HAS_RECORDS)


def clear_turns(connection: Connection, turn_ids: Sequence[int], now: datetime) -> None:
    """Delete the steps and prompts of turns that are over, what was shown of them, and what platforms sent for them."""
    for chunk in chunks(turn_ids):
        forget_words_of(connection, chunk)
        connection.execute(update(events).where(events.c.turn_id.in_(chunk)).values(raw=None))
        connection.execute(update(turns).where(turns.c.id.in_(chunk)).values(compacted_at=now))


def forget_words_of(connection: Connection, turn_ids: Sequence[int]) -> None:
    """Delete the steps and prompts of a few turns, and what was shown of them; the platforms' ids of messages stay."""
    for table in (steps, prompt_log, pending_calls):
        connection.execute(delete(table).where(table.c.turn_id.in_(turn_ids)))
    erase_shown(connection, turn_ids)
    connection.execute(update(turns).where(turns.c.id.in_(turn_ids)).values(error=None))


def erase_shown(connection: Connection, turn_ids: Sequence[int]) -> None:
    """Forget what was sent to answer a few turns; the platforms' ids of messages stay."""
    shown = update(deliveries).where(deliveries.c.turn_id.in_(turn_ids), deliveries.c.finished_at.is_not(None))
    connection.execute(shown.values(payload={}, buttons=None, error=None))


def is_owed(connection: Connection, turn_id: int) -> bool:
    """Return whether anything of what answers a turn is still to be sent."""
    open_ones = select(deliveries.c.id).where(deliveries.c.turn_id == turn_id, deliveries.c.finished_at.is_(None))
    return connection.execute(open_ones.limit(1)).first() is not None


# Texts in records

_GONE: Final = "[deleted]"
_TEXT_BLOB = re.compile(r'"\$text": ?"([0-9a-f]{64})"')
_KINDS: Final = frozenset({"kind", "role", "type"})  # of records: what stands there is one of ours
_OURS: Final = frozenset(Role) | FORMS.keys()
_ARGUMENTS: Final = "arguments"


@dataclass(frozen=True, slots=True)
class Place:
    """Where words lie.

    Attributes:
        key: By which the rows of the column are found again.
        sealed: What models gave next to their words, which goes: nobody can tell what that repeats.
    """

    column: Any
    key: Any
    sealed: str = ""


PLACES: Final = (
    Place(steps.c.data, steps.c.id, sealed="model_items"),
    Place(prompt_log.c.content, prompt_log.c.turn_id),
    Place(tool_calls.c.result, tool_calls.c.step_id),
    Place(deliveries.c.payload, deliveries.c.id),
)


def find_holding_rows(
    connection: Connection, after: int, context_id: int, place: Place, spellings: Sequence[str]
) -> list[int]:
    """Return the next rows of a chat that may hold a text: of what is compressed, all."""
    key, kept = place.key, _text_of(place.column)
    query = select(key).distinct().where(key.table.c.context_id == context_id, key > after)
    if not isinstance(kept.type, Compressed):
        query = query.where(or_(*(func.replace(kept, each, "") != kept for each in spellings)))
    return list(connection.execute(query.order_by(key).limit(_ROWS_AT_ONCE)).scalars())


def erase_texts(connection: Connection, keys: Sequence[int], place: Place, spellings: Sequence[str]) -> None:
    """Remove texts from records that hold them: from what they say alone, so that they can be read as before."""
    kept, names = _text_of(place.column), place.column.table.primary_key.columns
    # Locked, because a turn that is under way may change its step at this moment.
    query = select(*names, kept.label("kept")).where(place.key.in_(keys), place.column.is_not(None)).with_for_update()
    for row in connection.execute(query).all():
        is_sealed = bool(place.sealed) and f'"{place.sealed}":' in row.kept
        is_told = is_sealed or any(spelling in row.kept for spelling in spellings)
        left = _without(row.kept, spellings, place.sealed) if is_told else row.kept
        if left != row.kept:
            is_it = and_(*(name == value for name, value in zip(names, row, strict=False)))
            connection.execute(update(place.column.table).where(is_it).values({place.column: literal(left, kept.type)}))


def find_long_texts(connection: Connection, context_id: int, texts: Collection[str]) -> list[str]:
    """Return the digests of long texts of prompts that hold a text."""
    contents = select(prompt_log.c.content).where(prompt_log.c.context_id == context_id)
    digests = {each for content in connection.execute(contents).scalars() for each in _TEXT_BLOB.findall(content)}
    return [each for chunk in chunks(digests) for each in find_holding(connection, context_id, chunk, texts)]


def delete_long_texts(connection: Connection, context_id: int, digests: Sequence[str]) -> None:
    """Delete long texts of a chat; without them, such a prompt says that it was deleted."""
    connection.execute(delete(blobs).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(digests)))


def spellings_of(text: str) -> list[str]:
    """Return how a text may stand in a record: as it is, in JSON, and in JSON within JSON, as arguments of tools do."""
    once = [json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)]
    twice = [json.dumps(each, ensure_ascii=is_ascii)[1:-1] for each in once for is_ascii in (True, False)]
    return list(dict.fromkeys([*twice, *once, text]))


def _text_of(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column as the text that it keeps."""
    return column if isinstance(column.type, Compressed) else type_coerce(column, Text)


def _without(record: str, spellings: Sequence[str], sealed: str = "") -> str:
    """Return a record without texts, and without what is sealed in it."""

    def clear(text: str) -> str:
        for spelling in spellings:
            text = text.replace(spelling, _GONE)
        return text

    try:
        parsed = json.loads(record)
    except ValueError:  # it is no record, but what was said
        return clear(record)
    if isinstance(parsed, dict):
        parsed.pop(sealed, None)
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
