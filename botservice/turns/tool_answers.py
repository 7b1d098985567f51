"""What a person answers to a question of a tool: which of the open ones, and the value that a field takes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from math import isfinite
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from botservice.agent.tool_questions import Field, FieldKind, ToolQuestions, Value
from botservice.core.formatted_text import FormattedText, Span
from botservice.core.messages import Author, Button, ButtonStyle, CommandCall, InboundMessage
from botservice.core.states import PendingKind
from botservice.core.visible_text import as_it_looks
from botservice.storage.database import Connection
from botservice.texts import in_language
from botservice.texts.formatted import code, say
from botservice.turns.call_decisions import is_own
from botservice.turns.call_queries import find_call, find_open, find_sent_as, store_exchange
from botservice.turns.waiting_calls import WaitingCall

ANSWER: Final = "answer"
CANCEL: Final = "cancel"
LEFT_OUT: Final = "-"
"""What a person writes to give nothing for a field."""
_LONGEST: Final = 4_000
_MOST_BUTTONS: Final = 8
_INTEGER: Final = re.compile(r"[+-]?\d{1,15}")
# Three digits after a comma may be a thousand or a thousandth.
_NUMBER: Final = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15}|,(?!\d{3}$)\d{1,15})?")
_EMAIL: Final = re.compile(r"[^\s@]{1,64}@[^\s@.]{1,63}(?:\.[^\s@.]{1,63}){1,8}")
_SAID: Final = re.compile(r"(?:#?(\d{1,18})(?:\.(\d{1,4}))?\s+)?(?:(#)(\d{1,3})|(=)?(.*))", re.DOTALL)


class WrongAnswer(ValueError):
    """An answer that a field does not take.

    Attributes:
        text: What would be right, in the person's language.
    """

    def __init__(self, text: FormattedText) -> None:
        super().__init__(text.plain)
        self.text = text


def says_choice(number: int, step: int, place: int) -> str:
    """Return what the button of a choice says; a late press is told by the step."""
    return f"/{ANSWER} {number}.{step} #{place}"


def buttons_for(number: int, step: int, field: Field | None, language: str | None) -> tuple[Button, ...]:
    """Return the buttons under a question; none where the person writes the answer.

    A number that they write must not pass as that of a button, as it would on the terminal.
    """
    labels = labels_of(field, language)
    if not has_buttons(field):
        return ()
    decline, skip = in_language("asking.decline_button", language), in_language("asking.skip_button", language)
    own = {as_it_looks(decline), as_it_looks(skip)}
    labels = [f"{place}: {each}" if as_it_looks(each) in own else each for place, each in enumerate(labels, 1)]
    is_yes = field is None or field.kind is FieldKind.BOOLEAN
    styles = (ButtonStyle.SUCCESS if is_yes else None, *[None] * len(labels))
    choices = [
        Button(label, says_choice(number, step, place), style=style)
        for place, (label, style) in enumerate(zip(labels, styles, strict=False), 1)
    ]
    if field is not None and not field.is_required:
        choices.append(Button(skip, says_choice(number, step, 0)))
    deny = Button(decline, f"/deny {number}", style=ButtonStyle.DANGER)
    return (*choices, deny)


def has_buttons(field: Field | None) -> bool:
    """Return whether a field is answered by pressing a button."""
    if field is None or field.kind is FieldKind.BOOLEAN:
        return True
    return field.kind is FieldKind.CHOICE and len(field.options) <= _MOST_BUTTONS


def labels_of(field: Field | None, language: str | None) -> list[str]:
    """Return what can be chosen, in order; nothing where the person writes freely."""
    if field is None:
        return [in_language("asking.accept_button", language)]
    if field.kind is FieldKind.BOOLEAN:
        return [in_language("asking.yes", language), in_language("asking.no", language)]
    return [label for _, label in field.options]


def read_answer(field: Field | None, said: str, language: str | None) -> Value | None:
    """Return the value that a person's words give for a field; None where they leave it out or only agree.

    Raises:
        WrongAnswer: the field does not take them.
    """
    said = said.strip()
    if said == LEFT_OUT and field is not None and not field.is_required:
        return None
    if field is None:
        agrees = said.casefold() in _words(1, language, labels_of(None, language)[0], "asking.yes")
        return _fail("asking.wrong_agree", language) if not agrees else None
    return _READ[field.kind](field, said, language)


def read_choice(field: Field | None, place: int, language: str | None) -> Value | None:
    """Return the value of a pressed button.

    Raises:
        WrongAnswer: there is no such button.
    """
    if field is None and place == 1:
        return None
    if field is not None and place == 0 and not field.is_required:
        return None
    if field is not None and field.kind is FieldKind.BOOLEAN and place in (1, 2):
        return place == 1
    if field is not None and field.kind is FieldKind.CHOICE and 1 <= place <= len(field.options):
        return field.options[place - 1][0]
    return _fail("asking.wrong_choice", language)


def parse_answer(arguments: str) -> tuple[int | None, int | None, int | None, str]:
    """Return what the arguments of /answer name: a question, the step of it, a button, and the words."""
    found = _SAID.fullmatch(arguments)
    if found is None:  # it takes everything
        return None, None, None, arguments
    number, step, pressed, place, _, words = found.groups()
    return (
        None if number is None else int(number),
        None if step is None else int(step),
        int(place) if pressed else None,
        words or "",
    )


def _fail(key: str, language: str | None, **values: Any) -> NoReturn:
    raise WrongAnswer(say(key, language, **values))


def _words(place: int, language: str | None, label: str, key: str) -> set[str]:
    return {str(place), *(each.casefold() for each in (label, in_language(key, language), in_language(key, None)))}


def _read_text(field: Field, said: str, language: str | None) -> str:
    most = min(int(field.most) if field.most is not None else _LONGEST, _LONGEST)
    least = max(int(field.least or 0), 1 if field.is_required else 0)
    if not least <= len(said) <= most:
        _fail("asking.wrong_length", language, least=least, most=most)
    if field.format is not None and not _has_format(said, field.format):
        _fail("asking.wrong_format", language, example=code(_EXAMPLES[field.format]))
    return said


_EXAMPLES: Final = {
    "email": "anna@example.com",
    "uri": "https://example.com",
    "date": "2026-07-28",
    "date-time": "2026-07-28T09:30:00Z",
}


def _has_format(said: str, name: str) -> bool:
    try:
        if name == "email":
            return _EMAIL.fullmatch(said) is not None
        if name == "uri":
            parts = urlsplit(said)
            return bool(parts.scheme and parts.netloc) and re.search(r"\s", said) is None
        if name == "date":
            return len(said) == len("2026-07-28") and date.fromisoformat(said) is not None
        return datetime.fromisoformat(said).tzinfo is not None
    except ValueError:
        return False


def _read_boolean(_: Field, said: str, language: str | None) -> bool:
    is_yes = said.casefold() in _words(1, language, "yes", "asking.yes")
    if not is_yes and said.casefold() not in _words(2, language, "no", "asking.no"):
        _fail("asking.wrong_choice", language)
    return is_yes


def _read_number(field: Field, said: str, language: str | None) -> int | float:
    is_whole = field.kind is FieldKind.INTEGER
    pattern = _INTEGER if is_whole else _NUMBER
    value = float(said.replace(",", ".")) if pattern.fullmatch(said) else None
    if value is None or not isfinite(value):
        _fail("asking.wrong_integer" if is_whole else "asking.wrong_number", language)
    if (field.least is not None and value < field.least) or (field.most is not None and value > field.most):
        least, most = (Span("…" if each is None else f"{each:g}") for each in (field.least, field.most))
        _fail("asking.wrong_range", language, least=least, most=most)
    return int(value) if is_whole else value


def _read_choice(field: Field, said: str, language: str | None) -> str:
    by_words = {word.casefold(): value for value, label in reversed(field.options) for word in (value, label)}
    if said.casefold() in by_words:
        return by_words[said.casefold()]
    if said.isascii() and said.isdecimal() and 1 <= int(said[:4]) <= len(field.options):
        return field.options[int(said[:4]) - 1][0]
    _fail("asking.wrong_choice", language)


def _read_choices(field: Field, said: str, language: str | None) -> list[str]:
    chosen = list(dict.fromkeys(_read_choice(field, each, language) for each in _parts(said)))
    least = max(int(field.least or 0), 1 if field.is_required else 0)
    most = len(field.options) if field.most is None else int(field.most)
    if not least <= len(chosen) <= most:
        _fail("asking.wrong_count", language, least=least, most=most)
    return chosen


def _parts(said: str) -> Iterable[str]:
    return [each.strip() for each in re.split(r"[,;\n]", said[:_LONGEST]) if each.strip()]


_READ: Final[Mapping[FieldKind, Callable[[Field, str, str | None], Value]]] = {
    FieldKind.TEXT: _read_text,
    FieldKind.INTEGER: _read_number,
    FieldKind.NUMBER: _read_number,
    FieldKind.BOOLEAN: _read_boolean,
    FieldKind.CHOICE: _read_choice,
    FieldKind.CHOICES: _read_choices,
}


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

    A typed message answers the newest question that its author was shown before, or the one that it replies to. Where
    there are buttons, other words are for the agent, unless they reply to the question.
    """
    is_typed = message.is_all_own and message.own_text is None  # a recording has more text than its author's words
    is_plain = message.is_addressed and message.command is None and is_typed and not message.unread
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
