"""The message beside a found one that makes it understandable: "yes, Tuesday" says nothing without its question."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from sqlalchemy import bindparam, select

from botservice.core.messages import Author, Message
from botservice.history.questions import SearchHit
from botservice.history.recent import Kept, Recent
from botservice.history.rows import COLUMNS, IS_SAID, read_message, read_messages
from botservice.history.window import CONVERSATION
from botservice.llm.tokens import TokenCounter
from botservice.search.documents import is_question
from botservice.storage.database import Connection
from botservice.storage.tables.conversations import messages

_SHORT: Final = 40  # characters: what is longer says by itself what it is about
_LONGEST: Final = 600  # characters: a longer neighbour costs more of the prompt than it explains
_ONE_TALK: Final = timedelta(hours=6)
_NOBODY: Final = Author()
_NEAR: Final = 4  # positions: what stands between two that belong together are notes, or gaps of what was deleted

_AT = select(*COLUMNS).where(
    messages.c.context_id == bindparam("context"),
    messages.c.position.in_(bindparam("positions", expanding=True)),
    IS_SAID,
)


def with_neighbours(
    connection: Connection,
    context_id: int,
    hits: Sequence[SearchHit],
    *,
    shown: Collection[int | None],
    counter: TokenCounter | None = None,
    recent: Recent | None = None,
) -> list[SearchHit]:
    """Return hits with the question before a short answer, and the answer after a question, where it is not shown yet.

    Args:
        shown: Ids of the messages that stand in the prompt anyway.
        recent: What is known of the chat without reading.
    """
    shown = {*shown, *(hit.message.id for hit in hits)}
    beside = _find_beside(connection, context_id, hits, counter, recent)
    found = []
    for hit in hits:
        neighbour = beside.get(hit.message.id)
        if neighbour is not None and neighbour.id not in shown:
            shown.add(neighbour.id)
            found.append(replace(hit, neighbour=neighbour))
        else:
            found.append(hit)
    return found


def _find_beside(
    connection: Connection,
    context_id: int,
    found: Sequence[SearchHit],
    counter: TokenCounter | None,
    recent: Recent | None,
) -> dict[int | None, Message]:
    """Return for each message that needs one the message that makes it readable, by its id."""
    left = [(hit, step) for hit in found if (step := _step(hit.message))]
    beside: list[tuple[SearchHit, Kept]] = []
    for far in range(1, _NEAR):
        if not left:
            break
        wanted = {hit.position + step * far for hit, step in left}
        at = _said_at(connection, context_id, wanted, recent)
        there = [(hit, step, at.get(hit.position + step * far)) for hit, step in left]
        beside += [(hit, each) for hit, step, each in there if each is not None and _belongs(each, hit.message, step)]
        left = [(hit, step) for hit, step, each in there if each is None]
    rows = [each for _, each in beside if not isinstance(each, Message)]
    read = {each.id: each for each in read_messages(connection, context_id, rows, counter)} if rows else {}
    return {hit.message.id: each if isinstance(each, Message) else read[each.id] for hit, each in beside}


def _said_at(connection: Connection, context_id: int, positions: set[int], recent: Recent | None) -> dict[int, Kept]:
    """Return what people and the assistant said at some positions."""
    after, at = (0, {}) if recent is None else (recent.after, recent.at)
    unknown = sorted(positions) if recent is None else sorted(each for each in positions if 0 < each <= after)
    found = {each: at[each] for each in positions if each in at and at[each].role in CONVERSATION}
    if unknown:
        rows = connection.execute(_AT, {"context": context_id, "positions": unknown}).all()
        found |= {row.position: row for row in rows}
    return found


def _step(message: Message) -> int:
    """Return where the message that belongs to one is: after a question, before a short answer; 0 for nowhere."""
    said = message.full_text
    if is_question(said):
        return 1
    return -1 if len(said) <= _SHORT else 0


def _belongs(kept: Kept, message: Message, step: int) -> bool:
    beside = kept if isinstance(kept, Message) else read_message(kept, None, None)
    said = beside.full_text
    return (
        0 < len(said) <= _LONGEST
        and is_question(said) is (step < 0)
        and abs(beside.created_at - message.created_at) <= _ONE_TALK
        and (beside.role is not message.role or (beside.author or _NOBODY) != (message.author or _NOBODY))
    )
