"""Every statement of the browser's chat: its list of conversations, searching them, and what a page shows of one."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    type_coerce,
)

from botservice.conversation.context_keys import ContextKeys
from botservice.core.states import Outcome
from botservice.history.queries import OF_CONTEXT
from botservice.storage.tables.conditions import (
    CALL_IS_OPEN,
    DELIVERY_HAS_BUTTONS,
    MESSAGE_IS_OF_A_PERSON,
    MESSAGE_IS_SAID,
    TURN_IS_OPEN,
    TURN_IS_QUEUED,
    TURN_IS_REFUSED,
    TURN_IS_STOPPED,
    TURN_IS_SUSPENDED,
    is_one_of,
)
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, steps, turns
from botservice.storage.tables.services import feedback
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.queries import IS_COMMAND
from botservice.turns.turn import StoredEvent

PAGE: Final = 100  # messages
ASIDE: Final = "aside"
"""What the payload of a message of the service itself begins with, by which it is found."""
_BROWSER: Final = "web"
_TITLE_LETTERS: Final = 300  # of the first message, that a title is made of


# Conversations of a person

_OF_PERSON = select(contexts.c.id).where(contexts.c.only_identity_id == bindparam("identity"))
_NEWEST_FIRST = contexts.c.last_message_id.desc(), contexts.c.id.desc()
_LAST = messages.alias("last")


def _first(column: Any, name: str) -> Any:
    of_context = messages.c.context_id == contexts.c.id
    query = select(column).where(of_context, MESSAGE_IS_OF_A_PERSON).order_by(messages.c.position).limit(1)
    return query.scalar_subquery().label(name)


_LISTED: Final = select(
    contexts.c.id,
    contexts.c.context_keys,
    contexts.c.metadata,
    contexts.c.last_message_id,
    _first(func.substr(messages.c.text, 1, _TITLE_LETTERS), "said"),
    _first(messages.c.attachments, "files"),
    select(_LAST.c.created_at).where(_LAST.c.id == contexts.c.last_message_id).scalar_subquery().label("at"),
)


_KEYS = select(contexts.c.id, contexts.c.context_keys)
_CONTEXT_OF_MESSAGE = _KEYS.join(messages, messages.c.context_id == contexts.c.id).where(
    messages.c.id == bindparam("row")
)
_CONTEXT_OF_DELIVERY = _KEYS.join(deliveries, deliveries.c.context_id == contexts.c.id).where(
    deliveries.c.id == bindparam("row")
)
_ANSWERED_TURN = select(messages.c.answers_turn_id).where(
    messages.c.context_id == bindparam("context"), messages.c.id == bindparam("message")
)


def list_conversations(
    connection: Connection, identity_id: int, before: int | None, limit: int | None
) -> Sequence[Any]:
    """Return the conversations of a person, the newest first.

    Args:
        before: Only those whose last message came before this one.
    """
    chosen = _OF_PERSON.where(contexts.c.last_message_id > 0)
    if before is not None:
        chosen = chosen.where(contexts.c.last_message_id < before)
    if limit is not None:  # chosen before anything is read of them: a database sorts whole rows otherwise
        chosen = chosen.order_by(*_NEWEST_FIRST).limit(limit)
    query = _LISTED.where(contexts.c.id.in_(chosen)).order_by(*_NEWEST_FIRST)
    return connection.execute(query, {"identity": identity_id}).all()


def find_context_of_message(connection: Connection, message_id: int) -> Any | None:
    """Return the id and the keys of the conversation that a message belongs to."""
    return connection.execute(_CONTEXT_OF_MESSAGE, {"row": message_id}).one_or_none()


def find_context_of_delivery(connection: Connection, delivery_id: int) -> Any | None:
    """Return the id and the keys of the conversation that a delivery belongs to."""
    return connection.execute(_CONTEXT_OF_DELIVERY, {"row": delivery_id}).one_or_none()


def find_answered_turn(connection: Connection, context_id: int | None, message_id: int) -> int | None:
    """Return the turn that a message of a conversation answers."""
    sought = {"context": context_id, "message": message_id}
    return connection.execute(_ANSWERED_TURN, sought).scalar_one_or_none()


# Searching them


def find_saying(connection: Connection, identity_id: int, words: Collection[str]) -> dict[int, int]:
    """Return the newest message with all the words of each context of a person, by the context.

    Both databases compare usual spellings fast; to have them compare small letters takes more than twice as long, and
    SQLite knows those of English alone.
    """
    said = select(messages.c.context_id, func.max(messages.c.id).label("message_id")).where(
        messages.c.context_id.in_(_OF_PERSON), MESSAGE_IS_SAID, *(_is_spelt(messages.c.text, word) for word in words)
    )
    rows = connection.execute(said.group_by(messages.c.context_id), {"identity": identity_id})
    return {row.context_id: row.message_id for row in rows}


def list_messages(connection: Connection, message_ids: Collection[int]) -> Sequence[Any]:
    """Return messages as far as searching shows them."""
    columns = messages.c["id", "context_id", "role", "text", "attachments", "created_at"]
    return connection.execute(select(*columns).where(messages.c.id.in_(list(message_ids)))).all()


def _is_spelt(column: ColumnElement[str], word: str, written: Callable[[str], str] = str) -> ColumnElement[bool]:
    """Return the condition for a column to have a word in a usual spelling, as it is written there."""
    spellings = {word, word.lower(), word.upper(), word.capitalize()}
    return or_(*(column.contains(written(each), autoescape=True) for each in spellings))


# What stands where a turn was stopped: the answer as far as it was written, or else the question

_MOST_LOOKED_AT: Final = 50  # turns, for a page that has not looked at any yet

_answers = messages.alias("answers")
_asks = messages.alias("asks")
_HAS_ANSWER: Final = select(_answers.c.id).where(_answers.c.answers_turn_id == turns.c.id).exists()

_TURN_OF_MESSAGE: Final = func.coalesce(
    messages.c.answers_turn_id,
    select(events.c.turn_id).where(events.c.id == messages.c.event_id).correlate(messages).scalar_subquery(),
)
"""The one turn that a message may be about."""
_IS_STOPPED: Final = (
    select(literal(1))
    .where(turns.c.id == _TURN_OF_MESSAGE, TURN_IS_STOPPED, or_(messages.c.answers_turn_id.is_not(None), ~_HAS_ANSWER))
    .correlate(messages)
    .exists()
    .label("is_stopped")
)
"""Whether a message is such a one."""

_RECENT: Final = (
    select(turns.c.id)
    .where(turns.c.context_id == bindparam("context"), turns.c.id >= bindparam("from_turn"))
    .order_by(turns.c.id.desc())
    .limit(_MOST_LOOKED_AT)
)
_UNANSWERED: Final = (
    select(turns.c.id.label("turn_id"), func.max(_asks.c.id).label("message_id"))
    .join(events, events.c.id == _asks.c.event_id)
    .join(turns, turns.c.id == events.c.turn_id)
    .where(turns.c.id.in_(_RECENT), TURN_IS_STOPPED, ~_HAS_ANSWER)
    .group_by(turns.c.id)
    .order_by(turns.c.id)
)


def find_unanswered(connection: Connection, context_id: int, from_turn: int) -> dict[int, int]:
    """Return the questions by their turns that were stopped before the first word, of the newest turns from one on."""
    rows = connection.execute(_UNANSWERED, {"context": context_id, "from_turn": from_turn}).all()
    return {row.turn_id: row.message_id for row in rows}


# Notices: what people were told that is no part of the conversation

_FIRST_SAID: Final = (
    select(events.c.raw).where(events.c.turn_id == turns.c.id).order_by(events.c.id).limit(1).scalar_subquery()
)
_asked = deliveries.alias("asked")
_later = deliveries.alias("later")
# A message that another one stands in the place of, and the time of the one that stood there first.
_IS_REPLACED: Final = (
    select(_later.c.id)
    .where(
        _later.c.turn_id == deliveries.c.turn_id,
        _later.c.replaces == func.coalesce(deliveries.c.replaces, deliveries.c.id),
        _later.c.id > deliveries.c.id,
    )
    .exists()
)
_ASKED_AT: Final = select(_asked.c.created_at).where(_asked.c.id == deliveries.c.replaces).scalar_subquery()
_IS_ASKED: Final = exists().where(events.c.turn_id == turns.c.id, messages.c.event_id == events.c.id)
# Deliveries are deleted with the steps of their turn, or after them: what has none here was never for the agent.
_IS_FOR_AGENT: Final = exists().where(steps.c.turn_id == turns.c.id)
# Of a question that was asked again, in other words or in the same, nothing is left: neither is what was said of it.
_IS_TAKEN_BACK: Final = and_(
    turns.c.outcome.is_not(None), _IS_FOR_AGENT, exists().where(events.c.turn_id == turns.c.id), ~_IS_ASKED
)
# Such turns have no answer: whatever was said in them is a notice.
_IS_UNANSWERED: Final = is_one_of("turns.outcome", Outcome.FAILED, Outcome.REFUSED, Outcome.LISTENED)
_IS_ASIDE: Final = type_coerce(deliveries.c.payload, Text).startswith(f'{{"{ASIDE}":', autoescape=True)

_AT: Final = func.coalesce(_ASKED_AT, deliveries.c.created_at).label("created_at")


def _are_notices(is_meant: Callable[[ColumnElement[int]], ColumnElement[bool]]) -> ColumnElement[bool]:
    """Return the condition for deliveries, with their turns, that pages show as notices.

    Args:
        is_meant: Returns the condition for the context that a column names.
    """
    questions = select(pending_calls.c.delivery_id).where(is_meant(pending_calls.c.context_id))
    return and_(
        is_meant(turns.c.context_id),
        or_(
            _IS_UNANSWERED,
            IS_COMMAND,
            _IS_ASIDE,
            TURN_IS_SUSPENDED,
            func.coalesce(deliveries.c.replaces, deliveries.c.id).in_(questions),
        ),
        ~_IS_REPLACED,
        not_(_IS_TAKEN_BACK),
        deliveries.c.transport == _BROWSER,
    )


_NOTICES: Final = (
    select(
        *(deliveries.c.id, deliveries.c.turn_id, deliveries.c.payload, deliveries.c.buttons, deliveries.c.replaces),
        _AT,
        turns.c.outcome,
        or_(IS_COMMAND, and_(TURN_IS_REFUSED, ~_IS_ASKED)).label("is_command"),
        _FIRST_SAID.label("said"),
    )
    .join(turns, turns.c.id == deliveries.c.turn_id)
    .where(
        _are_notices(lambda context_id: context_id == bindparam("context")),
        turns.c.id >= bindparam("from_turn"),
        deliveries.c.id > bindparam("after"),
        deliveries.c.created_at >= bindparam("since"),
        deliveries.c.created_at < bindparam("until"),
    )
    .order_by(deliveries.c.id)
)


def list_notices(
    connection: Connection, context_id: int, after_id: int, from_turn: int, since: datetime, until: datetime
) -> Sequence[Any]:
    """Return what people were told of a time and of turns from one on, oldest first."""
    sought = {"context": context_id, "from_turn": from_turn, "after": after_id, "since": since, "until": until}
    return connection.execute(_NOTICES, sought).all()


def list_told(connection: Connection, identity_id: int, words: Collection[str]) -> Sequence[Any]:
    """Return the notices in all conversations of a person that may say the words, the newest first.

    Their payloads are JSON in ASCII, in which the database finds what may have the words.
    """
    kept = type_coerce(deliveries.c.payload, Text)
    place = func.coalesce(deliveries.c.replaces, deliveries.c.id).label("place")
    query = (
        select(turns.c.context_id, place, deliveries.c.payload, _AT)
        .join(turns, turns.c.id == deliveries.c.turn_id)
        .where(_are_notices(lambda context_id: context_id.in_(_OF_PERSON)))
        .where(*(_is_spelt(kept, word, lambda text: json.dumps(text)[1:-1]) for word in words))
        .order_by(deliveries.c.id.desc())
    )
    return connection.execute(query, {"identity": identity_id}).all()


# What a page shows of a conversation

_BUTTONS: Final = (
    select(deliveries.c.buttons)
    .where(deliveries.c.turn_id == messages.c.answers_turn_id, DELIVERY_HAS_BUTTONS)
    .order_by(deliveries.c.id.desc())
    .limit(1)
    .scalar_subquery()
    .label("buttons")
)
# A conversation of the browser has one person alone.
_VERDICT: Final = (
    select(feedback.c.verdict)
    .where(feedback.c.turn_id == messages.c.answers_turn_id, feedback.c.platform == _BROWSER)
    .limit(1)
    .scalar_subquery()
    .label("verdict")
)


def _shown_messages(condition: ColumnElement[bool]) -> Select[Any]:
    """Return the query for the newest messages for which a condition holds, and for one more."""
    return (
        OF_CONTEXT.add_columns(
            messages.c.answers_turn_id, _TURN_OF_MESSAGE.label("turn_id"), _BUTTONS, _VERDICT, _IS_STOPPED
        )
        .where(MESSAGE_IS_SAID, condition)
        .order_by(messages.c.position.desc())
        .limit(PAGE + 1)
    )


_CONTEXT: Final = select(contexts.c.id, contexts.c.deletion_version).where(contexts.c.key_hash == bindparam("key_hash"))
AFTER_MESSAGE: Final = _shown_messages(messages.c.id > bindparam("message"))
AFTER_POSITION: Final = _shown_messages(messages.c.position > bindparam("position"))
BEFORE_POSITION: Final = _shown_messages(messages.c.position < bindparam("position"))
_WAITING: Final = (
    select(events.c.id, events.c.key, events.c.raw, events.c.received_at)
    .join(turns, turns.c.id == events.c.turn_id)
    .where(
        turns.c.context_id == bindparam("context"),
        TURN_IS_OPEN,
        TURN_IS_QUEUED,
        turns.c.transport == _BROWSER,
        events.c.id > bindparam("after"),
    )
    .order_by(events.c.id)
)
_FIRST_WAITING: Final = select(func.min(pending_calls.c.turn_id)).where(
    pending_calls.c.context_id == bindparam("context"), CALL_IS_OPEN
)
# Ordered as the partial index is, so that turns that have ended are not walked through.
_OPEN_TURNS: Final = (
    select(turns.c.id).where(turns.c.context_id == bindparam("context"), TURN_IS_OPEN).order_by(turns.c.order_key)
)
_LAST_TURN: Final = select(func.max(turns.c.id)).where(turns.c.context_id == bindparam("context"))


def find_chat_state(connection: Connection, keys: ContextKeys) -> Any | None:
    """Return the id of a chat's context and how often something was deleted in it, or None before the first message."""
    return connection.execute(_CONTEXT, {"key_hash": keys.digest}).one_or_none()


