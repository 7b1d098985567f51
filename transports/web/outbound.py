"""What goes out: an answer as its delivery, and a stored message as the page gets it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from botservice.core.messages import Button, Message, Role
from botservice.storage.blobs import digest_of
from botservice.storage.references import full_text_of
from botservice.turns.buttons import read_buttons, write_buttons
from botservice.turns.parsing_decisions import order_of
from botservice.turns.transport import BUTTONS, Payload
from transports.web.files import without_contents

ASIDE: Final = "aside"
"""What the payload of a message of the service itself begins with, by which it is found."""
SHOWN_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

Shown = dict[str, Any]
"""Something that the page shows, as JSON."""


def plan_answer(answer: Message) -> Sequence[Payload]:
    """Return the one delivery of an answer. Its text is there for answers that are not kept, such as an apology."""
    payload: dict[str, object] = {ASIDE: True} if answer.role == Role.SYSTEM else {}
    payload |= {"text": answer.text, "at": answer.created_at.isoformat()}
    if answer.formatted is not None:
        payload["formatted"] = answer.formatted.to_json()
    files = [
        {"name": each.name, "mime_type": each.mime_type, "sha256": digest_of(each.data)}
        for each in answer.attachments
        if each.data is not None
    ]
    if files:
        payload["files"] = files
    return [payload | ({BUTTONS: write_buttons(answer.buttons)} if answer.buttons else {})]


def show_message(row: Any) -> dict[str, Any]:
    """Return a stored message, given as a row of its table, for the page."""
    shown = {
        "is_stopped": bool(row.is_stopped),
        "id": row.id,
        "role": row.role,
        "text": full_text_of(row),
        "at": iso(row.created_at),
        "files": [_show_file(row.id, index, each) for index, each in enumerate(row.attachments or ())],
    }
    if row.role == Role.ASSISTANT:
        from transports.web.markdown import render_markdown

        shown["blocks"] = render_markdown(row.text)
        shown["buttons"] = show_buttons(row.buttons)
        shown |= {"is_answer": row.answers_turn_id is not None, "verdict": row.verdict}
    else:
        shown["text"] = without_contents(shown["text"], row.attachments or ())
        shown |= {"client_id": row.external_id, "name": row.author_name}
    return shown


def show_buttons(kept: object) -> list[dict[str, str]]:
    """Return stored buttons for the page: what each says or decides when it is pressed, or where it leads."""
    return [
        {"text": each.text, **_style_of(each), **(_deed_of(each) if each.url is None else {"url": each.url})}
        for each in read_buttons(kept)
        if each.url is None or each.url.startswith(("http://", "https://"))
    ]


def _style_of(button: Button) -> dict[str, str]:
    return {} if button.style is None else {"style": button.style.value}


def _deed_of(button: Button) -> dict[str, str]:
    """Return what a button does: it says something, or decides about a call of a tool."""
    return {"decides" if order_of(button.says) is not None else "says": button.says}


def _show_file(message_id: int, index: int, kept: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "url": f"/web/files/{message_id}/{index}",
        "name": kept.get("name") or kept["mime_type"],
        "mime_type": kept["mime_type"],
        "is_image": kept["mime_type"] in SHOWN_IMAGES and "url" not in kept,
        "size": [kept["width"], kept["height"]] if "width" in kept else None,
    }


def iso(moment: datetime) -> str:
    """Return a moment as browsers read it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
