"""The end of a turn: one transaction with the answer in the history, the turn done, and what has to be delivered."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from botservice.agents import FinishAction
from botservice.history.chat_history import count_text
from botservice.history.rows import NewMessage, insert_message
from botservice.llm.chat import FinishReason
from botservice.memory.readable import readable
from botservice.messages import Button, Message, Role
from botservice.storage.statements import interleave
from botservice.texts import in_language
from botservice.turns.outbox import begin_deliveries, write_deliveries
from botservice.turns.records import finish_turn
from botservice.turns.transport import Payload
from botservice.turns.turn import Delivery, Outcome, Turn


async def new_answer(turn_id: int, action: FinishAction, now: datetime, language: str | None = None) -> NewMessage:
    """Return the assistant's message that answers a turn; one that was cut off says so."""
    text = with_ending(as_text(action.output), action.finish_reason, language)
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
    shown = Message(None, new.role, new.text, new.attachments, new.author, new.created_at, buttons=tuple(buttons))
    return replace(shown, language=language)


def write_answer(
    connection: Connection, turn: Turn, new: NewMessage, payloads: Sequence[Payload], now: datetime
) -> tuple[Message, Delivery | None]:
    """Store an answer and end its turn; return it with the message that is to be sent now, if one is."""
    message, begun = interleave(
        partial(insert_message, connection, turn.context_id, new),
        partial(begin_deliveries, connection, turn, payloads, now),
    )
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
    """Return what an agent or a final tool gave as text, word for word where it is one."""
    if isinstance(output, str):
        return output
    return "" if output is None else readable(output)


def with_ending(text: str, finish_reason: str | None, language: str | None) -> str:
    """Return an answer with a line about its end, where it is not whole."""
    has_text = bool(text.strip())
    if finish_reason == FinishReason.LENGTH:
        line = in_language("answer.cut" if has_text else "answer.nothing_left", language)
        return f"{text}\n\n{line}" if has_text else line
    if finish_reason == FinishReason.REFUSAL and not has_text:
        return in_language("answer.refused", language)
    return text
