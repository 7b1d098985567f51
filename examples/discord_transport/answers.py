"""From an answer to the messages that make it visible in Discord. Pure: the same answer gives the same messages."""

import json
from collections.abc import Sequence
from typing import Any, Final

from botservice import Button, Message, StoredEvent

MOST_CHARACTERS: Final = 2000
_ANSWERED_BELOW: Final = "⤵"
_MOST_BUTTONS, _IN_A_ROW, _LONGEST_LABEL, _LONGEST_VALUE = 25, 5, 80, 100


def plan_answer(answer: Message, events: Sequence[StoredEvent]) -> list[dict[str, Any]]:
    """Return the messages of an answer to events; what only a program asked for goes to the channel.

    An event's own token says under which question the message stands. It is good for 15 minutes.
    """
    tokens = [token_of(event) for event in events]
    files = [f"[file: {each.name or each.mime_type}]" for each in answer.attachments]
    text = "\n".join(part for part in [answer.text, *files] if part)
    pieces: list[dict[str, Any]] = [{"content": piece} for piece in cut(text)]
    if pieces and answer.buttons:
        pieces[-1]["components"] = rows_of(answer.buttons)
    if pieces and tokens:
        pieces[0]["token"] = tokens[-1]
    return [*({"content": _ANSWERED_BELOW, "token": token} for token in tokens[:-1]), *pieces]


def token_of(event: StoredEvent) -> str:
    """Return by what the first answer to an event is given."""
    return str(json.loads(event.raw)["token"])


def cut(text: str) -> list[str]:
    """Return text in pieces that Discord takes, between lines where that goes."""
    pieces = []
    while len(text) > MOST_CHARACTERS:
        end = text.rfind("\n", 1, MOST_CHARACTERS)
        end = end if end > 0 else MOST_CHARACTERS
        pieces.append(text[:end])
        text = text[end:].lstrip("\n")
    return [*pieces, text] if text else pieces


def rows_of(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """Return buttons as rows; one that would say more than Discord keeps says its text."""
    made = [_component(each) for each in buttons[:_MOST_BUTTONS]]
    return [{"type": 1, "components": made[first : first + _IN_A_ROW]} for first in range(0, len(made), _IN_A_ROW)]


def _component(button: Button) -> dict[str, Any]:
    component: dict[str, Any] = {"type": 2, "label": button.text[:_LONGEST_LABEL]}
    if button.url is not None:
        return component | {"style": 5, "url": button.url}
    says = button.says if len(button.says) <= _LONGEST_VALUE else button.text[:_LONGEST_VALUE]
    return component | {"style": 2, "custom_id": says}
