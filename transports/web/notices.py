"""What people were told that is no part of the conversation: apologies, answers to commands, questions, warnings."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
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
    not_,
    or_,
    select,
    type_coerce,
)

from botservice.core.formatted_text import FormattedText
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, steps, turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.command_parsing import parse_command
from botservice.turns.turn import Outcome, TurnStatus
from transports.web.formatted import render_formatted
from transports.web.inbound_events import NAME, read_post
from transports.web.outbound import ASIDE, Shown, iso, show_buttons
from transports.web.tool_cards import Card, read_cards

_END: Final = datetime(9999, 12, 31, tzinfo=UTC)

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
_IS_ANSWERED: Final = exists().where(messages.c.answers_turn_id == turns.c.id)
_IS_ASKED: Final = exists().where(events.c.turn_id == turns.c.id, messages.c.event_id == events.c.id)
# Deliveries are deleted with the steps of their turn, or after them: what has none here was never for the agent.
_IS_FOR_AGENT: Final = exists().where(steps.c.turn_id == turns.c.id)
_IS_COMMAND: Final = and_(turns.c.outcome == Outcome.ANSWERED.value, ~_IS_ANSWERED, ~_IS_FOR_AGENT)
# Of a question that was asked again, in other words or in the same, nothing is left: neither is what was said of it.
_IS_TAKEN_BACK: Final = and_(
    turns.c.outcome.is_not(None), _IS_FOR_AGENT, exists().where(events.c.turn_id == turns.c.id), ~_IS_ASKED
)
# Such turns have no answer: whatever was said in them is a notice.
_IS_UNANSWERED: Final = or_(
    *(turns.c.outcome == each.value for each in (Outcome.FAILED, Outcome.REFUSED, Outcome.LISTENED))
)
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
            _IS_COMMAND,
            _IS_ASIDE,
            turns.c.status == TurnStatus.WAITING.value,
            func.coalesce(deliveries.c.replaces, deliveries.c.id).in_(questions),
        ),
        ~_IS_REPLACED,
        not_(_IS_TAKEN_BACK),
        deliveries.c.transport == NAME,
    )


_NOTICES: Final = (
    select(
        *(deliveries.c.id, deliveries.c.turn_id, deliveries.c.payload, deliveries.c.buttons, deliveries.c.replaces),
        _AT,
        turns.c.outcome,
        or_(_IS_COMMAND, and_(turns.c.outcome == Outcome.REFUSED.value, ~_IS_ASKED)).label("is_command"),
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
    sought = {"context": context_id, "from_turn": from_turn, "after": after_id, "since": since, "until": until}
    rows = connection.execute(_NOTICES, sought).all()
    cards = read_cards(connection, context_id, {row.turn_id for row in rows if _is_trouble(row)})
    # What is forgotten has no payload. The calls of a turn stand at the first of what it was said to have failed with.
    return [_show_notice(row, cards.pop(row.turn_id, [])) for row in rows if row.payload]


def select_told(identity_id: int) -> Select[Any]:
    """Return the query for the notices in all conversations of a person, the newest first."""
    of_person = select(contexts.c.id).where(contexts.c.only_identity_id == identity_id)
    place = func.coalesce(deliveries.c.replaces, deliveries.c.id).label("place")
    query = select(turns.c.context_id, place, deliveries.c.payload, _AT)
    return (
        query.join(turns, turns.c.id == deliveries.c.turn_id)
        .where(_are_notices(lambda context_id: context_id.in_(of_person)))
        .order_by(deliveries.c.id.desc())
    )


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
    """Return whether an answer stands, or is to stand, beside a notice."""
    has_answer = row.outcome in (None, Outcome.ANSWERED.value, Outcome.STOPPED.value) and not row.is_command
    return has_answer and row.payload.get(ASIDE) is True


def _asked_by(row: Any) -> str | None:
    """Return the command that led to a notice: anything else that may have is in the conversation."""
    said = read_post(row.said) if row.is_command and row.said is not None else None
    return None if said is None or parse_command(said.text) is None else said.text
