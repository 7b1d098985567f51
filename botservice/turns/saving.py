"""Storing the changes of a turn's memory and metadata, and its answer, under its claim."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, select

from botservice.agent.agent import FinishAction
from botservice.conversation.context import AgentContext
from botservice.conversation.items import MemoryItem
from botservice.conversation.queries import write_metadata
from botservice.conversation.readable import readable
from botservice.core.errors import ClaimLost
from botservice.core.messages import Button, Message, Role, is_blank
from botservice.core.quoting import quote_in_markdown
from botservice.history.chat_history import count_text
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.llm.chat import FinishReason
from botservice.storage.claims import Claim
from botservice.storage.tables.conversations import turns
from botservice.texts import in_language
from botservice.turns.outbox import begin_deliveries, write_deliveries
from botservice.turns.records import finish_turn
from botservice.turns.transport import Payload
from botservice.turns.turn import Delivery, Outcome, Turn

T = TypeVar("T")
Also = Callable[[Connection, Sequence[int]], T]
"""Writes something in the same transaction; takes the ids of the rows that steps were added as."""

# Locked, so that forgetting it at this moment waits: the turn goes first, and then what it wrote.
_TURN = select(turns.c.id).where(turns.c.id == bindparam("turn")).with_for_update(read=True, key_share=True)


class Saver:
    """Stores the changed steps and metadata of one context."""

    def __init__(self, context: AgentContext, claim: Claim) -> None:
        self._context = context
        self._claim = claim

    async def save(self, opened: MemoryItem | None = None) -> None:
        """Store what changed; nothing happens where nothing did.

        Args:
            opened: A step that is in no list yet, because its calls have not all ended.

        Raises:
            ClaimLost: another process works on the context.
            InvalidField: something that is no item was put among the steps, or no JSON into the metadata.
        """
        await self._write(None, None, opened)

    async def save_with(
        self, also: Also[T], then: Callable[[T], object] | None = None, opened: MemoryItem | None = None
    ) -> None:
        """Store what changed in one transaction with what `also` writes.

        Args:
            then: Called with what `also` returned as soon as it is committed, also where the caller was cancelled.
        """
        await self._write(also, then, opened)

    async def _write(self, also: Also[T] | None, then: Callable[[T], object] | None, opened: MemoryItem | None) -> None:
        context = self._context
        changes = context.records.changes(context.memory.steps, opened)
        metadata = context.changed_metadata()
        if not changes and metadata is None and also is None:
            return

        def operation(connection: Connection) -> tuple[list[int], T | None]:
            _check_turn(connection, context.turn_id)
            row_ids = context.records.apply(connection, changes)
            if metadata is not None:
                write_metadata(connection, context.id, metadata)
            return row_ids, None if also is None else also(connection, row_ids)

        def confirm(written: tuple[list[int], Any]) -> None:
            row_ids, result = written
            context.records.confirm(changes, row_ids)
            if metadata is not None:
                context.confirm_metadata(metadata)
            if then is not None:
                then(result)

        writing = context.storage.issue(operation, fence=self._claim, sort_key=(context.id,), is_waited_for=True)
        try:
            written = await writing
        except asyncio.CancelledError:
            confirm(writing.result())  # a write that was issued happens: know of it before going away
            raise
        confirm(written)


def _check_turn(connection: Connection, turn_id: int | None) -> None:
    """Return if the turn that is worked on still exists: what was forgotten meanwhile must not be written back.

    Raises:
        ClaimLost: it does not.
    """
    if turn_id is not None and connection.execute(_TURN, {"turn": turn_id}).one_or_none() is None:
        raise ClaimLost(f"turn {turn_id} was forgotten while it was worked on")


async def new_answer(turn_id: int, action: FinishAction, now: datetime, language: str | None = None) -> NewMessage:
    """Return the assistant's message that answers a turn; one that was cut off says so."""
    text = with_ending(as_text(action.output), action.finish_reason, language)
    if action.not_seen:
        picture = in_language("answer.picture", language)
        names = ", ".join(quote_in_markdown(name, picture) for name in action.not_seen)
        text = "\n\n".join((text, in_language("answer.not_seen", language, names=names)))
    if action.is_without_earlier:
        text = "\n\n".join((text, in_language("answer.without_earlier", language)))
    counter, count = await count_text(text)
    return NewMessage(
        role=Role.ASSISTANT,
        text=text,
        created_at=now,
        attachments=tuple(action.attachments),
        token_count=count,
        token_encoding=counter.name,
        answers_turn_id=turn_id,
    )


def preview(new: NewMessage, buttons: Sequence[Button] = (), language: str | None = None) -> Message:
    """Return the message as it will be once it is stored, for a transport to plan with."""
    said = (None, new.role, new.text, new.attachments, new.author, new.created_at)
    return Message(*said, buttons=tuple(buttons), language=language)


def write_answer(
    connection: Connection, turn: Turn, new: NewMessage, payloads: Sequence[Payload], now: datetime
) -> tuple[Message, Delivery | None]:
    """Store an answer and end its turn; return it with the message that is to be sent now, if one is."""
    message = insert_message(connection, turn.context_id, new)
    begun = begin_deliveries(connection, turn, payloads, now)
    finish_turn(connection, turn.id, now, Outcome.ANSWERED)
    return message, begun


def write_stopped(
    connection: Connection, turn: Turn, new: NewMessage | None, payloads: Sequence[Payload], now: datetime
) -> None:
    """End a turn that was stopped; new is what had been said by then."""
    if new is not None:
        insert_message(connection, turn.context_id, new)
    write_deliveries(connection, turn, payloads, now)
    finish_turn(connection, turn.id, now, Outcome.STOPPED)


def as_text(output: object) -> str:
    """Return the output of an agent or a final tool as text; a text stays as it is."""
    if isinstance(output, str):
        return output
    return "" if output is None else readable(output)


def with_ending(text: str, finish_reason: str | None, language: str | None) -> str:
    """Return an answer with a line about its end, where it is not whole."""
    has_text = not is_blank(text)
    if finish_reason == FinishReason.LENGTH:
        line = in_language("answer.cut" if has_text else "answer.nothing_left", language)
        return f"{text}\n\n{line}" if has_text else line
    if finish_reason in (FinishReason.REFUSAL, FinishReason.FILTERED) and not has_text:
        return in_language("answer.refused", language)
    if finish_reason == FinishReason.FILTERED:
        return "\n\n".join((text, in_language("answer.filtered", language)))
    return text
