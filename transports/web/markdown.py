"""Markdown as HTML that holds nothing but text, marks, links, code, tables and formulas: section by section."""

import html
import re
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from typing import Final

from markdown_it.common.normalize_url import normalizeLink
from markdown_it.common.utils import escapeHtml

from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    FormattedText,
    Formula,
    FormulaBlock,
    Heading,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Span,
    Spans,
    Table,
)
from transports.common.too_long_messages import is_too_intricate
from transports.markdown.links import write_marked
from transports.markdown.mathml import show_formula
from transports.markdown.reading import EVERY_NAME, References, read_markdown, used_names
from transports.markdown.sections import split_sections
from transports.web.highlighting import highlight

_LONGEST_MARKDOWN: Final = 30_000  # characters of a section; a longer one is shown as it is
_LONGEST_KEPT: Final = 4_000  # characters of a section that is kept ready
_SCHEMES: Final = ("http://", "https://", "mailto:", "tel:")
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,24}")
_OPENING: Final = re.compile(r" {0,3}(?:`{3,}|~{3,})[ \t]*(?P<info>[^\n]*)\n?")
_CLOSING: Final = re.compile(r" {0,3}(?:`{3,}|~{3,})[ \t]*")
_STYLES: Final = {"bold": "strong", "italic": "em", "strike": "s", "underline": "u", "code": "code"}
# It opens elsewhere, and tells nobody where from.
_LINK: Final = ' href="{}" target="_blank" rel="noopener noreferrer nofollow"'
_BOXES: Final = {
    None: "",
    True: '<input type="checkbox" disabled="" checked="" aria-label="Done" /> ',
    False: '<input type="checkbox" disabled="" aria-label="To do" /> ',
}


def render_markdown(text: str) -> list[str]:
    """Return a text as blocks of HTML, one for each of its sections."""
    sections, references, used = split_sections(text), References(), set[str]()
    if "]:" in text:  # links that are named: what comes before a name may lead there
        for each in sections:
            if "]:" in each:
                _render(each, references, EVERY_NAME)
        for each in sections:
            used |= used_names(each, references) if _is_formatted(each) else set()
    return [shown for each in sections if (shown := render_section(each, references, used))]


def render_section(section: str, references: References, used: Container[str] = EVERY_NAME) -> str:
    """Return a section as HTML, and note where the links lead that it names.

    Args:
        used: The names that links of the text use; what other names lead to is shown as words.
    """
    if not references and "[" not in section and len(section) <= _LONGEST_KEPT:
        return _render_kept(section)
    return _render(section, references, used)


@lru_cache(maxsize=512)
def _render_kept(section: str) -> str:
    return _render(section, {}, EVERY_NAME)


def _is_formatted(section: str) -> bool:
    return len(section) <= _LONGEST_MARKDOWN and not is_too_intricate(section)


def _render(section: str, references: References, used: Container[str]) -> str:
    if _is_formatted(section):
        return render_blocks(read_markdown(section, references, used))
    if opening := _OPENING.match(section):
        code, _, last = section[opening.end() :].rpartition("\n")
        language = _LANGUAGE.match(opening["info"])
        return _show_code(
            f"{code}\n" if _CLOSING.fullmatch(last) else f"{code}\n{last}", language[0] if language else ""
        )
    return f'<p class="plain">{html.escape(section, quote=False)}</p>\n'


def render_blocks(blocks: Blocks) -> str:
    """Return a tree as HTML."""
    return "".join(map(_show, blocks))


def _show(block: Block) -> str:
    match block:
        case Paragraph(spans):
            shown = f"<p>{_show_spans(spans)}</p>\n"
        case Heading(spans, level):
            shown = f"<h{level}>{_show_spans(spans)}</h{level}>\n"
        case CodeBlock(text, language):
            shown = _show_code(f"{text}\n" if text else "", language)
        case FormulaBlock(tex):
            shown = f'<div class="formula" tabindex="0">{show_formula(tex, is_block=True)}</div>\n'
        case Rule():
            shown = "<hr />\n"
        case Quote(inner):
            shown = f"<blockquote>\n{render_blocks(inner)}</blockquote>\n"
        case Table(rows, aligned):
            shown = "".join(_table(rows, aligned))
        case List(items):
            shown = _list(items)
    return shown


