"""Rich messages (Bot API 10.1 to 10.3): sent, edited, and shown as drafts; blocks alone, as the bot sends them.

Source: core.telegram.org/bots/api#rich-messages, and what people report of the real server's answers.
"""

import time
from typing import Any

from standins.bot_api.calls import ApiError, Call, bad_request
from standins.bot_api.chats import Draft
from standins.bot_api.markup import LinkError, check_link, utf16_length
from standins.bot_api.messages import NOT_MODIFIED, _own, place
from standins.bot_api.methods import Bench, method
from standins.bot_api.replies import keyboard
from standins.bot_api.rich_words import text_of, words_of

MAX_UNITS, MAX_BLOCKS, MAX_DEPTH, MAX_COLUMNS = 32_768, 500, 16, 20
STYLES = {"bold", "italic", "underline", "strikethrough", "spoiler", "code", "marked", "subscript", "superscript"}
FIELDS = {
    "paragraph": {"text"},
    "heading": {"text", "size"},
    "pre": {"text"},
    "divider": set(),
    "mathematical_expression": {"expression"},
    "list": {"items"},
    "blockquote": {"blocks"},
    "expandable_blockquote": {"text"},
    "table": {"cells"},
    "thinking": {"text"},
}


def rich_message(call: Call, *, is_draft: bool = False) -> dict[str, Any]:
    """Return the rich message of a call, as it is shown.

    Raises:
        ApiError: the Bot API would refuse it.
    """
    given = call.object("rich_message", dict, "rich message") or {}
    forms = [name for name in ("html", "markdown", "blocks") if given.get(name)]
    if len(forms) != 1:
        raise bad_request("RICH_MESSAGE_CONTENT_REQUIRED")
    if forms != ["blocks"]:
        raise bad_request("the stand-in reads blocks alone")
    count = sum(_check_block(block, 1, is_draft=is_draft) for block in given["blocks"])
    if count > MAX_BLOCKS:
        raise bad_request("RICH_MESSAGE_BLOCKS_TOO_MANY")
    if utf16_length(words_of(given)) > MAX_UNITS:
        raise bad_request("RICH_MESSAGE_TEXT_TOO_LONG")
    return {"rich_message": given}


def _refuse(reason: str) -> ApiError:
    return bad_request(f"can't parse InputRichBlock: {reason}")


def _check_block(block: Any, depth: int, *, is_draft: bool) -> int:
    """Return how many blocks a block counts as."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in FIELDS or (kind == "thinking" and not is_draft):
        raise _refuse(f'type "{kind}" is unsupported')
    if depth > MAX_DEPTH:
        raise bad_request("RICH_MESSAGE_DEPTH_TOO_LARGE")
    for missing in sorted(FIELDS[kind] - block.keys()):
        raise _refuse(f'Can\'t find field "{missing}"')
    if "text" in block:
        _check_text(block["text"], depth)
    if kind == "heading" and block["size"] not in range(1, 7):
        raise _refuse("invalid heading size")
    if kind == "list":
        return 1 + sum(_check_item(item, depth, is_draft=is_draft) for item in block["items"])
    if kind == "blockquote":
        return 1 + sum(_check_block(inner, depth + 1, is_draft=is_draft) for inner in block["blocks"])
    return 1 + (_check_table(block, depth) if kind == "table" else 0)


def _check_item(item: dict[str, Any], depth: int, *, is_draft: bool) -> int:
    if not item.get("blocks"):
        raise _refuse('Can\'t find field "blocks"')
    if item.get("type") not in (None, "a", "A", "i", "I", "1"):
        raise _refuse("invalid list item type")
    return 1 + sum(_check_block(inner, depth + 1, is_draft=is_draft) for inner in item["blocks"])


def _check_table(block: dict[str, Any], depth: int) -> int:
    for row in block["cells"]:
        if len(row) > MAX_COLUMNS:
            raise bad_request("RICH_MESSAGE_TABLE_TOO_WIDE")
        for cell in row:
            if cell.get("align") not in ("left", "center", "right") or cell.get("valign") not in (
                "top",
                "middle",
                "bottom",
            ):
                raise bad_request("can't parse PageBlockTableCell: invalid alignment")
            _check_text(cell.get("text", ""), depth)
    return len(block["cells"])


def _check_text(text: Any, depth: int) -> None:
    if isinstance(text, str):
        return
    if isinstance(text, list):
        for each in text:
            _check_text(each, depth)
        return
    kind = text.get("type") if isinstance(text, dict) else None
    if kind == "mathematical_expression" and isinstance(text.get("expression"), str):
        return
    if kind not in STYLES | {"url", "date_time"} or depth > MAX_DEPTH:
        raise bad_request("can't parse RichText: Unsupported rich text type")
    if kind == "url":
        try:
            check_link(str(text.get("url")))
        except LinkError as error:
            raise bad_request(f"can't parse RichText: {error}") from error
    if not text_of(text["text"]).strip():
        raise bad_request("can't parse RichText: text is empty")
    _check_text(text["text"], depth + 1)


@method("sendRichMessage")
def send_rich_message(bench: Bench, call: Call) -> dict[str, Any]:
    return place(bench, call, rich_message(call)).wire


@method("sendRichMessageDraft")
def send_rich_message_draft(bench: Bench, call: Call) -> bool:
    shown = rich_message(call, is_draft=True)
    chat = bench.world.reachable(call)
    if not chat.is_private:
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    if not call.integer("draft_id"):
        raise bad_request("draft_id must be non-zero")
    words = words_of(shown["rich_message"])
    thread_id = bench.world.thread(chat, call)
    bench.world.draft(chat, Draft(call.integer("draft_id"), words, (), thread_id, time.monotonic()), call_seq=call.seq)
    return True


_edit_text = method.methods["editmessagetext"]


@method("editMessageText")
def edit_message_text(bench: Bench, call: Call) -> dict[str, Any]:
    """Edit a message into a rich one or back; a text alone is edited as before."""
    is_rich = "rich_message" in call.params
    if is_rich and call.text("text"):
        raise bad_request("text and rich_message can't be used together")
    chat, message = _own(bench, call, "edit")
    was_rich = "rich_message" in message.wire
    if not is_rich and not was_rich:
        return _edit_text(bench, call)
    if not was_rich and "text" not in message.wire:
        raise bad_request("there is no text in the message to edit")
    if not is_rich:
        message.wire = {name: value for name, value in message.wire.items() if name != "rich_message"} | {"text": ""}
        return _edit_text(bench, call)
    replaced = {"text", "entities", "rich_message", "reply_markup", "edit_date"}
    kept = {name: value for name, value in message.wire.items() if name not in replaced}
    wire = kept | rich_message(call) | keyboard(call)
    if wire == {name: value for name, value in message.wire.items() if name != "edit_date"}:
        raise bad_request(NOT_MODIFIED)
    bench.world.edit(chat, message, wire, call_seq=call.seq)
    return message.wire
