"""The message that asks a person what a tool wants to know, before and after their answer."""

from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Final
from urllib.parse import urlsplit

from botservice.agent.tool_questions import Field, FieldKind, ToolQuestions
from botservice.core.formatted_text import CodeBlock, FormattedText, Span
from botservice.core.messages import Author, Button, Message, Moment, Role
from botservice.core.quoting import shortened
from botservice.core.states import PendingStatus
from botservice.core.visible_text import visible
from botservice.texts import in_language
from botservice.texts.formatted import below, bulleted, code, line, quoted, say, time
from botservice.turns.tool_answers import buttons_for, has_buttons, labels_of

_LONGEST_NAME: Final = 80
_ENDED: Final = {
    PendingStatus.DENIED: "asking.declined",
    PendingStatus.EXPIRED: "asking.expired",
    PendingStatus.WITHDRAWN: "asking.stopped",
}


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """A question that a person is asked.

    Attributes:
        number: What people call it by, as in /deny 3.
        is_shared: Whether others read the chat.
    """

    number: int
    tool: str
    exchange: ToolQuestions
    author: Author | None
    expires_at: datetime
    is_shared: bool = False
    status: PendingStatus = PendingStatus.WAITING


def show_tool_question(
    asked: ShownQuestion, language: str | None, now: datetime, *, has_room_for_buttons: bool, zone: tzinfo | None
) -> Message:
    """Write the message about a question as it is now.

    What the asker says stands in code blocks: nothing in it is formatted, linked, or calls anybody.

    Args:
        has_room_for_buttons: Whether the platform shows buttons; without them, the message says what to write.
        zone: The time zone of the person who is asked; None if it is unknown.
    """
    exchange, name = asked.exchange, None if asked.author is None else asked.author.name
    who = quoted(shortened(name, _LONGEST_NAME)) if name and name.strip() else None
    you = Span(in_language("approval.you", language)) if who is None else who
    asker, tool = code(exchange.asker), code(asked.tool)
    if asked.status is not PendingStatus.WAITING:
        text = say(_ENDED.get(asked.status, "asking.stopped"), language, asker=asker, who=you)
        said = Message(None, Role.SYSTEM, text.plain, created_at=now, language=language)
        return replace(said, formatted=text)
    question, field = exchange.question, exchange.field
    until = time(asked.expires_at, language, now=now, zone=zone)
    buttons = buttons_for(asked.number, exchange.step, field, language)
    parts = [say("asking.asks", language, asker=asker, tool=tool, who=you)]
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
    parts.append(_how(asked, field, until, language, is_pressed=has_buttons(field) and has_room_for_buttons))
    text = below(*parts, is_close=True)
    said = Message(None, Role.SYSTEM, text.plain, created_at=now, buttons=buttons, language=language)
    return replace(said, formatted=text, moments=(Moment(until.text, asked.expires_at),))


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


def _how(
    asked: ShownQuestion, field: Field | None, until: Span, language: str | None, *, is_pressed: bool
) -> FormattedText:
    """Return how the person answers, and until when."""
    number = asked.number
    if is_pressed:
        return say("asking.press", language, number=number, until=until)
    hints = []
    if field is not None and field.kind is FieldKind.CHOICES:
        hints.append(say("asking.several", language))
    if field is not None and not field.is_required:
        hints.append(say("asking.skip", language))
    key = "asking.reply" if asked.is_shared else "asking.write"
    no_secrets = say("asking.no_secrets", language) if field is not None and field.kind is FieldKind.TEXT else None
    return below(*hints, no_secrets, say(key, language, number=number, until=until), is_close=True)