def _show_code(code: str, language: str) -> str:
    """Return a block of code in a frame, with its language above it."""
    caption = f"<figcaption>{html.escape(language, quote=False)}</figcaption>"
    shown = highlight(code, language.lower())
    return f'<figure class="code">{caption}<pre tabindex="0" dir="ltr"><code>{shown}</code></pre></figure>\n'


def _list(items: Sequence[Item]) -> str:
    """Return points; where they are numbered, each has the number that was written."""
    numbers = [int(each.number[:-1]) if each.number is not None else None for each in items]
    shown = [f"<li{_task(each)}{_value(numbers, at)}>{_show_item(each)}</li>\n" for at, each in enumerate(items)]
    if numbers[0] is None:
        return f"<ul>\n{''.join(shown)}</ul>\n"
    start = "" if numbers[0] == 1 else f' start="{numbers[0]}"'
    return f"<ol{start}>\n{''.join(shown)}</ol>\n"


def _value(numbers: Sequence[int | None], at: int) -> str:
    """Return the attribute of a point whose number does not follow the one before."""
    number, before = numbers[at], numbers[at - 1] if at else None
    return "" if number is None or before is None or number == before + 1 else f' value="{number}"'


def _task(item: Item) -> str:
    return "" if item.is_checked is None else ' class="task"'


def _show_item(item: Item) -> str:
    first, rest = (item.blocks[0], item.blocks[1:]) if item.blocks else (Paragraph(()), ())
    box = _BOXES[item.is_checked]
    shown = _show_spans(first.spans) if isinstance(first, Paragraph) else f"\n{_show(first)}"
    return f"{box}{shown}" + (f"\n{render_blocks(rest)}" if rest else "")


def _table(rows: Sequence[Sequence[Spans]], aligned: Sequence[str]) -> Iterator[str]:
    columns = max(map(len, rows))
    yield '<div class="table" tabindex="0"><table>\n'
    for number, row in enumerate(rows):
        kind = "td" if number else "th"
        cells = [
            f"<{kind}{f' class={side!r}' if side else ''}>".replace("'", '"') + f"{_show_spans(cell)}</{kind}>\n"
            for cell, side in zip([*row, *[()] * (columns - len(row))], [*aligned, *[""] * columns], strict=False)
        ]
        line = f"<tr>\n{''.join(cells)}</tr>\n"
        yield f"<thead>\n{line}</thead>\n" if not number else f"<tbody>\n{line}" if number == 1 else line
    yield "</tbody>\n</table>\n</div>" if len(rows) > 1 else "</table>\n</div>"


def _show_spans(spans: Spans) -> str:
    """Return words with the elements around them."""
    return write_marked(spans, _checked_link, _elements, _words)


def _elements(span: Span) -> list[tuple[str, str]]:
    """Return what opens and closes each element around a span."""
    link = [] if span.link is None else [(f"<a{_LINK.format(escapeHtml(span.link))}>", "</a>")]
    time = [] if span.at is None else [(f'<time datetime="{escapeHtml(span.at)}">', "</time>")]
    styles = [element for name, element in _STYLES.items() if getattr(span, name)]
    return link + time + [(f"<{element}>", f"</{element}>") for element in styles]


def _words(inline: Span | Formula) -> str:
    if isinstance(inline, Formula):
        return f'<span class="math">{show_formula(inline.tex, is_block=False)}</span>'
    text = escapeHtml(inline.text)
    if inline.code:
        return text
    return f"||{text}||" if inline.spoiler and text else text.replace("\n", "<br />\n")


def _checked_link(address: str) -> str | None:
    """Return an address to which a page may lead, or None."""
    return normalizeLink(address) if address.strip().lower().startswith(_SCHEMES) else None


def render_formatted(text: FormattedText) -> list[str]:
    """Return a formatted text as blocks of HTML in which every space is seen; no words can be an element."""
    shown = (render_blocks((each,)) for each in text.blocks)
    spaced = (each.replace("<p>", '<p class="plain">').replace("<li>", '<li class="plain">') for each in shown)
    return [each.replace("<br />\n", "<br />") for each in spaced]
