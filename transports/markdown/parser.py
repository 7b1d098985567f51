"""The one parser of Markdown: CommonMark with tables, strikethrough, check boxes, formulas and bare addresses."""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline, autolink, escape

from transports.markdown.emphasis import take_emphasis
from transports.markdown.formulas import line_of, take_formulas
from transports.markdown.tags import take_tags

_SCHEME: Final = re.compile(r"(?<![A-Za-z0-9+.-])https?$", re.IGNORECASE)
_LONGEST_SCHEME: Final = len("https")
# What RFC 3986 forbids in an address ends it, and so do signs that close a sentence in other scripts.
_ENDS: Final = r"\s<>\[\]{}|\\^`\"“”„«»。，、；：！？（）【】「」『』《》〈〉،؛؟।…"  # noqa: RUF001
_LONGEST: Final = 2_000  # characters: a longer one stays text, with all that is in it
_REST: Final = re.compile(rf"://[^\W_](?:(?!&[lg]t;)[^{_ENDS}])*")
_MARKS: Final = frozenset("?!.,:;*_~'’")


def take_addresses(parser: MarkdownIt) -> None:
    """Have a parser make links of addresses that begin with http:// or https://."""
    parser.inline.ruler.before("newline", "address", _take)


def _take(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - how the library calls it
    """Make a link of the address whose scheme was just read as text, or pass it: none in it is one for itself."""
    if not state.src.startswith("://", state.pos) or state.linkLevel > 0:
        return False
    scheme = _SCHEME.search(state.pending[-_LONGEST_SCHEME - 1 :])
    rest = None if scheme is None else _REST.match(state.src, state.pos, state.posMax)
    if scheme is None or rest is None:
        return False
    written = f"{scheme[0]}{_without_end(rest[0])}"
    shown = unescapeAll(written)  # models copy addresses out of pages, with &amp; in them
    target = state.md.normalizeLink(shown)
    is_escaped = state.src.startswith("\\", rest.end())  # it goes on with an escaped sign
    if is_escaped or len(rest[0]) > _LONGEST or not state.md.validateLink(target):
        if not silent:
            state.pending += rest[0]
        state.pos = rest.end()
        return True
    if not silent:
        state.pending = state.pending[: -len(scheme[0])]
        state.push("link_open", "a", 1).attrs = {"href": target}
        state.push("text", "", 0).content = shown
        state.push("link_close", "a", -1)
    state.pos += len(written) - len(scheme[0])
    return True


def _without_end(rest: str) -> str:
    """Return the rest of an address without the marks and brackets of the text around it."""
    unopened, end = rest.count(")") - rest.count("("), len(rest)
    while rest[end - 1] in _MARKS or (rest[end - 1] == ")" and unopened > 0):
        unopened -= rest[end - 1] == ")"
        end -= 1
    return rest[:end]


_DASHES: Final = re.compile(r":?-+:?")
_DELIMITERS: Final = re.compile(r"[|:-][|:\s-]*")
_HEADING: Final = re.compile(r"#{1,6}(?:[ \t]|$)")  # is read as such wherever a text is cut into blocks
_PARTS: Final = re.compile(r"\\\||`+|\||[^\\`|]+|\\")


def take_tables(parser: MarkdownIt) -> None:
    """Let a parser find tables; each cell is an inline token, each row and the whole of them open and close."""
    parser.block.ruler.at("table", _find, {"alt": ["paragraph", "reference"]})


def _find(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
    if start_line + 2 > end_line or state.sCount[start_line + 1] < state.blkIndent:
        return False
    dashes, head = line_of(state, start_line + 1), line_of(state, start_line)
    if (
        "|" not in head
        or _HEADING.match(head) is not None
        or _DELIMITERS.fullmatch(dashes) is None
        or dashes.startswith(("- ", "-\t"))
    ):
        return False
    if state.is_code_block(start_line) or state.is_code_block(start_line + 1):
        return False
    aligned, cells = _aligned(dashes), split_cells(head)
    if not cells or len(aligned) != len(cells):
        return False
    if silent:
        return True
    token = state.push("table_open", "", 1)
    token.meta["aligned"] = aligned
    _push_row(state, start_line, cells)
    old_type, state.parentType = state.parentType, "table"
    number = start_line + 2
    while number < end_line and state.sCount[number] >= state.blkIndent and not _ends(state, number, end_line):
        _push_row(state, number, split_cells(line_of(state, number)))
        number += 1
    state.parentType = old_type
    state.push("table_close", "", -1)
    token.map = [start_line, number]
    state.line = number
    return True


def _ends(state: StateBlock, number: int, end_line: int) -> bool:
    """Return whether a table ends before a line."""
    if state.isEmpty(number) or state.is_code_block(number):
        return True
    return any(rule(state, number, end_line, True) for rule in state.md.block.ruler.getRules("blockquote"))  # noqa: FBT003


def _push_row(state: StateBlock, number: int, cells: list[str]) -> None:
    state.push("tr_open", "", 1)
    for cell in cells:
        token = state.push("inline", "", 0)
        token.map, token.content, token.children = [number, number + 1], cell, []
    state.push("tr_close", "", -1)


def _aligned(dashes: str) -> list[str]:
    """Return how the columns are aligned; nothing where the line is none below a head."""
    columns = [each.strip() for each in dashes.strip().removeprefix("|").removesuffix("|").split("|")]
    if any(_DASHES.fullmatch(each) is None for each in columns):
        return []
    sides = {(True, True): "center", (False, True): "right", (True, False): "left"}
    return [sides.get((each.startswith(":"), each.endswith(":")), "") for each in columns]


def split_cells(line: str) -> list[str]:
    """Return the cells of a line; an escaped bar is one of the words, also in code."""
    parts = _PARTS.findall(line.strip())
    cells, code_until = [""], _code_ends(parts)
    end = -1
    for at, part in enumerate(parts):
        end = max(end, code_until.get(at, -1)) if at > end else end
        if part == "|" and at > end:
            cells.append("")
        else:
            cells[-1] += "|" if part == "\\|" else part
    cells = [each.strip() for each in cells]
    if len(cells) > 1 and not cells[0]:
        del cells[0]
    if len(cells) > 1 and not cells[-1]:
        del cells[-1]
    return cells


def _code_ends(parts: list[str]) -> dict[int, int]:
    """Return for each run of ticks that is not escaped where the next one of its length stands."""
    ends, following = {}, dict[str, int]()
    for at in range(len(parts) - 1, -1, -1):
        if parts[at].startswith("`"):
            is_escaped = at > 0 and parts[at - 1] == "\\"
            if parts[at] in following and not is_escaped:
                ends[at] = following[parts[at]]
            following[parts[at]] = at
    return ends


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
