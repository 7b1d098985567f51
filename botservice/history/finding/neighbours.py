"""The message beside a found one that makes it understandable: "yes, Tuesday" says nothing without its question."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, select

from botservice.history.finding.questions import SearchHit
from botservice.history.ranking.documents import is_question
from botservice.history.rows import COLUMNS, IS_SAID, read_messages
from botservice.llm.tokens import TokenCounter
from botservice.messages import Author, Message
from botservice.storage.references import full_text_of
from botservice.storage.statements import execute
from botservice.storage.tables.conversations import messages

_SHORT: Final = 40  # characters: what is longer says by itself what it is about
_LONGEST: Final = 600  # characters: a longer neighbour costs more of the prompt than it explains
_ONE_TALK: Final = timedelta(hours=6)
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
) -> list[SearchHit]:
    """Return hits with the question before a short answer, and the answer after a question, where it is not shown yet.

    Args:
        shown: Ids of the messages that stand in the prompt anyway.
    """
    shown = {*shown, *(hit.message.id for hit in hits)}
    beside = _find_beside(connection, context_id, hits, counter)
    found = []
    for hit in hits:
        neighbour = beside.get(hit.message.id)
        if neighbour is not None and neighbour.id not in shown:
            shown.add(neighbour.id)
            found.append(SearchHit(hit.message, hit.score, neighbour, hit.position))
        else:
            found.append(hit)
    return found


def _find_beside(
    connection: Connection, context_id: int, found: Sequence[SearchHit], counter: TokenCounter | None
) -> dict[int | None, Message]:
    """Return for each message that needs one the message that makes it readable, by its id."""
    left = [(hit, step) for hit in found if (step := _step(hit.message))]
    beside: list[tuple[SearchHit, Any]] = []
    for far in range(1, _NEAR):
        if not left:
            break
        wanted = sorted({hit.position + step * far for hit, step in left})
        rows = execute(connection, _AT, {"context": context_id, "positions": wanted}).all()
        at = {row.position: row for row in rows}
        there = [(hit, step, at.get(hit.position + step * far)) for hit, step in left]
        beside += [(hit, row) for hit, step, row in there if row is not None and _belongs(row, hit.message, step)]
        left = [(hit, step) for hit, step, row in there if row is None]
    read = read_messages(connection, context_id, [row for _, row in beside], counter)
    return {hit.message.id: message for (hit, _), message in zip(beside, read, strict=True)}


def _step(message: Message) -> int:
    """Return where the message that belongs to one is: after a question, before a short answer; 0 for nowhere."""
    said = message.full_text
    if is_question(said):
        return 1
    return -1 if len(said) <= _SHORT else 0


def _belongs(row: Row[*tuple[Any, ...]], message: Message, step: int) -> bool:
    said = full_text_of(row)
    return (
        0 < len(said) <= _LONGEST
        and is_question(said) is (step < 0)
        and abs(row.created_at - message.created_at) <= _ONE_TALK
        and (row.role != message.role or not _is_of_same(row, message.author or Author()))
    )


def _is_of_same(row: Row[*tuple[Any, ...]], author: Author) -> bool:
    return (row.author_platform, row.author_id, row.author_name) == (author.platform, author.id, author.name)
