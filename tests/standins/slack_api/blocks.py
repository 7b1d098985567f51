"""What Slack takes as blocks and as pieces of a stream, as strict as the reference of Block Kit."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from standins.slack_api.world import SlackError, World

MAX_MARKDOWN = 12_000
_CELLS = {"raw_text": {"type", "text"}, "raw_number": {"type", "value", "text"}}
_NEW = ("data_table", "data_visualization")


def check_blocks(blocks: list[dict[str, Any]], world: World | None = None) -> None:
    if len(blocks) > 50 or sum(block["type"] == "data_visualization" for block in blocks) > 2:
        raise SlackError("invalid_blocks")
    texts = [*_texts({"elements": [block for block in blocks if block["type"] == "rich_text"]})]
    if sum(len(block["text"]) for block in blocks if block["type"] == "markdown") + sum(map(len, texts)) > MAX_MARKDOWN:
        raise SlackError("msg_blocks_too_long")
    if sum(_size(block) for block in blocks if block["type"] == "data_table") > 10_000:
        raise SlackError("invalid_blocks")
    for block in blocks:
        if world is not None and block["type"] in _NEW and block["type"] in world.without:
            raise SlackError("invalid_blocks")
        if not _is_fit(block):
            raise SlackError("invalid_blocks")


def _texts(element: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of rich text, wherever they stand in it."""
    if "text" in element:
        yield element["text"]
    for each in element.get("elements", ()):
        yield from _texts(each)


def _is_fit_rich_text(block: dict[str, Any]) -> bool:
    """Return whether rich text is as docs.slack.dev, reference/block-kit/blocks/rich-text-block has it."""
    parts = block.get("elements") or []
    if not parts or set(block) - {"type", "block_id", "elements"}:
        return False
    return all(_is_fit_part(each) for each in parts)


def _is_fit_part(part: dict[str, Any]) -> bool:
    inner = part.get("elements") or []
    match part.get("type"):
        case "rich_text_list":
            sections = all(each.get("type") == "rich_text_section" and _is_fit_part(each) for each in inner)
            known = {"type", "style", "indent", "elements", "offset", "border"}
            return bool(inner) and sections and part.get("style") in ("bullet", "ordered") and not set(part) - known
        case "rich_text_section" | "rich_text_preformatted" | "rich_text_quote":
            return bool(inner) and all(_is_fit_word(each) for each in inner)
        case _:
            return False


def _is_fit_word(element: dict[str, Any]) -> bool:
    if element.get("type") == "date":  # "must provide an integer" is what Slack says of another timestamp
        known = {"type", "timestamp", "format", "timezone", "url", "fallback", "style"}
        has_tokens = re.search(r"\{(?:date|time|ago|day)\w*\}", element.get("format") or "")
        return type(element.get("timestamp")) is int and has_tokens is not None and not set(element) - known
    styles = set(element.get("style") or ()) - {"bold", "italic", "strike", "code", "underline"}
    fields = {"text": {"type", "text", "style"}, "link": {"type", "url", "text", "style", "unsafe"}}
    return bool(element.get("text")) and not styles and not set(element) - fields.get(element.get("type", ""), set())


def _is_fit(block: dict[str, Any]) -> bool:
    fits = _FITS.get(block["type"])
    return fits is not None and len(block.get("block_id", "")) <= 255 and fits(block)


def _are_fit_actions(block: dict[str, Any]) -> bool:
    names = [element.get("action_id") for element in block["elements"]]
    is_fit = 1 <= len(names) <= 25 and len(set(names)) == len(names)
    for element in block["elements"]:
        label = element["text"]["text"]
        is_fit = is_fit and 1 <= len(label) <= 75 and len(element.get("value") or "") <= 2000
    return is_fit


def _size(table: dict[str, Any]) -> int:
    return sum(len(cell.get("text", "")) for row in table["rows"] for cell in row)


def _is_fit_table(block: dict[str, Any]) -> bool:
    rows = block.get("rows") or []
    if set(block) - {"type", "block_id", "caption", "rows", "page_size", "row_header_column_index"}:
        return False
    if not block.get("caption") or not 2 <= len(rows) <= 101 or not 1 <= len(rows[0]) <= 20:
        return False
    if not 1 <= block.get("page_size", 5) <= 100 or any(len(row) != len(rows[0]) for row in rows):
        return False
    cells = [cell for row in rows for cell in row]
    are_fit = all(set(cell) == _CELLS.get(cell["type"]) and len(cell["text"]) >= 1 for cell in cells)
    return are_fit and all(isinstance(c["value"], int | float) for c in cells if c["type"] == "raw_number")


def _is_fit_chart(block: dict[str, Any]) -> bool:
    chart = block.get("chart") or {}
    if set(block) - {"type", "block_id", "title", "chart"} or not 1 <= len(block.get("title", "")) <= 50:
        return False
    if chart.get("type") == "pie":
        return 1 <= len(chart["segments"]) <= 6 and all(
            _is_point(each) and each["value"] > 0 for each in chart["segments"]
        )
    if chart.get("type") not in ("bar", "line", "area") or not 1 <= len(chart["series"]) <= 6:
        return False
    categories = chart["axis_config"]["categories"]
    names = [each["name"] for each in chart["series"]]
    if len(set(names)) != len(names) or any(len(each) > 20 for each in categories):
        return False
    return all(
        all(map(_is_point, each["data"])) and [point["label"] for point in each["data"]] == categories
        for each in chart["series"]
    )


def _is_point(point: dict[str, Any]) -> bool:
    return (
        set(point) == {"label", "value"} and 1 <= len(point["label"]) <= 20 and isinstance(point["value"], int | float)
    )


_FITS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "markdown": lambda block: bool(block["text"].strip()),
    "rich_text": _is_fit_rich_text,
    "section": lambda block: len(block["text"]["text"]) <= 3000,
    "header": lambda block: len(block["text"]["text"]) <= 150,
    "actions": _are_fit_actions,
    "context_actions": lambda block: 1 <= len(block["elements"]) <= 5,
    "data_table": _is_fit_table,
    "data_visualization": _is_fit_chart,
    "input": lambda _: True,
}


def check_task(chunk: dict[str, Any]) -> None:
    """Refuse a tool that is not told of as the reference says."""
    known = {"type", "id", "title", "status", "details", "output", "sources"}
    if set(chunk) - known or chunk["status"] not in ("pending", "in_progress", "complete", "error"):
        raise SlackError("invalid_chunks")
    if not 1 <= len(chunk["title"]) <= 256 or not chunk["id"]:
        raise SlackError("invalid_chunks")
    for source in chunk.get("sources") or []:
        if set(source) != {"type", "url", "text"} or source["type"] != "url" or not source["text"]:
            raise SlackError("invalid_chunks")
