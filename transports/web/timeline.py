"""Reading what a page shows of a session from storage: messages, what waits, and what could not be answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select

from botservice.conversation.context import ContextKeys
from botservice.core.messages import Attachment
from botservice.history.rows import IS_SAID, OF_CONTEXT, find_position, read_messages, select_messages
from botservice.storage.blobs import read_blobs
from botservice.storage.tables.conditions import CALL_IS_OPEN, TURN_IS_OPEN
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, turns
from botservice.storage.tables.slack import feedback
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.turn import StoredEvent, TurnStatus
from transports.web.inbound_events import NAME, context_keys, read_event
from transports.web.notices import read_notices
from transports.web.outbound import Shown, iso, show_message
from transports.web.stopped_turns import IS_STOPPED, TURN_OF_MESSAGE, find_unanswered
from transports.web.tool_cards import read_cards

PAGE: Final = 100  # messages


_BUTTONS: Final = (
    select(deliveries.c.buttons)
    .where(deliveries.c.turn_id == messages.c.answers_turn_id, deliveries.c.buttons.is_not(None))
    .order_by(deliveries.c.id.desc())
    .limit(1)
    .scalar_subquery()
    .label("buttons")
)
# A conversation of the browser has one person alone.
_VERDICT: Final = (
    select(feedback.c.verdict)
    .where(feedback.c.turn_id == messages.c.answers_turn_id, feedback.c.platform == NAME)
    .limit(1)
    .scalar_subquery()
    .label("verdict")
)
_BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)


def _shown_messages(condition: ColumnElement[bool]) -> Select[Any]:
    """Return the query for the newest messages for which a condition holds, and for one more."""
    return (
        OF_CONTEXT.add_columns(
            messages.c.answers_turn_id, TURN_OF_MESSAGE.label("turn_id"), _BUTTONS, _VERDICT, IS_STOPPED
        )
        .where(IS_SAID, condition)
        .order_by(messages.c.position.desc())
        .limit(PAGE + 1)
    )


_CONTEXT: Final = select(contexts.c.id, contexts.c.deletion_version).where(contexts.c.key_hash == bindparam("key_hash"))
_AFTER_MESSAGE: Final = _shown_messages(messages.c.id > bindparam("message"))
_AFTER_POSITION: Final = _shown_messages(messages.c.position > bindparam("position"))
_BEFORE_POSITION: Final = _shown_messages(messages.c.position < bindparam("position"))
_WAITING: Final = (
    select(events.c.id, events.c.key, events.c.raw, events.c.received_at)
    .join(turns, turns.c.id == events.c.turn_id)
    .where(
        turns.c.context_id == bindparam("context"),
        TURN_IS_OPEN,
        turns.c.status == TurnStatus.QUEUED.value,
        turns.c.transport == NAME,
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


@dataclass(frozen=True, slots=True)
class TimelineCursor:
    """How much of a session a page has."""

    message_id: int = 0
    notice_id: int = 0
    version: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what `str` wrote; a message's id alone will do, and anything else is the beginning."""
        parts = text.strip().split(".")
        if len(parts) > 3 or not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in parts):
            return cls()
        return cls(*(int(part) for part in parts))

    def __str__(self) -> str:
        return f"{self.message_id}.{self.notice_id}.{self.version or 0}"


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """What a stream has read already, so that it does not read it again and again.

    Attributes:
        event_id: The last event that waited.
        turn_id: Every turn before it had ended and was read.
    """

    event_id: int = 0
    turn_id: int = 0


@dataclass(frozen=True, slots=True)
class RunSpan:
    """A run of the conversation, oldest first.

    Attributes:
        has_earlier: Whether there are messages before the first one.
        notices: What people were told besides.
    """

    messages: list[Shown] = field(default_factory=list)
    notices: list[Shown] = field(default_factory=list)
    has_earlier: bool = False


@dataclass(frozen=True, slots=True)
class News:
    """What is stored after a cursor.

    Attributes:
        begins_anew: Whether what the page shows may be gone, or is too far back: it starts with this.
        waiting: What was accepted and is not in the history yet.
        is_working: Whether a turn waits or runs.
        unanswered: Questions whose turn was stopped before the first word, as far as the page may not know it, with the
            calls of that turn.
    """

    cursor: TimelineCursor = TimelineCursor()
    span: RunSpan = field(default_factory=RunSpan)
    begins_anew: bool = False
    waiting: list[Shown] = field(default_factory=list)
    seen: StreamPosition = StreamPosition()
    is_working: bool = False
    unanswered: list[Shown] = field(default_factory=list)


def read_news(connection: Connection, session: str, cursor: TimelineCursor, seen: StreamPosition) -> News:
    """Return what a session's page does not show yet."""
    context = _find(connection, session)
    if context is None:
        return News(begins_anew=cursor.message_id > 0)
    version = context.deletion_version
    begins_anew = cursor.message_id > 0 and cursor.version not in (None, version)
    since = TimelineCursor() if begins_anew else cursor
    span = _read_span(connection, context.id, since, 0 if begins_anew else seen.turn_id)
    if span.has_earlier and since.message_id > 0:
        begins_anew, since = True, TimelineCursor()
        span = _read_span(connection, context.id, since, 0)
    waiting, event_id = _read_waiting(connection, context.id, 0 if begins_anew else seen.event_id)
    first_open, next_turn = _read_progress(connection, context.id)
    first_waiting = _read_first_waiting(connection, context.id)
    return News(
        TimelineCursor(
            span.messages[-1]["id"] if span.messages else since.message_id,
            span.notices[-1]["id"] if span.notices else since.notice_id,
            version,
        ),
        span,
        begins_anew,
        waiting,
        StreamPosition(event_id, min(each for each in (first_open, first_waiting, next_turn) if each is not None)),
        is_working=first_open is not None,
        unanswered=_read_unanswered(connection, context.id, seen.turn_id),
    )


