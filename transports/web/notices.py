"""What people were told that is no part of the conversation: apologies, answers to commands, questions, warnings."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from botservice.core.formatted_text import FormattedText
from botservice.storage.database import Connection
from botservice.turns.command_parsing import parse_command
from botservice.turns.turn import Outcome
from transports.web.formatted import render_formatted
from transports.web.inbound_events import read_post
from transports.web.outbound import ASIDE, Shown, iso, show_buttons
from transports.web.queries import END, list_notices
from transports.web.tool_cards import Card, read_cards


def read_notices(
    connection: Connection,
    context_id: int,
    after_id: int = 0,
    from_turn: int = 0,
    *,
    since: datetime,
    until: datetime = END,
) -> list[Shown]:
    """Return what people were told of a time and of turns from one on, oldest first."""
    rows = list_notices(connection, context_id, after_id, from_turn, since=since, until=until)
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
    """Return whether an answer stands, or is to stand, beside a notice."""
    has_answer = row.outcome in (None, Outcome.ANSWERED.value, Outcome.STOPPED.value) and not row.is_command
    return has_answer and row.payload.get(ASIDE) is True


def _asked_by(row: Any) -> str | None:
    """Return the command that led to a notice: anything else that may have is in the conversation."""
    said = read_post(row.said) if row.is_command and row.said is not None else None
    return None if said is None or parse_command(said.text) is None else said.text
