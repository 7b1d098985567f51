"""The message beside a found one that makes it understandable: "yes, Tuesday" says nothing without its question."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, select

from botservice.history.questions import SearchHit
from botservice.history.rows import read_messages, select_messages
from botservice.llm.tokens import TokenCounter
from botservice.messages import Message, Role
from botservice.storage.tables import messages

_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")
_SHORT: Final = 40  # characters: what is longer says by itself what it is about
_LONGEST: Final = 600  # characters: a longer neighbour costs more of the prompt than it explains
_ONE_TALK: Final = timedelta(hours=6)


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
    found = []
    for hit in hits:
        neighbour = _neighbour_of(connection, context_id, hit.message, counter)
        if neighbour is not None and neighbour.id not in shown:
            shown.add(neighbour.id)
            found.append(replace(hit, neighbour=neighbour))
        else:
            found.append(hit)
    return found


def _neighbour_of(
    connection: Connection, context_id: int, message: Message, counter: TokenCounter | None
) -> Message | None:
    is_question = _is_question(message)
    if not is_question and len(message.text) > _SHORT:
        return None
    position = select(messages.c.position).where(messages.c.id == message.id).scalar_subquery()
    beside = messages.c.position > position if is_question else messages.c.position < position
    order = messages.c.position.asc() if is_question else messages.c.position.desc()
    query = (
        select_messages(context_id)
        .where(beside, messages.c.role.in_([Role.USER.value, Role.ASSISTANT.value]))
        .order_by(order)
        .limit(1)
    )
    rows = connection.execute(query).all()
    neighbour = read_messages(connection, context_id, rows, counter)[0] if rows else None
    return neighbour if neighbour is not None and _belongs(neighbour, message, is_question=is_question) else None


def _belongs(neighbour: Message, message: Message, *, is_question: bool) -> bool:
    return (
        (neighbour.role, neighbour.author) != (message.role, message.author)
        and _is_question(neighbour) is not is_question
        and 0 < len(neighbour.text) <= _LONGEST
        and abs(neighbour.created_at - message.created_at) <= _ONE_TALK
    )


def _is_question(message: Message) -> bool:
    return message.text.rstrip().endswith(_QUESTION_MARKS)
