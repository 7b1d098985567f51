"""From a model's markdown to the blocks of a rich message: where a table, a formula or a long text gains by it.

Blocks are made here, and markdown is never given to Telegram to read: what a model writes could hold pictures to be
fetched, or buttons. Source: core.telegram.org/bots/api#rich-messages.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyromark

from transports.cjk_emphasis import mark_emphasis, take_marks_off
from transports.telegram.outgoing.entities import checked_link
from transports.telegram.outgoing.formatting import OPTIONS, count_sources, escape
from transports.telegram.outgoing.splitting import units
from transports.too_long_messages import is_too_intricate

logger = logging.getLogger(__name__)

# What Telegram publishes as the limits of rich messages; quotations, items and rows count as blocks.
MAX_UNITS: Final = 32_768
MAX_BLOCKS: Final = 500
MAX_DEPTH: Final = 16
MAX_COLUMNS: Final = 20
_STYLES: Final = {"Strong": "bold", "Emphasis": "italic", "Strikethrough": "strikethrough"}
_FORMULA: Final = "mathematical_expression"

RichText = Any  # a string, a list of such texts, or an object with a type. Source: core.telegram.org/bots/api#richtext
Block = dict[str, Any]


@dataclass(slots=True)
class Node:
    """A piece of markdown with what stands in it."""

    kind: str
    value: Any
    children: list["Node | str"]


def as_rich(markdown: str, *, is_long: bool) -> dict[str, Any] | None:
    """Return a text as a rich message, or None if it gains nothing, or is more than one can hold."""
    if len(markdown) > MAX_UNITS or is_too_intricate(markdown):
        return None
    try:
        tree = _parse(mark_emphasis(escape(markdown)))
        if not is_long and not any(each in ("Table", "InlineMath", "DisplayMath") for each in _kinds(tree)):
            return None
        blocks = _fold_sources(list(_blocks(tree)), markdown)
    except Exception:  # a border: what cannot be converted is sent in its plain form
        logger.exception("telegram.rich_failed")
        return None
    return {"blocks": blocks} if _fits(blocks) else None


def _parse(markdown: str) -> list[Node | str]:
    top = Node("", None, [])
    open_nodes = [top]
    for event in pyromark.events(markdown, options=OPTIONS):
        kind, value = next(iter(event.items())) if isinstance(event, dict) else (event, None)
        if kind == "Start":
            name, value = next(iter(value.items())) if isinstance(value, dict) else (value, None)
            node = Node(str(name), value, [])
            open_nodes[-1].children.append(node)
            open_nodes.append(node)
        elif kind == "End":
            open_nodes.pop()
        elif kind in ("Text", "InlineHtml", "Html"):
            open_nodes[-1].children.append(take_marks_off(str(value)))
        elif kind in ("SoftBreak", "HardBreak"):
            open_nodes[-1].children.append("\n")
        else:  # Code, InlineMath, DisplayMath, Rule, TaskListMarker
            value = take_marks_off(value) if isinstance(value, str) else value
            open_nodes[-1].children.append(Node(kind, value, []))
    return top.children


def _kinds(nodes: Sequence[Node | str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Node):
            yield node.kind
            yield from _kinds(node.children)


def _blocks(nodes: Sequence[Node | str]) -> Iterator[Block]:
    """Yield the blocks of what stands below each other; words between them are paragraphs."""
    words: list[Node | str] = []
    for node in nodes:
        if isinstance(node, Node) and node.kind in _MAKERS:
            yield from _paragraphs(words)
            words = []
            yield from _MAKERS[node.kind](node)
        else:
            words.append(node)
    yield from _paragraphs(words)


def _paragraphs(nodes: Sequence[Node | str]) -> Iterator[Block]:
    """Yield a paragraph; formulas that stand alone are blocks of their own."""
    words: list[Node | str] = []
    for node in [*nodes, None]:
        is_formula = isinstance(node, Node) and node.kind == "DisplayMath"
        if node is not None and not is_formula:
            words.append(node)
            continue
        text = _text(words)
        if _plain(text).strip():
            yield {"type": "paragraph", "text": text}
        words = []
        if isinstance(node, Node) and node.value.strip():
            yield {"type": _FORMULA, "expression": node.value.strip()}


def _paragraph(node: Node) -> Iterator[Block]:
    return _paragraphs(node.children)


def _heading(node: Node) -> Iterator[Block]:
    text = _text(node.children)
    if _plain(text).strip():
        yield {"type": "heading", "text": text, "size": int(str(node.value["level"])[1:])}


def _code(node: Node) -> Iterator[Block]:
    text = _plain(_text(node.children)).rstrip("\n")
    language = str(node.value.get("Fenced") or "").split(" ")[0] if isinstance(node.value, Mapping) else ""
    language = take_marks_off(language)
    if text.strip():
        yield {"type": "pre", "text": text} | ({"language": language} if language else {})


def _rule(_: Node) -> Iterator[Block]:
    yield {"type": "divider"}


def _quote(node: Node) -> Iterator[Block]:
    blocks = list(_blocks(node.children))
    if blocks:
        yield {"type": "blockquote", "blocks": blocks}


def _list(node: Node) -> Iterator[Block]:
    items = []
    for number, each in enumerate(each for each in node.children if isinstance(each, Node)):
        marks = [mark.value for mark in each.children if isinstance(mark, Node) and mark.kind == "TaskListMarker"]
        item: Block = {"blocks": list(_blocks(each.children)) or [{"type": "paragraph", "text": " "}]}
        if marks:
            item |= {"has_checkbox": True} | ({"is_checked": True} if marks[0] else {})
        elif node.value is not None:
            item |= {"type": "1", "value": int(node.value) + number}
        items.append(item)
    if items:
        yield {"type": "list", "items": items}


def _table(node: Node) -> Iterator[Block]:
    aligned = [str(each).lower() for each in node.value or ()]
    rows = [
        [
            _cell(cell, aligned[place] if place < len(aligned) else "", is_header=row.kind == "TableHead")
            for place, cell in enumerate(row.children)
            if isinstance(cell, Node)
        ]
        for row in node.children
        if isinstance(row, Node)
    ]
    if rows:
        yield {"type": "table", "cells": rows, "is_bordered": True}


def _cell(node: Node, align: str, *, is_header: bool) -> Block:
    cell = {"text": _text(node.children), "align": align if align in ("center", "right") else "left", "valign": "top"}
    return cell | ({"is_header": True} if is_header else {})


_MAKERS: Final = {
    "Paragraph": _paragraph,
    "Heading": _heading,
    "CodeBlock": _code,
    "Rule": _rule,
    "BlockQuote": _quote,
    "List": _list,
    "Table": _table,
    "HtmlBlock": _paragraph,
}


def _text(nodes: Sequence[Node | str]) -> RichText:
    """Return words with their formatting; plain words are a string."""
    parts: list[RichText] = []
    for node in nodes:
        part = _part(node)
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif part != "":
            parts.append(part)
    return parts[0] if len(parts) == 1 else parts or ""


def _part(node: Node | str) -> RichText:
    if isinstance(node, str):
        return node
    if node.kind in ("InlineMath", "DisplayMath"):
        return {"type": _FORMULA, "expression": node.value}
    if node.kind == "TaskListMarker":
        return ""
    inner = _text(node.children) if node.kind != "Code" else str(node.value)
    if node.kind == "Code":
        return {"type": "code", "text": inner} if inner.strip() else inner
    if node.kind in ("Link", "Image"):
        return _link(inner, str(node.value["dest_url"]))
    style = _STYLES.get(node.kind)
    return inner if style is None or not _plain(inner).strip() else {"type": style, "text": inner}


def _link(label: RichText, address: str) -> RichText:
    """Return a link, or its label with the address behind it where Telegram would refuse that."""
    address = take_marks_off(address)
    url = checked_link(address)
    if url is not None:
        return {"type": "url", "text": label if _plain(label).strip() else url, "url": url}
    said = address.strip()
    return label if not said or said.startswith("#") or said in _plain(label) else [label, f" ({said})"]


def _plain(text: RichText) -> str:
    """Return the letters of a text."""
    if isinstance(text, str):
        return text
    if isinstance(text, list):
        return "".join(map(_plain, text))
    return str(text["expression"]) if text["type"] == _FORMULA else _plain(text["text"])


def _fold_sources(blocks: list[Block], markdown: str) -> list[Block]:
    """Return blocks with the pages that an answer rests on in a quotation that opens when it is pressed."""
    last = blocks[-1] if blocks else {}
    if not count_sources(markdown) or last.get("type") != "list":
        return blocks
    lines: list[RichText] = []
    for number, item in enumerate(last["items"], 1):
        lines += ["\n" if lines else "", f"{item.get('value', number)}. ", item["blocks"][0].get("text", "")]
    return [*blocks[:-1], {"type": "expandable_blockquote", "text": [each for each in lines if each != ""]}]


def _fits(blocks: Sequence[Block]) -> bool:
    """Return whether Telegram takes so much in one message."""
    if not blocks:
        return False
    count, letters = 0, 0
    for value, depth in _walk(list(blocks), 1):
        if depth > MAX_DEPTH:
            return False
        if isinstance(value, str):
            letters += units(value)
        elif isinstance(value, Mapping) and ("type" in value or "blocks" in value):
            count += 1 + len(value.get("cells", ()))
            if any(len(row) > MAX_COLUMNS for row in value.get("cells", ())):
                return False
    return count <= MAX_BLOCKS and letters <= MAX_UNITS and len(json.dumps(blocks)) <= 4 * MAX_UNITS


def _walk(value: Any, depth: int) -> Iterator[tuple[Any, int]]:
    """Yield everything that a block holds, with how deep it stands."""
    if isinstance(value, Mapping):
        yield value, depth
        inner = [each for name, each in value.items() if name not in ("type", "align", "valign", "language")]
        for each in inner:
            yield from _walk(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(each, depth)
    else:
        yield value, depth
