"""The one parser of Markdown: CommonMark with tables, strikethrough, check boxes and formulas, and without HTML."""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline, autolink, escape

from transports.markdown.addresses import take_addresses
from transports.markdown.emphasis import take_emphasis
from transports.markdown.formulas import take_formulas
from transports.markdown.tables import take_tables
from transports.markdown.tags import take_tags

SPOILER: Final = "spoiler"
DEFINITION: Final = "definition"
MAX_DEPTH: Final = 100
_AUTOLINK: Final = re.compile(r"<(?:(?:https?|ftp|tg)://|mailto:|tel:|[^\s<>:/]+@)", re.IGNORECASE)
_PATTERN: Final = re.compile(r"(?<=\w)\\\*\.\w")  # as in C:\logs\*.txt
_SPOILER: Final = re.compile(r"\|\|(?=[^\s|])((?:(?!\|\|).)*[^\s|])\|\|(?!\w)")


def make_parser() -> MarkdownIt:
    """Return a parser that loses nothing of a text; `reading.py` makes a tree of its tokens."""
    options = {"html": False, "maxNesting": MAX_DEPTH, "store_labels": True, "tasklists": True}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    # How the library lets one set them: an address stays as it was written, and each platform decides what it links.
    parser.normalizeLink = parser.normalizeLinkText = lambda url: url  # type: ignore[method-assign,assignment]
    parser.validateLink = lambda _: True  # type: ignore[method-assign,assignment]
    parser.inline.add_terminator_char("|")
    parser.inline.ruler.before("escape", SPOILER, _find_spoiler)
    parser.inline.ruler.at("escape", _escape)
    parser.inline.ruler.at("autolink", _find_autolink)
    parser.block.ruler.at("reference", _define)
    take_emphasis(parser)
    take_formulas(parser)
    take_addresses(parser)
    take_tables(parser)
    take_tags(parser)
    return parser


def _escape(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
    """Take what stands behind a backslash as it is, but where a path of Windows ends with a pattern."""
    return _PATTERN.match(state.src, state.pos) is None and escape(state, silent)


def _find_autolink(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - as above
    """Take an address in angle brackets; `<std::string>` is none."""
    return _AUTOLINK.match(state.src, state.pos) is not None and autolink(state, silent)


def _find_spoiler(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - as above
    text, begin = state.src, state.pos
    if not text.startswith("||", begin) or (begin and (text[begin - 1].isalnum() or text[begin - 1] == "|")):
        return False
    found = _SPOILER.match(text, begin, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("spoiler_open", "", 1)
        state.pos, old_end = begin + 2, state.posMax
        state.posMax = found.end() - 2
        state.md.inline.tokenize(state)
        state.posMax = old_end
        state.push("spoiler_close", "", -1)
    state.pos = found.end()
    return True


def _define(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 - as above
    """Note where a name leads, and keep the words that say so: where nothing refers to it, they are shown."""
    label = state.src[state.bMarks[start_line] + state.tShift[start_line] :][:2]
    if label == "[^" or not reference(state, start_line, end_line, silent):
        return False
    if not silent:
        token = state.push(DEFINITION, "", 0)
        token.map = [start_line, state.line]
        token.content = state.getLines(start_line, state.line, state.blkIndent, False).strip()  # noqa: FBT003
    return True


PARSER: Final = make_parser()
