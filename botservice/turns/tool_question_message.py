"""The message that asks a person what a tool wants to know, before and after their answer."""

from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Final
from urllib.parse import urlsplit

from botservice.agent.tool_questions import Field, FieldKind, ToolQuestions
from botservice.core.formatted_text import CodeBlock, FormattedText, Span
from botservice.core.messages import Button, Message, Moment, Role
from botservice.core.states import PendingStatus
from botservice.core.visible_text import visible
from botservice.texts import in_language
from botservice.texts.formatted import below, bulleted, code, line, say, time
from botservice.turns.approval_message import name_asker
from botservice.turns.tool_answers import buttons_for, has_buttons, labels_of
from botservice.turns.waiting_calls import WaitingCall

_ENDED: Final = {
    PendingStatus.DENIED: "asking.declined",
    PendingStatus.EXPIRED: "asking.expired",
    PendingStatus.WITHDRAWN: "asking.stopped",
}


def show_tool_question(
    call: WaitingCall,
    exchange: ToolQuestions,
    language: str | None,
    now: datetime,
    *,
    is_shared: bool,
    has_room_for_buttons: bool,
    zone: tzinfo | None,
) -> Message:
    """Write the message about a question of a call as it is now.

    What the asker says stands in code blocks: nothing in it is formatted, linked, or calls anybody.

    Args:
        is_shared: Whether others read the chat.
        has_room_for_buttons: Whether the platform shows buttons; without them, the message says what to write.
        zone: The time zone of the person who is asked; None if it is unknown.
    """
    who, asker = name_asker(call.author, language), code(exchange.asker)
    if not call.is_waiting:
        text = say(_ENDED.get(call.status, "asking.stopped"), language, asker=asker, who=who)
        return Message(None, Role.SYSTEM, text.plain, created_at=now, language=language, formatted=text)
    question, field = exchange.question, exchange.field
    until = time(call.expires_at, language, now=now, zone=zone)
    buttons = buttons_for(call.id, exchange.step, field, language)
    parts = [say("asking.asks", language, asker=asker, tool=code(call.tool), who=who)]
    if exchange.place == 0 and question.message:
        parts.append(FormattedText((CodeBlock(visible(question.message, keeps_lines=True, is_code=True)),)))
    if question.url is not None:
        parts += [
            say("asking.opens", language, host=Span(urlsplit(question.url).hostname or "", bold=True, code=True)),
            FormattedText((CodeBlock(visible(question.url, is_code=True)),)),
        ]
        buttons = (Button(in_language("asking.open_button", language), url=question.url), *buttons)
    if field is not None:
        parts += _show_field(exchange, field, language, are_listed=not (has_buttons(field) and has_room_for_buttons))
    if has_buttons(field) and has_room_for_buttons:
        parts.append(say("asking.press", language, number=call.id, until=until))
    else:
        parts.append(_how_written(call.id, field, until, language, is_shared=is_shared))
    text = below(*parts, is_close=True)
    said = Message(None, Role.SYSTEM, text.plain, created_at=now, buttons=buttons, language=language)
    return replace(said, formatted=text, moments=(Moment(until.text, call.expires_at),))


def _show_field(
    exchange: ToolQuestions, field: Field, language: str | None, *, are_listed: bool
) -> list[FormattedText]:
    count = len(exchange.question.fields)
    title = Span(visible(field.title, is_code=True), bold=True, code=True)
    counted = f" ({exchange.place + 1}/{count})" if count > 1 else ""
    parts = [line(title, counted)]
    if field.description:
        parts.append(FormattedText((CodeBlock(visible(field.description, keeps_lines=True, is_code=True)),)))
    labels = labels_of(field, language)
    if are_listed and labels:
        parts.append(bulleted(line(f"{place}: ", code(label)) for place, label in enumerate(labels, 1)))
    return parts


def _how_written(
    number: int, field: Field | None, until: Span, language: str | None, *, is_shared: bool
) -> FormattedText:
    """Return how the person writes the answer, and until when."""
    hints = []
    if field is not None and field.kind is FieldKind.CHOICES:
        hints.append(say("asking.several", language))
    if field is not None and not field.is_required:
        hints.append(say("asking.skip", language))
    key = "asking.reply" if is_shared else "asking.write"
    no_secrets = say("asking.no_secrets", language) if field is not None and field.kind is FieldKind.TEXT else None
    return below(*hints, no_secrets, say(key, language, number=number, until=until), is_close=True)
