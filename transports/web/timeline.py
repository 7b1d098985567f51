"""What a page shows of a session, read from storage: messages, notices, what waits, and what could not be answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

from botservice.conversation.context_keys import ContextKeys
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Attachment
from botservice.core.states import Outcome
from botservice.history.queries import find_message, find_position
from botservice.storage.blobs import read_blobs
from botservice.storage.database import Connection
from botservice.turns.browser_chat_queries import (
    AFTER_MESSAGE,
    AFTER_POSITION,
    ASIDE,
    BEFORE_POSITION,
    find_chat_state,
    find_context_of_delivery,
    find_context_of_message,
    find_first_waiting,
    find_notice_payload,
    find_place,
    find_progress,
    find_unanswered,
    list_notices,
    list_shown,
    list_waiting,
)
from botservice.turns.commands import parse_command
from botservice.turns.turn import StoredEvent
from transports.web.inbound_events import context_keys, is_mine, read_event, read_post
from transports.web.markdown import render_formatted
from transports.web.outbound import Card, Shown, iso, read_cards, show_buttons, show_message

_END: Final = datetime(9999, 12, 31, tzinfo=UTC)
_BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)


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
    context = find_chat_state(connection, ContextKeys.of(context_keys(session)))
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
    first_open, next_turn = find_progress(connection, context.id)
    first_waiting = find_first_waiting(connection, context.id)
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
    context = find_chat_state(connection, ContextKeys.of(context_keys(session)))
    if context is None:
        return RunSpan()
    before = find_place(connection, context.id, before_id)
    if before is None:
        return RunSpan()
    rows, has_earlier = list_shown(connection, BEFORE_POSITION, context.id, position=before.position)
    begin = rows[0].created_at if has_earlier else _BEGINNING
    notices = read_notices(connection, context.id, since=begin, until=before.created_at)
    return RunSpan(_show(connection, context.id, rows), notices, has_earlier)


def read_file(connection: Connection, session: str, message_id: int, index: int) -> Attachment | None:
    """Return a file of a message in any conversation of a session."""
    context = find_context_of_message(connection, message_id)
    if context is None or not is_mine(context.context_keys, session):
        return None
    found = find_message(connection, context.id, message_id)
    return found.attachments[index] if found is not None and index < len(found.attachments) else None


def read_notice_file(connection: Connection, session: str, notice_id: int, index: int) -> Attachment | None:
    """Return a file of what a session was told that is no part of a conversation, such as an export."""
    context = find_context_of_delivery(connection, notice_id)
    if context is None or not is_mine(context.context_keys, session):
        return None
    files = find_notice_payload(connection, context.id, notice_id).get("files", ())
    if index >= len(files):
        return None
    file = files[index]
    data = read_blobs(connection, context.id, [file["sha256"]]).get(file["sha256"])
    return None if data is None else Attachment(file["mime_type"], file["name"], data=data)


def _read_span(connection: Connection, context_id: int, since: TimelineCursor, from_turn: int) -> RunSpan:
    # What came after a message is sought by its position, so that only that is walked through.
    position = find_position(connection, context_id, since.message_id) if since.message_id else 0
    if position is None:
        rows, has_earlier = list_shown(connection, AFTER_MESSAGE, context_id, message=since.message_id)
    else:
        rows, has_earlier = list_shown(connection, AFTER_POSITION, context_id, position=position)
    begin = rows[0].created_at if has_earlier else _BEGINNING
    notices = read_notices(connection, context_id, since.notice_id, from_turn, since=begin)
    return RunSpan(_show(connection, context_id, rows), notices, has_earlier)


def _show(connection: Connection, context_id: int, rows: Sequence[Any]) -> list[Shown]:
    """Return rows of messages for the page; an answer, or a question without one, with the calls of its turn."""
    turn_ids = [row.turn_id if row.is_stopped else row.answers_turn_id for row in rows]
    cards = read_cards(connection, context_id, turn_ids)
    return [show_message(row) | {"calls": cards.get(each, [])} for row, each in zip(rows, turn_ids, strict=True)]


def _read_waiting(connection: Connection, context_id: int, after_id: int) -> tuple[list[Shown], int]:
    found = list_waiting(connection, context_id, after_id)
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


def read_notices(
    connection: Connection,
    context_id: int,
    after_id: int = 0,
    from_turn: int = 0,
    *,
    since: datetime,
    until: datetime = _END,
) -> list[Shown]:
    """Return what people were told of a time and of turns from one on, oldest first."""
    rows = list_notices(connection, context_id, after_id, from_turn, since, until)
    cards = read_cards(connection, context_id, {row.turn_id for row in rows if _is_trouble(row)})
    # What is forgotten has no payload. The calls of a turn stand at the first of what it was said to have failed with.
    return [_show_notice(row, cards.pop(row.turn_id, [])) for row in rows if row.payload]


def plain_text_of(payload: Mapping[str, Any]) -> str:
    """Return what a notice says, without the signs of its Markdown."""
    from transports.markdown.reading import read_markdown

    text, formatted = str(payload.get("text", "")), payload.get("formatted")
    read = FormattedText(tuple(read_markdown(text))) if formatted is None else FormattedText.from_json(formatted)
    return read.plain


def _is_trouble(row: Any) -> bool:
    return bool(row.outcome == Outcome.FAILED.value)


def _show_notice(row: Any, calls: Sequence[Card]) -> Shown:
    from transports.web.markdown import render_markdown

    text, formatted = str(row.payload.get("text", "")), row.payload.get("formatted")
    blocks = render_markdown(text) if formatted is None else render_formatted(FormattedText.from_json(formatted))
    files = [
        {"url": f"/web/notices/{row.id}/{index}", "name": each["name"] or each["mime_type"], "is_image": False}
        for index, each in enumerate(row.payload.get("files", ()))
    ]
    shown = {"id": row.id, "place": row.replaces or row.id, "text": text, "at": iso(row.created_at), "files": files}
    shown |= {"is_trouble": _is_trouble(row), "calls": calls, "is_aside": _is_aside(row), "asked": _asked_by(row)}
    return shown | {"blocks": blocks, "buttons": show_buttons(row.buttons)}


def _is_aside(row: Any) -> bool:
    """Return whether an answer stands, or is to stand, next to a notice."""
    has_answer = row.outcome in (None, Outcome.ANSWERED.value, Outcome.STOPPED.value) and not row.is_command
    return has_answer and row.payload.get(ASIDE) is True


def _asked_by(row: Any) -> str | None:
    """Return the command that led to a notice: anything else that may have is in the conversation."""
    said = read_post(row.said) if row.is_command and row.said is not None else None
    return None if said is None or parse_command(said.text) is None else said.text
