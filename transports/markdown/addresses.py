"""Addresses of web pages that stand in a text as they are: they are links, as those with brackets."""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.rules_inline import StateInline

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
