"""Which asterisks, underscores and tildes are emphasis, and which belong to what is said.

CommonMark reads `a*b*c` as emphasis; here a sign between letters or digits is one of those, and so are those of
arithmetic, file patterns and names of programming languages. Next to Chinese, Japanese and Korean words, which no
spaces separate from punctuation, two signs may open and close where CommonMark lets them do only one of both.
Source: github.com/tats-u/markdown-cjk-friendly.
"""

import re
from collections.abc import Callable
from typing import Final
from unicodedata import category, east_asian_width

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, emphasis, strikethrough

_LEAST_FREED: Final = 2  # one asterisk alone is as often that of a footnote, before a bracket
_NAME: Final = re.compile(r"[a-z]|[A-Z0-9_]+__\b|\w*[a-z][A-Z]\w*__\b")  # __init__, __FILE__, __isNew__
_ENDING: Final = re.compile(r"\.\w")


def take_emphasis(parser: MarkdownIt) -> None:
    """Let a parser find emphasis as people and models write it."""
    parser.inline.ruler.at("strikethrough", _reading(strikethrough.tokenize, "~"))
    parser.inline.ruler.at("emphasis", _reading(emphasis.tokenize, "*_"))


def is_freed(before: str, after: str) -> bool:
    """Return whether signs between two characters may open and close, although punctuation stands on one side."""
    if before.isspace() or after.isspace() or _is_punctuation(before) == _is_punctuation(after):
        return False
    return is_cjk(before) or is_cjk(after)


def _reading(take: Callable[[StateInline, bool], bool], signs: str) -> Callable[[StateInline, bool], bool]:
    """Return a rule that decides once more what the signs that another one takes may open and close."""

    def rule(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
        begin, known = state.pos, len(state.delimiters)
        if state.src[begin] not in signs or not take(state, silent):
            return False
        found = state.delimiters[known:]
        if found and is_literal(state.src, begin, state.pos, state.posMax):
            for each in found:
                each.open = each.close = False
        elif found and _is_freed_run(state, begin):
            for each in found:
                each.open = each.close = True
        return True

    return rule


def _is_freed_run(state: StateInline, begin: int) -> bool:
    is_inside = begin > 0 and state.pos < state.posMax and state.pos - begin >= _LEAST_FREED
    return is_inside and state.src[begin] != "_" and is_freed(state.src[begin - 1], state.src[state.pos])


def is_literal(text: str, begin: int, end: int, length: int) -> bool:
    """Return whether the signs from begin to end are a part of what is said."""
    before = text[begin - 1] if begin else " "
    after = text[end] if end < length else " "
    if text[begin] == "~":
        return False
    is_next_to_cjk = is_cjk(before) or is_cjk(after)
    if end - begin == 1 and not is_next_to_cjk and (_is_letter(before) or before in ")]}") and _is_letter(after):
        return True  # a factor, or a part of a name
    if text[begin] == "_":
        return _is_in_name(text, begin, end, before)
    is_power = end - begin == 2 and after.isdecimal() and not is_cjk(before) and (_is_letter(before) or before == ")")
    is_power = is_power or (before.isdecimal() and _is_letter(after) and not is_next_to_cjk)
    return is_power or _is_pattern(text, begin, end, before, after)


def _is_in_name(text: str, begin: int, end: int, before: str) -> bool:
    """Return whether underscores are those of a name, such as `__init__`, or stand next to an asterisk: `test_*_a`."""
    if end - begin == 1:
        return text.startswith("*_", end) or (begin > 1 and text.startswith("_*", begin - 2))
    return end - begin == 2 and not _is_word(before) and _NAME.match(text, end) is not None


def _is_pattern(text: str, begin: int, end: int, before: str, after: str) -> bool:
    """Return whether asterisks stand in a pattern of file names."""
    if before == "/" or (after == "/" and not _is_letter(before)):
        return True
    is_ending = _ENDING.match(text, end) is not None
    if is_ending and end - begin == 1 and not _is_letter(before):
        return True
    is_name = before == "_" and begin > 1 and _is_letter(text[begin - 2])
    return is_name and (is_ending or _is_word(after) or after == "/")


def _is_letter(character: str) -> bool:
    return category(character)[0] in "LNM"


def _is_word(character: str) -> bool:
    return character == "_" or _is_letter(character)


def _is_punctuation(character: str) -> bool:
    return category(character)[0] in "PS"


def is_cjk(character: str) -> bool:
    """Return whether a character is written among CJK words; pictures stand everywhere."""
    is_wide = east_asian_width(character) in "WFH" or "\u1100" <= character <= "\u11ff"
    return is_wide and category(character) != "So"
