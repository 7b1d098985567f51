"""The questions of tools that wait for a person: which of them a message answers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from botservice.agent.tool_questions import ToolQuestions
from botservice.core.messages import Author, CommandCall, InboundMessage
from botservice.core.states import PendingKind
from botservice.storage.database import Connection
from botservice.turns.call_queries import find_call, find_open, find_sent_as, store_exchange
from botservice.turns.decisions import is_own
from botservice.turns.tool_answers import ANSWER, WrongAnswer, has_buttons, read_answer
from botservice.turns.waiting_calls import WaitingCall


def find_questions(
    connection: Connection, context_id: int, author: Author | None, now: datetime
) -> list[tuple[WaitingCall, ToolQuestions]]:
    """Return the questions of a context that wait for a person's own answer, oldest first."""
    return [
        (each, each.exchange)
        for each in find_open(connection, context_id)
        if each.kind is PendingKind.QUESTION
        and each.exchange is not None
        and each.is_waiting
        and each.expires_at > now
        and is_own(connection, each, author)
    ]


def as_answer(connection: Connection, context_id: int, message: InboundMessage, at: datetime) -> InboundMessage:
    """Return a message that answers a question as the command that does; any other message as it is.

    It answers the newest question that its author was shown before, or the one that it replies to. Where there are
    buttons, other words are for the agent, unless they reply to the question.
    """
    is_plain = message.is_addressed and message.command is None and message.is_all_own and not message.unread
    if not is_plain or message.only_tools is not None or not message.text.strip():
        return message
    for call, exchange in reversed(find_questions(connection, context_id, message.author, at)):
        is_reply = message.replies_to is not None
        if call.told_at is None or call.told_at > at:
            continue
        if is_reply and message.replies_to != find_sent_as(connection, call):
            continue
        if not is_reply and not _is_meant(exchange, message):
            continue
        return replace(message, command=CommandCall(ANSWER, f"{call.id}.{exchange.step} ={message.text}"))
    return message


def _is_meant(exchange: ToolQuestions, message: InboundMessage) -> bool:
    """Return whether words that reply to nothing may be meant as an answer: one that is written, or a label."""
    if not has_buttons(exchange.field):
        return True
    try:
        read_answer(exchange.field, message.text, message.language)
    except WrongAnswer:
        return False
    return True


def store_answer(
    connection: Connection, call: WaitingCall, before: int, exchange: ToolQuestions, now: datetime
) -> None:
    """Store what a person has answered, unless something else has come of the question meanwhile.

    Args:
        before: The step of the exchange that they answered.
    """
    stored = find_call(connection, call.context_id, call.id)
    if stored is not None and stored.exchange is not None and stored.exchange.step == before:
        store_exchange(connection, stored, exchange, now)


def choose_question(
    found: Sequence[tuple[WaitingCall, ToolQuestions]], number: int | None
) -> tuple[WaitingCall, ToolQuestions] | None:
    """Return the question of a number, or the newest."""
    return next((each for each in reversed(found) if number in (None, each[0].id)), None)
