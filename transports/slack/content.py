"""What people see of a Slack message besides its text: blocks and attachments, in the order in which Slack shows them.

Alerts and other apps often leave the text empty. What comes out is Slack's own markup, with `<@U1>` and `<url|label>`,
for `reading.readable` to write out. Sources: docs.slack.dev/reference/block-kit/blocks and
docs.slack.dev/legacy/legacy-messaging/legacy-secondary-message-attachments.
"""

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from botservice.conversation.context_keys import ContextKeys
from botservice.core.message_references import LONGEST_REFERENCE, Reference, ReferenceKind
from botservice.core.messages import Author
from botservice.storage.database import Storage
from transports.common.json_fields import field, items_of
from transports.slack.inbound_events import SlackMessage, account_of, timestamp, word
from transports.slack.queries import list_said_by_bot
from transports.slack.workspaces import Workspace

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
    return _lines([spoken_in(message), words_of_attachments(message)])


def spoken_in(message: object) -> str:
    """Return the text of a message, or what stands in its place."""
    text, blocks = _string(field(message, "text")), items_of(message, "blocks")
    is_typed = all(field(each, "type") == "rich_text" for each in blocks)
    return text if text and is_typed else _lines(map(_shown, blocks)) or text


def words_of_attachments(message: object) -> str:
    """Return what the attachments of a message show, without messages that it shares."""
    found = (each for each in items_of(message, "attachments") if isinstance(each, Mapping))
    return _lines(_attachment(each) for each in found if not is_shared(each))


def is_shared(attachment: Mapping[str, Any]) -> bool:
    """Return whether an attachment shows another message."""
    return bool(attachment.get("is_msg_unfurl") or attachment.get("is_share"))


def words_of_shared(shared: Mapping[str, Any]) -> str:
    """Return what a shared message says."""
    inner = [field(each, "message") for each in items_of(shared, "message_blocks")]
    said = _string(shared.get("text")) or _lines(spoken_in(each) for each in inner) or _lines(map(_shown, _of(shared)))
    return _lines([said, words_of_attachments(shared), _fields(shared)]) or _string(shared.get("fallback"))


def _attachment(shown: Mapping[str, Any]) -> str:
    author, title = (_linked(shown, name, f"{name.partition('_')[0]}_link") for name in ("author_name", "title"))
    parts = [
        _string(shown.get("pretext")),
        _linked(shown, "service_name", "service_url") if shown.get("service_name") != shown.get("author_name") else "",
        author,
        title,
        _string(shown.get("text")),
        _fields(shown),
        *map(_shown, _of(shown)),
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
    return _shown(cell).replace("\n", " ") or (str(value) if isinstance(value, int | float) else "")


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


def _shown(value: object, depth: int = 0) -> str:
    """Return what a block or an element shows; of a kind that is not known, whatever words are in it."""
    if isinstance(value, str) or depth > _DEEPEST:
        return _string(value)
    if isinstance(value, list):
        return _lines(_shown(each, depth + 1) for each in value)
    if not isinstance(value, Mapping):
        return ""
    show = _BLOCKS.get(str(value.get("type")))
    if show is not None:
        return show(value)
    if isinstance(value.get("url"), str) and (words := _text(value.get("text"))):
        return _link(words, value["url"])
    return _lines(_shown(value.get(name), depth + 1) for name in _WORDS)


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


def _row(block: object) -> str:
    """Return elements next to each other."""
    return " ".join(filter(None, (_shown(each) for each in items_of(block, "elements"))))


_BLOCKS: Final[Mapping[str, Callable[[object], str]]] = {
    "context": _row,
    "actions": _row,
    "context_actions": lambda _: "",  # thumbs for the answer of an app
    "image": _picture,
    "video": _video,
    "file": lambda _: "",  # the file itself comes with the message
    "rich_text": _rich,
    "table": _table,
    "data_table": _table,
    "button": _button,
    "workflow_button": _button,
}


_PLATFORM = "slack"


def shared_in(event: object) -> list[Mapping[str, Any]]:
    """Return what Slack shows of the messages that a message shares or links to."""
    found = (each for each in items_of(event, "attachments") if isinstance(each, Mapping))
    return [each for each in found if is_shared(each)]


def read_shared(shared: Mapping[str, Any], said: str, workspace: Workspace) -> Reference:
    """Return a shared message as what its sharer holds of another; said is its text as people see it."""
    user, name = word(shared.get("author_id")), shared.get("author_name")
    author = _author(user, name if isinstance(name, str) else None, workspace)
    is_own = user == workspace.bot_user_id or (
        workspace.bot_id is not None and shared.get("bot_id") == workspace.bot_id
    )
    return Reference(ReferenceKind.SHARE, author, said[:LONGEST_REFERENCE], timestamp(shared.get("ts")), is_own)


async def read_replied(message: SlackMessage, storage: Storage | None) -> tuple[Reference, ...]:
    """Return the bot's message that a message stands below, which Slack only names.

    That is of another conversation where a thread begins below what the bot said in a channel.
    """
    if storage is None or not message.is_reply:
        return ()
    keys = ContextKeys.of(message.keys(is_thread=False))
    said = await storage.read(lambda connection: list_said_by_bot(connection, keys, message.root_ts))
    ts = message.root_ts if message.is_direct else None  # carried over from elsewhere, it is forgotten by its words
    return tuple(
        Reference(ReferenceKind.REPLY, None, (each or "")[:LONGEST_REFERENCE], ts, is_of_assistant=True)
        for each in said[:1]
    )


def question_about(view: object) -> Mapping[str, Any]:
    """Return what a dialog keeps of the message that it was opened for; nothing where it keeps nothing."""
    kept = field(view, "private_metadata")
    try:
        about = json.loads(kept) if isinstance(kept, str) else None
    except (ValueError, RecursionError):
        return {}
    return about if isinstance(about, Mapping) else {}


def read_about(about: Mapping[str, Any], name: str | None, said: str, workspace: Workspace) -> Reference:
    """Return the message that a question is about as what the question holds of another."""
    user = word(about.get("user"))
    author = _author(user, name, workspace)
    is_own = user is not None and user == workspace.bot_user_id
    return Reference(ReferenceKind.ABOUT, author, said, timestamp(about.get("ts")), is_own)


def _author(user: str | None, name: str | None, workspace: Workspace) -> Author | None:
    if user is None and name is None:
        return None
    return Author(_PLATFORM, None if user is None else account_of(workspace.team_id, user), name or user)
