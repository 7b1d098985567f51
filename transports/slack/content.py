"""What people see of a Slack message besides its text: blocks and attachments, in the order in which Slack shows them.

Alerts and other apps often leave the text empty. What comes out is Slack's own markup, with `<@U1>` and `<url|label>`,
for `reading.readable` to write out. Sources: docs.slack.dev/reference/block-kit/blocks and
docs.slack.dev/legacy/legacy-messaging/legacy-secondary-message-attachments.
"""

import html
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from transports.slack.inbound_events import field, items_of

_DEEPEST: Final = 12
# What holds words in an element that is not known by its type, in the order in which it is shown.
_WORDS: Final = (
    *("title", "subtitle", "label", "header", "text", "description", "body", "caption", "alt_text", "value"),
    *("fields", "elements", "blocks", "rows", "cells", "items", "tasks", "buttons", "actions", "accessory", "footer"),
)
_STYLES: Final = (("code", "`"), ("bold", "*"), ("italic", "_"), ("strike", "~"))


def words_of(message: object) -> str:
    """Return what people see of a message, without what it shares of others.

    A text that comes with blocks is shown in notifications alone, unless the blocks are the same text with its styles,
    as of everything that people write.
    """
    return _lines([spoken_in(message), shown_beside(message)])


def spoken_in(message: object) -> str:
    """Return the text of a message, or what stands in its place."""
    text, blocks = _string(field(message, "text")), items_of(message, "blocks")
    is_typed = all(field(each, "type") == "rich_text" for each in blocks)
    return text if text and is_typed else _lines(map(_block, blocks)) or text


def shown_beside(message: object) -> str:
    """Return what the attachments of a message show, without messages that it shares."""
    found = (each for each in items_of(message, "attachments") if isinstance(each, Mapping))
    return _lines(_attachment(each) for each in found if not is_shared(each))


def is_shared(attachment: Mapping[str, Any]) -> bool:
    """Return whether an attachment shows another message."""
    return bool(attachment.get("is_msg_unfurl") or attachment.get("is_share"))


def words_of_shared(shared: Mapping[str, Any]) -> str:
    """Return what a shared message says."""
    inner = [field(each, "message") for each in items_of(shared, "message_blocks")]
    said = _string(shared.get("text")) or _lines(spoken_in(each) for each in inner) or _lines(map(_block, _of(shared)))
    return _lines([said, shown_beside(shared), _fields(shared)]) or _string(shared.get("fallback"))


def _attachment(shown: Mapping[str, Any]) -> str:
    author, title = (_linked(shown, name, f"{name.partition('_')[0]}_link") for name in ("author_name", "title"))
    parts = [
        _string(shown.get("pretext")),
        _linked(shown, "service_name", "service_url") if shown.get("service_name") != shown.get("author_name") else "",
        author,
        title,
        _string(shown.get("text")),
        _fields(shown),
        *map(_block, _of(shown)),
        " ".join(filter(None, map(_button, items_of(shown, "actions")))),
        _string(shown.get("footer")),
    ]
    return _lines(parts) or _string(shown.get("fallback")) or ("[picture]" if shown.get("image_url") else "")


def _of(shown: Mapping[str, Any]) -> list[Any]:
    return items_of(shown, "blocks")


def _fields(shown: Mapping[str, Any]) -> str:
    pairs = ((_string(field(each, "title")), _string(field(each, "value"))) for each in items_of(shown, "fields"))
    return _lines(": ".join(filter(None, pair)) for pair in pairs)


def _linked(shown: Mapping[str, Any], name: str, link: str) -> str:
    words, address = _string(shown.get(name)), _string(shown.get(link))
    return _link(words, address) if words and address else words


def _block(block: object) -> str:
    """Return what a block shows; of a kind that is not known, whatever words are in it."""
    show = _BLOCKS.get(str(field(block, "type")))
    return _any(block, 0) if show is None else show(block)


def _section(block: object) -> str:
    return _lines([_text(field(block, "text")), *map(_text, items_of(block, "fields")), _element(block, "accessory")])


def _elements(block: object) -> str:
    return " ".join(filter(None, (_one(each) for each in items_of(block, "elements"))))


def _picture(block: object) -> str:
    words = _string(field(block, "alt_text")) or _text(field(block, "title"))
    return f"[picture: {words}]" if words else "[picture]"


def _video(block: object) -> str:
    title, address = _text(field(block, "title")), _string(field(block, "title_url"))
    about = [_string(field(block, name)) for name in ("author_name", "provider_name", "alt_text")]
    return (
        _lines([_link(title, address) if address else title, _text(field(block, "description")), *about[:2]])
        or about[2]
    )


def _table(block: object) -> str:
    """Return the rows of a table, its cells next to each other."""
    rows = items_of(block, "rows")
    cells = (each if isinstance(each, list) else items_of(each, "cells") for each in rows)
    return _lines([_text(field(block, "title")), *(" | ".join(map(_cell, row)) for row in cells)])


