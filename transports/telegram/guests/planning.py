"""From an answer to the one message that a guest may write. Pure: the same answer gives the same message."""

from typing import Any, Final

from botservice.messages import Message
from botservice.texts import in_language
from botservice.turns.transport import Payload
from transports.telegram.inbound import field, integer
from transports.telegram.outgoing.formatting import as_wire, format_markdown
from transports.too_long import MAX_CHARACTERS, head_of

_ROOM_UNITS: Final = 3_600  # of 4,096: the rest is for what may have to be said around it


def plan_guest(answer: Message, asked: object) -> list[Payload]:
    """Return the message that makes answer visible: text alone, so much of it as one message holds."""
    is_long = len(answer.text) > MAX_CHARACTERS
    pieces = format_markdown(head_of(answer.text) if is_long else answer.text, max_units=_ROOM_UNITS)
    is_cut = len(pieces) > 1 or is_long or bool(answer.attachments)
    if not pieces and not is_cut:
        return []
    language = answer.language or language_of(asked)
    said: dict[str, Any] = {"text": pieces[0].text, "entities": as_wire(pieces[0])} if pieces else {"text": ""}
    if is_cut:
        cut = in_language("guests.cut", language)
        said["text"] = f"{said['text']}\n\n{cut}".lstrip()
    late = {"asker": integer(field(field(asked, "from"), "id")), "late": in_language("guests.late", language)}
    return [{name: value for name, value in (said | late).items() if value}]


def language_of(asked: object) -> str | None:
    """Return the language of whoever asked."""
    language = field(field(asked, "from"), "language_code")
    return language if isinstance(language, str) else None
