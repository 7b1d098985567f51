"""What goes out: an answer as its delivery, and stored messages and calls of tools as the page gets them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from botservice.conversation.masked_secrets import find_secrets, masked
from botservice.conversation.tool_calls import MadeCall, read_made_calls, state_of_unmade
from botservice.core.messages import Button, Message, Role, ToolCall
from botservice.storage.blobs import digest_of
from botservice.storage.database import Connection
from botservice.storage.message_references import full_text_of
from botservice.turns.browser_chat_queries import ASIDE
from botservice.turns.buttons import read_buttons, write_buttons
from botservice.turns.call_decisions import order_of
from botservice.turns.readable_arguments import readable_arguments
from botservice.turns.transport import BUTTONS, Payload
from transports.common.growing_answer import Step
from transports.web.files import without_contents

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
        {"text": each.text, **({} if each.style is None else {"style": each.style.value}), **_deed_of(each)}
        for each in read_buttons(kept)
        if each.url is None or each.url.startswith(("http://", "https://"))
    ]


def _deed_of(button: Button) -> dict[str, str]:
    """Return what a button does: it leads somewhere, says something, or decides about a call of a tool."""
    if button.url is not None:
        return {"url": button.url}
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


Card = dict[str, Any]
"""A call as JSON."""

MOST: Final = 30  # calls of a turn; of more, the newest
_LONGEST_RESULT: Final = 1_000  # characters
_LOOKED_THROUGH: Final = 1_500  # characters, for secrets: dots are shorter than some


def show_running(steps: Sequence[Step]) -> list[Card]:
    """Return the cards of the newest calls while a turn works, in the order in which they began."""
    return [
        {
            "name": step.name,
            "arguments": step.arguments,
            "state": "running" if not step.is_done else "failed" if step.has_failed else "done",
            "said": step.said,
        }
        for step in [each for each in steps if each.call is not None][-MOST:]
    ]


def read_cards(connection: Connection, context_id: int, turn_ids: Iterable[int | None]) -> dict[int, list[Card]]:
    """Return the cards of the calls that turns made, by the turn."""
    made = read_made_calls(connection, context_id, {each for each in turn_ids if each is not None})
    return {turn_id: _show(calls) for turn_id, calls in made.items() if calls}


def _show(calls: Sequence[MadeCall]) -> list[Card]:
    cards = [_show_made(each) for each in calls[-MOST:]]
    cards[0]["before"] = len(calls) - len(cards)
    return cards


def _show_made(made: MadeCall) -> Card:
    result = made.result
    card: Card = {"name": made.call.name, "arguments": show_arguments(made.call)}
    if result is None:
        return card | {"state": "cut"}
    if (state := state_of_unmade(result.text)) is not None:
        return card | {"state": state}
    text = result.text.removeprefix("Error: ") if result.is_error else result.text
    return card | {
        "state": "failed" if result.is_error else "done",
        "result": _show_result(text),
        "seconds": result.duration_seconds,
    }


def show_arguments(call: ToolCall) -> str:
    """Return what a tool is called with, without secrets."""
    if call.malformed_arguments is not None:
        return _show_result(call.malformed_arguments)
    return readable_arguments(call.arguments)[0]


def _show_result(text: str) -> str:
    """Return what a tool gave, without secrets; of a long text, the beginning with its whole length."""
    shown = _mask(text[:_LOOKED_THROUGH])
    if len(text) <= _LONGEST_RESULT:
        return shown
    return f"{shown[:_LONGEST_RESULT]}… ({len(text):,} characters)"


@lru_cache(maxsize=2_000)
def _mask(text: str) -> str:
    """Return text without secrets; kept, because it takes a millisecond and pages are opened again and again."""
    return masked(text, find_secrets(text))
