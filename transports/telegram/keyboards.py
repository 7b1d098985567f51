"""Buttons as Telegram's inline keyboards."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from botservice.core.messages import Button, ButtonStyle
from botservice.people.names import DIRECT_TOPIC

MAX_BUTTONS = 100  # Bot API: more are REPLY_MARKUP_TOO_LONG
_MAX_ROW_BUTTONS = 8
_MAX_ROW_CHARACTERS = 28  # what stands side by side on a phone without being cut off
_MAX_TEXT_CHARACTERS = 128
# The button's place, and the topic that its message stands in; "d" marks one of a channel's direct messages.
_DATA = re.compile(r"b(\d{1,3})(?:\.(d?)(\d{1,18}))?")
_TOPICS = {"": "thread_id", "d": DIRECT_TOPIC}
_SCHEMES = ("http", "https", "tg")
_CHOSEN = "✓"

Keyboard = dict[str, Any]


def make_keyboard(buttons: Sequence[Button]) -> Keyboard:
    """Return what shows buttons under a message.

    What a button says is not in it: a place is all that surely fits into 64 bytes, and all that anybody could forge.
    """
    return {"inline_keyboard": list(_rows(_make(each, place) for place, each in enumerate(buttons)))}


def make_chosen(buttons: Sequence[Button], chosen: int) -> Keyboard:
    """Return the keyboard that is left of one after a choice: that choice, and the links."""
    mark = _make(Button(f"{_CHOSEN} {buttons[chosen].text}"), chosen)
    links = [_make(each, place) for place, each in enumerate(buttons) if _is_link(each)]
    return {"inline_keyboard": [[mark], *_rows(links)]}


def make_disabled(buttons: Sequence[Button], chosen: int) -> Keyboard:
    """Return a keyboard of which nothing can be pressed any more but links: a choice stands out.

    Source: core.telegram.org/bots/api#disabledbutton.
    """
    made = []
    for place, each in enumerate(buttons):
        if _is_link(each):
            made.append(_make(each, place))
        elif place == chosen:
            text = f"{_CHOSEN} {each.text}"[:_MAX_TEXT_CHARACTERS]
            made.append({"text": text, "disabled": {}, "style": ButtonStyle.SUCCESS.value})
        else:
            made.append({"text": each.text[:_MAX_TEXT_CHARACTERS], "disabled": {}})
    return {"inline_keyboard": list(_rows(made))}


def has_styles(keyboard: object) -> bool:
    """Return whether any button of a keyboard has a colour."""
    rows = keyboard.get("inline_keyboard", ()) if isinstance(keyboard, Mapping) else ()
    return any("style" in each for row in rows for each in row)


def without_styles(keyboard: Mapping[str, Any]) -> Keyboard:
    """Return a keyboard without colours."""
    rows = keyboard["inline_keyboard"]
    plain = [[{name: each[name] for name in each if name != "style"} for each in row] for row in rows]
    return {"inline_keyboard": plain}


def in_topic(keyboard: Mapping[str, Any], context_keys: Mapping[str, str]) -> Keyboard:
    """Return a keyboard whose buttons know their topic: Telegram does not always say it when they are pressed."""
    mark = next((f".{mark}{context_keys[key]}" for mark, key in _TOPICS.items() if key in context_keys), None)
    if mark is None:
        return dict(keyboard)
    rows = [[_marked(each, mark) for each in row] for row in keyboard["inline_keyboard"]]
    return {"inline_keyboard": rows}


def parse_data(data: object) -> tuple[int, dict[str, str]] | None:
    """Return a pressed button's place and the context keys of its topic; None if no keyboard of ours holds that."""
    found = _DATA.fullmatch(data) if isinstance(data, str) else None
    if found is None:
        return None
    return int(found[1]), {} if found[3] is None else {_TOPICS[found[2]]: found[3]}


def _marked(button: Mapping[str, Any], mark: str) -> dict[str, Any]:
    data = button.get("callback_data")
    return {**button} if data is None else {**button, "callback_data": f"{data}{mark}"}


def _make(button: Button, place: int) -> dict[str, Any]:
    text = button.text[:_MAX_TEXT_CHARACTERS]
    style = {} if button.style is None else {"style": button.style.value}
    if _is_link(button):
        return {"text": text, "url": str(button.url), **style}
    return {"text": text, "callback_data": f"b{place}", **style}


def _rows(made: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield rows: short buttons stand side by side, long ones below each other."""
    row: list[Mapping[str, Any]] = []
    width = 0
    for each in made:
        taken = len(each["text"]) + 2
        if row and (width + taken > _MAX_ROW_CHARACTERS or len(row) == _MAX_ROW_BUTTONS):
            yield row
            row, width = [], 0
        row.append(each)
        width += taken
    if row:
        yield row


def _is_link(button: Button) -> bool:
    """Return whether a button opens an address that Telegram takes."""
    if button.url is None:
        return False
    try:
        parts = urlsplit(button.url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in _SCHEMES and ("." in host or parts.scheme == "tg") and not re.search(r"\s", button.url)
