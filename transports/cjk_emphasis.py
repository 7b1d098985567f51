"""Emphasis beside Chinese, Japanese and Korean words, which no blanks keep apart from punctuation.

Where punctuation stands on one side of asterisks or tildes and a letter on the other, CommonMark lets them only open,
or only close. Beside CJK they may do both, as an amendment has it. Source: github.com/tats-u/markdown-cjk-friendly.
"""

import re
from collections.abc import Callable
from typing import Final
from unicodedata import category, east_asian_width

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, emphasis, strikethrough

MARK: Final = "\ufdd0"
"""No character, and never meant for others: put between signs and punctuation, it stands for a letter."""

WIDE: Final = r"[\u1100-\u11ff\u2e80-\U0003ffff]"
"""Where CJK characters stand among others, as a regular expression."""

# One asterisk alone is as often that of a footnote, before a bracket.
_RUN: Final = re.compile(r"(?<=[^\s*~_\\])(?:\*{2,}|~{2,})(?=[^\s*~_])")
_LEAST: Final = 2
_IS_WIDE: Final = re.compile(WIDE)  # no text without one is looked at closer


def is_freed(before: str, after: str) -> bool:
    """Return whether signs between two characters may open and close, although punctuation stands on one side."""
    if before.isspace() or after.isspace() or _is_punctuation(before) == _is_punctuation(after):
        return False
    return _is_cjk(before) or _is_cjk(after)


def mark_emphasis(markdown: str) -> str:
    """Return markdown in which any parser finds the emphasis beside CJK words; take_marks_off has to follow."""
    text = markdown.replace(MARK, "")
    return _RUN.sub(_marked, text) if _IS_WIDE.search(text) is not None else text


def take_marks_off(text: str) -> str:
    """Return a text as it was before its emphasis was marked."""
    return text.replace(MARK, "")


def take_cjk_emphasis(parser: MarkdownIt) -> None:
    """Let a parser find the emphasis beside CJK words."""
    parser.inline.ruler.at("strikethrough", _freeing(strikethrough.tokenize))
    parser.inline.ruler.at("emphasis", _freeing(emphasis.tokenize))


def _freeing(take: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Return a rule that lets what another one takes open and close where CJK words stand beside it."""

    def rule(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
        begin, known = state.pos, len(state.delimiters)
        is_taken = take(state, silent)
        is_inside = begin > 0 and state.pos < state.posMax and state.pos - begin >= _LEAST
        if is_taken and is_inside and state.src[begin] != "_" and is_freed(state.src[begin - 1], state.src[state.pos]):
            for each in state.delimiters[known:]:
                each.open = each.close = True
        return is_taken

    return rule


def _marked(found: re.Match[str]) -> str:
    """Return signs with a mark between them and the punctuation on one side, where they are freed."""
    before, after = found.string[found.start() - 1], found.string[found.end()]
    if not is_freed(before, after):
        return found[0]
    return f"{MARK}{found[0]}" if _is_punctuation(before) else f"{found[0]}{MARK}"


def _is_punctuation(character: str) -> bool:
    return category(character)[0] in "PS"


def _is_cjk(character: str) -> bool:
    """Return whether a character is written among CJK words; pictures stand everywhere."""
    is_wide = east_asian_width(character) in "WFH" or "\u1100" <= character <= "\u11ff"
    return is_wide and category(character) != "So"