def _cell(cell: object) -> str:
    value = field(cell, "value")
    said = _rich(cell) if field(cell, "type") == "rich_text" else _any(cell, 0)
    return said.replace("\n", " ") or (str(value) if isinstance(value, int | float) else "")


def _one(element: object) -> str:
    kind = field(element, "type")
    if kind == "image":
        return _picture(element)
    if kind in ("mrkdwn", "plain_text"):
        return _text(element)
    if kind in ("button", "workflow_button"):
        return _button(element)
    return _any(element, 0)


def _element(block: object, name: str) -> str:
    return _one(field(block, name)) if field(block, name) is not None else ""


def _button(button: object) -> str:
    words, address = _text(field(button, "text")), _string(field(button, "url"))
    return "" if not words else _link(words, address) if address else f"[button: {words}]"


def _rich(block: object) -> str:
    """Return the words of a rich text, as a person would type them."""
    return _lines(_rich_part(each) for each in items_of(block, "elements"))


def _rich_part(part: object) -> str:
    match field(part, "type"):
        case "rich_text_list":
            indent = "  " * (field(part, "indent") or 0)
            is_ordered, first = field(part, "style") == "ordered", (field(part, "offset") or 0) + 1
            marks = (f"{number}." if is_ordered else "-" for number, _ in enumerate(items_of(part, "elements"), first))
            rows = zip(marks, items_of(part, "elements"), strict=False)
            return "\n".join(f"{indent}{mark} {_rich_part(each)}" for mark, each in rows)
        case "rich_text_preformatted":
            return f"```\n{_inline(part)}\n```"
        case "rich_text_quote":
            return "\n".join(f"> {line}" for line in _inline(part).splitlines())
        case _:
            return _inline(part)


def _inline(part: object) -> str:
    return "".join(map(_piece, items_of(part, "elements")))


def _piece(piece: object) -> str:
    say: Mapping[str, Callable[[], str]] = {
        "link": lambda: _link(_escaped(field(piece, "text")), _string(field(piece, "url"))),
        "user": lambda: f"<@{field(piece, 'user_id')}>",
        "channel": lambda: f"<#{field(piece, 'channel_id')}>",
        "usergroup": lambda: f"<!subteam^{field(piece, 'usergroup_id')}>",
        "broadcast": lambda: f"<!{field(piece, 'range')}>",
        "emoji": lambda: f":{field(piece, 'name')}:",
        "date": lambda: _escaped(field(piece, "fallback")),
        "color": lambda: _escaped(field(piece, "value")),
    }
    words = say.get(str(field(piece, "type")), lambda: _escaped(field(piece, "text")))()
    for style, mark in _STYLES:
        if words.strip() and field(piece, "style", style) is True:
            words = f"{mark}{words}{mark}"
    return words


def _any(value: object, depth: int) -> str:
    """Return the words in an element whose kind is not known."""
    if isinstance(value, str) or depth > _DEEPEST:
        return _string(value)
    if isinstance(value, list):
        return _lines(_any(each, depth + 1) for each in value)
    if not isinstance(value, Mapping):
        return ""
    show = _BLOCKS.get(str(value.get("type")))
    if show is not None and depth:
        return show(value)
    if isinstance(value.get("url"), str) and (words := _text(value.get("text"))):
        return _link(words, value["url"])
    return _lines(_any(value.get(name), depth + 1) for name in _WORDS)


def _text(value: object) -> str:
    """Return the words of a text object, or of a text as older elements have it."""
    return _string(value) or _string(field(value, "text"))


def _link(words: str, address: str) -> str:
    """Return a link in Slack's markup."""
    target = re.sub(r"&(?!(?:amp|lt|gt);)", "&amp;", address)
    shown = re.sub(r"<(?:[^|<>]*\|)?([^<>]*)>", r"\1", words).replace("|", "¦")
    return f"<{target}|{shown}>" if shown and shown != target else f"<{target}>"


def _escaped(value: object) -> str:
    """Return the words of a rich text in Slack's markup: alone there, they are not escaped."""
    return html.escape(_string(value), quote=False)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(each for part in parts if (each := part.strip()))


_BLOCKS: Final[Mapping[str, Callable[[object], str]]] = {
    "section": _section,
    "header": lambda block: _text(field(block, "text")),
    "markdown": lambda block: _text(field(block, "text")),
    "context": _elements,
    "actions": _elements,
    "context_actions": lambda _: "",  # thumbs for the answer of an app
    "divider": lambda _: "",
    "image": _picture,
    "video": _video,
    "file": lambda _: "",  # the file itself comes with the message
    "rich_text": _rich,
    "table": _table,
    "data_table": _table,
}