def find_place(connection: Connection, context_id: int, message_id: int) -> Any | None:
    """Return the position of a message of a context, and when it was made."""
    query = select(messages.c.position, messages.c.created_at)
    is_message = messages.c.context_id == context_id, messages.c.id == message_id
    return connection.execute(query.where(*is_message)).one_or_none()


def list_shown(
    connection: Connection, query: Select[Any], context_id: int, **values: int
) -> tuple[Sequence[Any], bool]:
    """Return the newest messages that a query finds, oldest first, and whether there are older ones."""
    rows = connection.execute(query, {"context": context_id, **values}).all()
    return rows[:PAGE][::-1], len(rows) > PAGE


def find_notice_payload(connection: Connection, context_id: int, notice_id: int) -> Mapping[str, Any]:
    """Return what a notice of a context says; nothing where it is gone."""
    query = select(deliveries.c.payload).where(
        deliveries.c.id == notice_id, deliveries.c.context_id == context_id, deliveries.c.transport == _BROWSER
    )
    return connection.execute(query).scalar_one_or_none() or {}


def list_waiting(connection: Connection, context_id: int, after_id: int) -> list[StoredEvent]:
    """Return what was accepted and is not in the history yet."""
    rows = connection.execute(_WAITING, {"context": context_id, "after": after_id}).all()
    return [StoredEvent(row.id, row.key, row.raw or b"", row.received_at) for row in rows]


def find_first_waiting(connection: Connection, context_id: int) -> int | None:
    """Return the first turn that waits with a call: what it asks may still become what was decided."""
    found: int | None = connection.execute(_FIRST_WAITING, {"context": context_id}).scalar_one()
    return found


def find_progress(connection: Connection, context_id: int) -> tuple[int | None, int]:
    """Return the first turn that is open, and the number from which there is none yet."""
    open_turns = connection.execute(_OPEN_TURNS, {"context": context_id})
    last = connection.execute(_LAST_TURN, {"context": context_id})
    return min((row.id for row in open_turns.all()), default=None), (last.scalar_one() or 0) + 1
