"""From the parser's tokens to the tree."""

import logging
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    Formula,
    FormulaBlock,
    Heading,
    Inline,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Span,
    Spans,
    Table,
)
from transports.common.too_long_messages import SHORT_CHARACTERS, is_too_intricate
from transports.markdown.parser import MAX_DEPTH, PARSER

logger = logging.getLogger(__name__)

References = dict[str, Any]
"""Where links lead that are named: `[label]: address`."""


class _EveryName(Container[str]):
    def __contains__(self, name: object) -> bool:
        return True


EVERY_NAME: Final = _EveryName()
"""Stands for all names, where it is not known yet which ones the links of a text use."""

_STYLES: Final = {"strong": "bold", "em": "italic", "s": "strike"}
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,24}(?=[\s{,]|$)")
_LABEL: Final = re.compile(r"\[((?:\\.|[^\]\\])+)\]:", re.DOTALL)


def read_markdown(text: str, references: References | None = None, used: Container[str] = ()) -> Blocks:
    """Return a text as a tree; one that is too intricate, or that fails a library, is a paragraph as it is.

    Args:
        references: Names that other parts of the text define; those of this one are added.
        used: Names to which other parts of the text refer.
    """
    if not text.strip() or (len(text) > SHORT_CHARACTERS and is_too_intricate(text)):
        return (Paragraph((Span(text),)),) if text.strip() else ()
    try:
        env: dict[str, Any] = {"references": {} if references is None else references}
        tokens = PARSER.parse(text, env)
        if any(each.level >= MAX_DEPTH - 1 for each in tokens):
            return (Paragraph((Span(text),)),)
        return _Reader(text, tokens, used).blocks()
    except Exception:  # a border: what a model writes is shown, whatever a library makes of it
        logger.exception("markdown.not_read")
        return (Paragraph((Span(text),)),)


@lru_cache(maxsize=1)
def read_whole(text: str) -> Blocks:
    """Return a text that stands alone as a tree; one that is asked for again at once is read once."""
    return read_markdown(text)


def block_lines(text: str) -> list[int]:
    """Return the lines in which the blocks of a text begin."""
    return [
        each.map[0] for each in PARSER.parse(text) if each.level == 0 and each.map is not None and each.nesting >= 0
    ]


def used_names(text: str, references: References) -> set[str]:
    """Return the names to which links of a text refer."""
    return set(_names(PARSER.parse(text, {"references": references})))


def _names(tokens: Sequence[Token]) -> Iterator[str]:
    for each in tokens:
        if "label" in each.meta:
            yield str(each.meta["label"])
        if each.children:
            yield from _names(each.children)


class _Reader:
    def __init__(self, text: str, tokens: Sequence[Token], used: Container[str]) -> None:
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._tokens = tokens
        self._used_elsewhere, self._used_here = used, set(_names(tokens))
        self._at = 0

    def blocks(self, closing: str = "") -> Blocks:
        """Return the blocks up to a closing token, and pass it."""
        found: list[Block] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.type == closing:
                break
            before = self._lines[token.map[0] - 1] if found and token.map else ""
            found += self._block(token, is_close=before.strip(" \t>") != "")
        return tuple(found)

    def _block(self, token: Token, *, is_close: bool) -> Sequence[Block]:
        found: Sequence[Block]
        match token.type:
            case "paragraph_open":
                spans = self._inline()
                found = [Paragraph(spans, is_close)] if spans else []
            case "heading_open":
                found = [Heading(self._inline(), int(token.tag[1:]), is_close)]
            case "fence" | "code_block":
                found = _code(token, is_close=is_close)
            case "blockquote_open":
                found = [Quote(self.blocks("blockquote_close"), is_close)]
            case "bullet_list_open" | "ordered_list_open":
                found = [List(tuple(self._items(token.type.replace("open", "close"))), is_close)]
            case "table_open":
                found = [Table(tuple(self._rows()), tuple(token.meta["aligned"]), is_close)]
            case "hr":
                found = [Rule(is_close)]
            case "formula_block":
                found = [FormulaBlock(token.content, token.markup, is_close)]
            case "definition":
                found = [] if self._is_used(token.content) else [Paragraph((Span(token.content),), is_close)]
            case _:
                raise ValueError(f"no block begins with {token.type}")
        return found

    def _is_used(self, definition: str) -> bool:
        label = _LABEL.match(definition)
        name = normalizeReference(label[1]) if label is not None else ""
        return name in self._used_here or name in self._used_elsewhere

    def _inline(self) -> Spans:
        """Return the words of the block that was opened, and pass its end."""
        token = self._tokens[self._at]
        self._at += 2
        return read_spans(token.children or ())

    def _items(self, closing: str) -> Iterator[Item]:
        while (token := self._tokens[self._at]).type != closing:
            self._at += 1
            number = f"{token.info}{token.markup}" if token.info else None
            yield Item(self.blocks("list_item_close"), number, token.meta.get("checked"))
        self._at += 1

    def _rows(self) -> Iterator[tuple[Spans, ...]]:
        while self._tokens[self._at].type == "tr_open":
            self._at += 1
            cells: list[Spans] = []
            while (token := self._tokens[self._at]).type == "inline":
                cells.append(read_spans(token.children or ()))
                self._at += 1
            self._at += 1
            yield tuple(cells)
        self._at += 1


def _code(token: Token, *, is_close: bool) -> list[Block]:
    """Return a block of code; where more than a language is named, it stands above."""
    language, info = language_of(token)
    code = CodeBlock(token.content.removesuffix("\n"), language, is_close or bool(info))
    return [Paragraph((Span(info),), is_close), code] if info else [code]


def language_of(token: Token) -> tuple[str, str]:
    """Return the language of a block of code, and all that stands next to its fence if that is more than a language."""
    info = token.info.strip()
    language = _LANGUAGE.match(info)
    name = language[0] if language else ""
    return name, info if info != name else ""


def read_spans(tokens: Sequence[Token]) -> Spans:
    """Return the words of inline tokens, each run of one formatting once."""
    return _trimmed(list(_merged(_spans(tokens))))


def _trimmed(spans: list[Inline]) -> Spans:
    """Return spans without the line breaks that tags left at their ends."""
    while spans and isinstance(first := spans[0], Span) and first.text.startswith("\n"):
        spans[:1] = [replace(first, text=text)] if (text := first.text.lstrip("\n")) else []
    while spans and isinstance(last := spans[-1], Span) and last.text.endswith("\n"):
        spans[-1:] = [replace(last, text=text)] if (text := last.text.rstrip("\n")) else []
    return tuple(spans)


def _merged(spans: Iterator[Inline]) -> Iterator[Inline]:
    held: Span | None = None
    for each in spans:
        if isinstance(each, Formula):
            if held is not None:
                yield held
            held = None
            yield each
        elif held is not None and _style(held) == _style(each) and not held.code:
            held = replace(held, text=held.text + each.text)
        elif each.text:
            if held is not None:
                yield held
            held = each
    if held is not None:
        yield held


def _style(span: Span) -> tuple[object, ...]:
    return (span.bold, span.italic, span.code, span.strike, span.underline, span.spoiler, span.link)


def _spans(tokens: Sequence[Token]) -> Iterator[Inline]:
    styles = dict.fromkeys(("bold", "italic", "strike", "underline", "spoiler"), 0)
    links: list[tuple[str, str]] = []  # the address and the title of each
    words, is_empty = "", False
    for token in tokens:
        # An address that is the words of a link leads where that does.
        link = links[0][0] if links else None
        marked: dict[str, Any] = {name: True for name in styles if styles[name]}
        span = Span(token.content, link=link, **marked)
        words += token.content
        is_empty = is_empty and (token.type in ("link_close", "formula") or not (token.content or token.children))
        match token.type:
            case "text" | "text_special":
                yield span
            case "softbreak" | "hardbreak":
                yield replace(span, text="\n")
            case "code_inline":
                yield replace(span, code=True)
            case "formula":
                yield Formula(token.content, token.markup)
            case "image":
                yield from _picture(token, span.link)
            case "link_open":
                is_empty = is_empty or not links
                if links or token.attrs["href"]:
                    links.append((str(token.attrs["href"]), str(token.attrs.get("title", ""))))
                words = ""
            case "link_close" if links:
                yield replace(span, text=links[0][0] if is_empty and len(links) == 1 else "")
                _, title = links.pop()
                yield from (replace(span, text=each, link=None) for each in _titled(title, words))
            case _:
                _count(token, styles)


def _titled(title: str, words: str) -> Iterator[str]:
    """Yield the title of a link behind its words, unless these say the same: in a chat nothing shows it otherwise."""
    if title.strip() and title != words:
        yield f" ({title})"


def _count(token: Token, styles: dict[str, int]) -> None:
    """Note a formatting that begins or ends."""
    name, _, end = token.type.rpartition("_")
    style = _STYLES.get(name, name)
    if style in styles:
        styles[style] += 1 if end == "open" else -1


def _picture(token: Token, outer: str | None) -> Iterator[Inline]:
    """Yield what a picture shows, as a link to it; where the link around it leads, behind it."""
    source = str(token.attrs["src"])
    words = read_spans(token.children or ())
    label = "".join(each.text if isinstance(each, Span) else each.written for each in words).replace("\n", " ")
    yield Span(label if label.strip() else source, link=source)
    if outer is not None and outer != source:
        yield from (Span(" ("), Span(outer, link=outer), Span(")"))
    yield from map(Span, _titled(str(token.attrs.get("title", "")), label))
