r"""Where a formula stands in a text: `$$…$$` and `\[…\]` on lines of their own, `\(…\)`, `\[…\]` and `$…$` in a line.

Dollars are money, variables of a shell and ends of patterns far more often: between two of them stands a formula only
where no letter, digit or dollar touches them from outside and no space from inside.

Where a platform draws none, a formula is a line of words.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final
from xml.etree import ElementTree as ET

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from transports.markdown.emphasis import is_cjk

INLINE: Final = "formula"
BLOCK: Final = "formula_block"
_LONGEST: Final = 4_000  # characters in which the end of a formula is sought
_MOST_LINES: Final = 100
_CLOSINGS: Final = {"\\(": "\\)", "\\[": "\\]"}
_BLOCKS: Final = {"$$": "$$", "\\[": "\\]"}
_OF_PATTERNS: Final = ")]}+?/"  # behind these, a dollar is the end of a regular expression, or a path's variable
_TEX: Final = re.compile(r"[\\^_=+<>{}]")
_VARIABLES: Final = re.compile(r"(?!\d)(?:[^\W\d_](?![^\W\d_])|[\d (),.;:|/*'-])+")  # such as f(x, y) and n - 1
_LONG_WORD: Final = re.compile(r"[^\W\d_]{3}")


def take_formulas(parser: MarkdownIt) -> None:
    """Let a parser find formulas."""
    parser.inline.ruler.before("escape", INLINE, _find_inline)
    parser.block.ruler.before("fence", BLOCK, _find_block, {"alt": ["paragraph", "reference", "blockquote", "list"]})


def _find_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
    text, begin = state.src, state.pos
    if text[begin] == "$":
        end, width = _after_dollar(text, begin, state.posMax), 1
    elif text[begin] == "\\":
        end, width = after_bracket(text, begin), 2
    else:
        return False
    if end < 0 or end > state.posMax:
        return False
    if not silent:
        token = state.push(INLINE, "", 0)
        token.content, token.markup = text[begin + width : end - width], text[begin:end]
    state.pos = end
    return True


def _after_dollar(text: str, begin: int, length: int) -> int:
    """Return where the formula ends that begins with a dollar, or -1."""
    if (
        (begin and (_touches(text[begin - 1]) or text[begin - 1] in _OF_PATTERNS))
        or begin + 1 >= length
        or text[begin + 1] in " \t\n$|"
    ):
        return -1
    end = begin + 1
    while end < length and text[end] not in "$\n":
        end += 2 if text[end] == "\\" else 1
    if end >= length or text[end] != "$" or text[end - 1].isspace():
        return -1
    if end + 1 < length and _touches(text[end + 1]):
        return -1
    inner = text[begin + 1 : end]
    is_formula = " " not in inner or _TEX.search(inner) is not None or _VARIABLES.fullmatch(inner) is not None
    return end + 1 if is_formula else -1  # as in "$40; 100$"


def _touches(character: str) -> bool:
    """Return whether a character binds a dollar to itself; CJK words have no blanks before a formula."""
    return character == "$" or (character.isalnum() and not is_cjk(character))


def after_bracket(text: str, begin: int) -> int:
    r"""Return where the formula ends that begins with a bracket behind a backslash, or -1; `\[x\]` may be escaped."""
    opening = text[begin : begin + 2]
    closing = _CLOSINGS.get(opening)
    if closing is None:
        return -1
    end = text.find(closing, begin + 2, begin + _LONGEST)
    inner = text[begin + 2 : end]
    if end < 0 or not inner.strip() or "\n\n" in inner:
        return -1
    is_tex = _TEX.search(inner) is not None or (opening == "\\(" and _LONG_WORD.search(inner) is None)
    return end + 2 if is_tex else -1


def _find_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 - as above
    opening = line_of(state, start_line)[:2]
    closing = _BLOCKS.get(opening)
    if closing is None or state.is_code_block(start_line):
        return False
    lines: list[str] = []
    for number in range(start_line, min(end_line, start_line + _MOST_LINES)):
        line = line_of(state, number)
        lines.append(line)
        is_first = len(lines) == 1
        if not line or state.sCount[number] < state.blkIndent or closing in line[2 * is_first : -2]:
            return False
        if line.endswith(closing) and (not is_first or len(line) > 4):
            break
    else:
        return False
    content = "\n".join(lines)[2:-2]
    if not content.strip():
        return False
    if not silent:
        state.line = start_line + len(lines)
        token = state.push(BLOCK, "", 0)
        token.content, token.markup = content.strip(), "\n".join(lines)
        token.map = [start_line, state.line]
    return True


def line_of(state: StateBlock, number: int) -> str:
    """Return a line of a block without the space around it."""
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].strip()


_RAISED: Final = dict(zip("0123456789+-−=()in", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁱⁿ", strict=True))  # noqa: RUF001 - signs of formulas
_LOWERED: Final = dict(zip("0123456789+-−=()ijkmnx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ᵢⱼₖₘₙₓ", strict=True))  # noqa: RUF001
_INVISIBLE: Final = {0x2061: " ", 0x2062: None, 0x2063: None, 0x2064: None}  # the first stands behind "sin"
_LARGE: Final = "∑∏∫∮∬∭⋃⋂√"  # noqa: RUF001


class _Unsaid(Exception):
    """A line cannot say a formula."""


@lru_cache(maxsize=512)
def formula_words(tex: str) -> str:
    """Return a formula as a line, such as `x² + 1`; TeX as it was written where that goes no other way."""
    from transports.markdown.mathml import show_formula

    shown = show_formula(tex, is_block=False)
    if not shown.startswith("<math"):
        return tex.strip()
    try:
        return " ".join(_say(ET.fromstring(shown)).split()) or tex.strip()  # noqa: S314 - as above
    except (_Unsaid, ET.ParseError):
        return tex.strip()


def _say(element: ET.Element) -> str:
    said: str
    match element.tag, list(element):
        case "math" | "mrow" | "mstyle" | "mpadded", inner:
            said = _row(inner)
        case "mi" | "mn" | "mtext" | "mo", []:
            said = (element.text or "").translate(_INVISIBLE)
        case "mspace", []:
            said = " " if element.get("width", "0") != "0" else ""
        case "mfrac", [above, below] if "linethickness" not in element.attrib:
            said = f"{_held(_say(above))}/{_held(_say(below))}"
        case "msup", [base, above]:
            said = _say(base) + _put(_say(above), "^", _RAISED)
        case "msub" | "munder", [base, below]:
            said = _say(base) + _put(_say(below), "_", _LOWERED)
        case "msubsup" | "munderover", [base, below, above]:
            said = _say(base) + _put(_say(below), "_", _LOWERED) + _put(_say(above), "^", _RAISED)
        case "msqrt", inner:
            said = f"√{_held(_row(inner))}"
        case _:
            raise _Unsaid
    return said


def _row(elements: list[ET.Element]) -> str:
    said = ""
    for element in elements:
        part = _say(element)
        is_spaced = element.tag == "mo" and unicodedata.category(part[:1] or " ") == "Sm" and part not in _LARGE
        is_binary = is_spaced and said.strip() != "" and said.rstrip()[-1] not in "(=,+−<>→"  # noqa: RUF001
        said += f" {part} " if is_binary else f"{part} " if part in (",", ";") else part
        if element.tag in ("munderover", "msubsup", "munder") and said:
            said += " "
    return said


def _held(words: str) -> str:
    """Return words in brackets, unless they are a single one."""
    return words if words.strip().isalnum() else f"({words.strip()})"


def _put(words: str, sign: str, letters: dict[str, str]) -> str:
    """Return words above or below the line."""
    words = words.replace(" ", "")
    if words.strip("′″") == "":  # noqa: RUF001
        return words
    if all(each in letters for each in words):
        return "".join(letters[each] for each in words)
    return f"{sign}{words}" if len(words) == 1 else f"{sign}({words})"
