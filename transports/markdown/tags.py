"""Elements of HTML that only format: `<b>…</b>`, `<br>`, `<div>…</div>`. Any other text in angle brackets is text."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

TAG: Final = "tag"
STYLES: Final = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strike",
    "del": "strike",
    "strike": "strike",
}
_INLINE: Final = frozenset({*STYLES, "sub", "sup", "small", "span", "font", "kbd", "mark"})
_CONTAINERS: Final = frozenset({"div", "p", "center", "details", "summary"})
ELEMENTS: Final = sorted(_INLINE | _CONTAINERS | {"br"}, key=len, reverse=True)
_TAG: Final = re.compile(
    rf"</?({'|'.join(ELEMENTS)})"
    r"(?:\s+[a-z-]{1,20}(?:=(?:\"[^<>\"]{0,200}\"|'[^<>']{0,200}'|[^<>\s\"'=]{1,200}))?){0,8}\s*/?>",
    re.IGNORECASE,
)


def take_tags(parser: MarkdownIt) -> None:
    """Let a parser find elements that are complete; what remains of others is text."""
    parser.inline.ruler.before("autolink", TAG, _find)
    parser.core.ruler.before("text_join", TAG, _pair_all)


def _find(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
    found = _TAG.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "<" else None
    if found is None:
        return False
    if not silent:
        token = state.push(TAG, "", 0)
        token.content, token.tag = found[0], found[1].lower()
        before = state.src[found.start() - 1 : found.start()]
        after = state.src[found.end() : found.end() + 1]
        places = {"begin": found.start(), "end": found.end()}
        token.meta = {"before": before or "\n", "after": after or "\n", **places}
    state.pos = found.end()
    return True


def _pair_all(state: StateCore) -> None:
    """Make marks of the tags that belong together, and text of all others."""
    containers: list[Token] = []
    parents = [each for each in state.tokens if each.children]
    for parent in parents:
        tags = [each for each in parent.children or () if each.type == TAG]
        if tags:
            _pair_styles([each for each in tags if each.tag in _INLINE])
            containers += [each for each in tags if each.tag in _CONTAINERS]
            for each in tags:
                if each.tag == "br" and not each.content.startswith("</"):
                    _take_break(each)
    _pair_containers(containers)
    for parent in parents:
        for each in _within(parent.children or ()):
            if each.type == TAG:
                each.type, each.tag, each.meta = "text", "", {}


def _within(tokens: Sequence[Token]) -> Iterator[Token]:
    for each in tokens:
        yield each
        if each.children:
            yield from _within(each.children)


def _pair_styles(tags: Sequence[Token]) -> None:
    """Pair the tags of a line of text that touch the words between them, as asterisks have to."""
    opened: list[Token] = []
    for tag in tags:
        if not tag.content.startswith("</"):
            opened.append(tag)
            continue
        at = next((at for at in range(len(opened) - 1, -1, -1) if opened[at].tag == tag.tag), None)
        if at is None:
            continue
        opening = opened[at]
        del opened[at:]
        if not opening.meta["after"].isspace() and not tag.meta["before"].isspace():
            _mark(opening, tag)


def _pair_containers(tags: Sequence[Token]) -> None:
    """Pair the tags that begin and end lines, also those that stand in different paragraphs."""
    opened: list[Token] = []
    for tag in tags:
        is_closing = tag.content.startswith("</")
        if not is_closing and tag.meta["before"] in "\n>":
            opened.append(tag)
        elif is_closing and opened and opened[-1].tag == tag.tag and tag.meta["after"] in "\n<":
            _mark(opened.pop(), tag)


def _mark(opening: Token, closing: Token) -> None:
    """Make marks of two tags, if anything stands between them."""
    if opening.meta["end"] == closing.meta["begin"]:
        return
    style = STYLES.get(opening.tag, "")
    opening.type, closing.type = f"{style or 'no'}_open", f"{style or 'no'}_close"
    opening.content = closing.content = ""


def _take_break(tag: Token) -> None:
    if not (tag.meta["before"] == tag.meta["after"] == " "):
        tag.type, tag.content = "hardbreak", ""