def read_earlier(connection: Connection, session: str, before_id: int) -> RunSpan:
    """Return the messages before one."""
    context = _find(connection, session)
    if context is None:
        return RunSpan()
    query = select(messages.c.position, messages.c.created_at)
    before = connection.execute(
        query.where(messages.c.context_id == context.id, messages.c.id == before_id)
    ).one_or_none()
    if before is None:
        return RunSpan()
    rows, has_earlier = _read_rows(connection, _BEFORE_POSITION, context.id, position=before.position)
    begin = rows[0].created_at if has_earlier else _BEGINNING
    notices = read_notices(connection, context.id, since=begin, until=before.created_at)
    return RunSpan(_show(connection, context.id, rows), notices, has_earlier)


def read_file(connection: Connection, session: str, message_id: int, index: int) -> Attachment | None:
    """Return a file of a message of this session."""
    context = _find(connection, session)
    if context is None:
        return None
    rows = connection.execute(select_messages(context.id).where(messages.c.id == message_id)).all()
    found = read_messages(connection, context.id, rows)
    return found[0].attachments[index] if found and index < len(found[0].attachments) else None


def read_notice_file(connection: Connection, session: str, notice_id: int, index: int) -> Attachment | None:
    """Return a file of what this session was told that is no part of the conversation, such as an export."""
    context = _find(connection, session)
    if context is None:
        return None
    query = select(deliveries.c.payload).where(
        deliveries.c.id == notice_id, deliveries.c.context_id == context.id, deliveries.c.transport == NAME
    )
    files = (connection.execute(query).scalar_one_or_none() or {}).get("files", ())
    if index >= len(files):
        return None
    file = files[index]
    data = read_blobs(connection, context.id, [file["sha256"]]).get(file["sha256"])
    return None if data is None else Attachment(file["mime_type"], file["name"], data=data)


def _find(connection: Connection, session: str) -> Any | None:
    sought = {"key_hash": ContextKeys.of(context_keys(session)).digest}
    return connection.execute(_CONTEXT, sought).one_or_none()


def _read_span(connection: Connection, context_id: int, since: TimelineCursor, from_turn: int) -> RunSpan:
    # What came after a message is sought by its position, so that only that is walked through.
    position = find_position(connection, context_id, since.message_id) if since.message_id else 0
    if position is None:
        rows, has_earlier = _read_rows(connection, _AFTER_MESSAGE, context_id, message=since.message_id)
    else:
        rows, has_earlier = _read_rows(connection, _AFTER_POSITION, context_id, position=position)
    begin = rows[0].created_at if has_earlier else _BEGINNING
    notices = read_notices(connection, context_id, since.notice_id, from_turn, since=begin)
    return RunSpan(_show(connection, context_id, rows), notices, has_earlier)


def _show(connection: Connection, context_id: int, rows: Sequence[Any]) -> list[Shown]:
    """Return rows of messages for the page; an answer, or a question without one, with the calls of its turn."""
    turn_ids = [row.turn_id if row.is_stopped else row.answers_turn_id for row in rows]
    cards = read_cards(connection, context_id, turn_ids)
    return [show_message(row) | {"calls": cards.get(each, [])} for row, each in zip(rows, turn_ids, strict=True)]


def _read_rows(
    connection: Connection, query: Select[Any], context_id: int, **values: int
) -> tuple[Sequence[Any], bool]:
    """Return the newest messages that a query finds, oldest first, and whether there are older ones."""
    rows = connection.execute(query, {"context": context_id, **values}).all()
    return rows[:PAGE][::-1], len(rows) > PAGE


def _read_waiting(connection: Connection, context_id: int, after_id: int) -> tuple[list[Shown], int]:
    rows = connection.execute(_WAITING, {"context": context_id, "after": after_id}).all()
    found = [StoredEvent(row.id, row.key, row.raw or b"", row.received_at) for row in rows]
    waiting = [shown for event in found if (shown := _show_waiting(event)) is not None]
    return waiting, found[-1].id if found else after_id


def _show_waiting(event: StoredEvent) -> Shown | None:
    message = read_event(event)
    if message is None:
        return None
    files = len(message.attachments)
    return {"client_id": message.external_id, "text": message.text, "at": iso(event.received_at), "files": files}


def _read_unanswered(connection: Connection, context_id: int, from_turn: int) -> list[Shown]:
    questions = find_unanswered(connection, context_id, from_turn)
    cards = read_cards(connection, context_id, questions)
    return [{"id": message_id, "calls": cards.get(turn_id, [])} for turn_id, message_id in questions.items()]


def _read_first_waiting(connection: Connection, context_id: int) -> int | None:
    """Return the first turn that waits with a call: what it asks may still become what was decided."""
    found: int | None = connection.execute(_FIRST_WAITING, {"context": context_id}).scalar_one()
    return found


def _read_progress(connection: Connection, context_id: int) -> tuple[int | None, int]:
    """Return the first turn that is open, and the number from which there is none yet."""
    open_turns = connection.execute(_OPEN_TURNS, {"context": context_id})
    last = connection.execute(_LAST_TURN, {"context": context_id})
    return min((row.id for row in open_turns.all()), default=None), (last.scalar_one() or 0) + 1
