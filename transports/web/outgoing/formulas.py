"""Formulas in Markdown as MathML: between dollars, or between the brackets with backslashes that models write."""

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from math_core import LatexError, LatexToMathML
from mdit_py_plugins.dollarmath import dollarmath_plugin

# Commands that take no argument: a bracket behind any other may be its argument, and then closes nothing.
_SYMBOLS: Final = (
    "(?:alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi"
    "|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega|infty|ell|hbar|partial|[cl]?dots|prime|emptyset"
    "|r(?:angle|floor|ceil|brace|brack|vert|Vert))(?![A-Za-z])"
)
_CLOSING: Final = r"(?:[^\x00-(*-\x5c^-\x7f\w\s(\[⌈⌊⌜⌞⎰❲⟅⟦⟨⟪⟬⟮⦃⦅⦇⦋⦍⦏⦑⦓⦕⦗⧘⧚⧼]|\\r[A-Za-z]+|\\\})"  # noqa: RUF001 - signs that open
_TOKEN: Final = re.compile(
    r"%[^\n]*"  # a comment
    r"|\\(?:left|middle|right)(?![A-Za-z])\s*(?:\\(?:[A-Za-z]+|.)|.)?"
    r"|\\sqrt\s*\[[\w+-]*\]"
    rf"|(?:[\^_']|\\(?!{_SYMBOLS})[A-Za-z]+)(?:\s|%[^\n]*\n)*{_CLOSING}"
    r"|\\(?:sqrt|x[a-z]+|smash|\\)\s*\[|\\[A-Za-z]+|\\.|.",
    re.DOTALL,
)
_DEFINES: Final = re.compile(r"\\(?:(?:re)?newcommand|providecommand|[egx]?def|let|futurelet|global|long|newenv)")
_HARMLESS: Final = re.compile(
    r"\\l(?:e|o|d|n|t|h|im|ambda|and(?![A-Za-z])|a[bp]|g(?!r)|l+(?![A-Za-z]))[A-Za-z]*|\\[lL](?![A-Za-z])"
)
_OPENS: Final = re.compile(r"\\(?:\{|u?l)|\\math(?:open|inner)|[⎰⎱]", re.IGNORECASE)
_CLOSES: Final = re.compile(r"\\(?:\}|r(?:[A-Z]|angle|ang(?![A-Za-z])|floor|ceil|brac|vert|group|paren|moustache))")
_BEGINS: Final = re.compile(r"\\(?:left|begin)(?![A-Za-z])|\\(?:sqrt|x[a-z]+|smash|\\)\s*\[$|\{$")
_ENDS: Final = re.compile(r"\\(?:right|end)(?![A-Za-z])|\}$")
_SPLITS: Final = re.compile(r"\\(?:\\|middle|cr|over|choose|atop)|&$")
_MOST_WORK: Final = 1_000_000  # characters that are read, those after unclosed brackets again and again
_GROUP, _BRACKET = False, True

_ELEMENTS: Final = (
    "math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt mstyle msub"
    " msubsup msup mtable mtd mtext mtr munder munderover"
)
_ATTRIBUTES: Final = (
    "accent accentunder depth display displaystyle fence form height largeop linethickness lspace mathvariant maxsize"
    " minsize movablelimits notation rspace scriptlevel separator stretchy symmetric voffset width"
)
ELEMENTS: Final = frozenset(_ELEMENTS.split())
ATTRIBUTES: Final = frozenset(_ATTRIBUTES.split())
_LONGEST_FORMULA: Final = 4_000  # characters of one formula
_DEEPEST: Final = 60  # elements within each other: browsers lay out deeper ones slowly
_MOST: Final = 3_000  # elements of one formula
_ASIDE: Final = ("left", "right")
_CONVERTER: Final = LatexToMathML()

_FRAMES: Final = {
    "math_inline": '<span class="math">{}</span>',
    "math_inline_double": '<span class="formula">{}</span>',
    "math_block": '<div class="formula" tabindex="0">{}</div>\n',
}
_INLINE: Final = {"\\(": ("\\)", "math_inline"), "\\[": ("\\]", "math_inline_double")}
_LONGEST: Final = 4_000  # characters in which the end of a formula is sought
_MOST_LINES: Final = 100


def is_costly(tex: str) -> bool:
    """Return whether a formula takes long to convert, or defines commands that may; in doubt, it does."""
    return len(tex) << min(count_unclosed(tex), 30) > _MOST_WORK or _DEFINES.search(tex) is not None


def count_unclosed(tex: str) -> int:
    """Return how many brackets of a formula nothing closes within their group; in doubt, one more."""
    return sum(_unclosed(tex))


def _unclosed(tex: str) -> Iterator[int]:
    """Yield how many brackets are open wherever a group, a cell or a line ends."""
    pending: list[bool] = []
    for kind in map(_kind_of, _TOKEN.findall(tex)):
        if kind == "begin":
            pending.append(_GROUP)
        elif kind == "open":
            pending.append(_BRACKET)
        elif kind == "close" and pending and pending[-1]:
            pending.pop()
        elif kind in ("end", "split"):
            while pending and pending[-1]:
                yield pending.pop()
            del pending[len(pending) - (kind == "end") :]
    yield sum(pending)


def _kind_of(token: str) -> str:
    for kind, pattern in (("begin", _BEGINS), ("end", _ENDS), ("split", _SPLITS), ("close", _CLOSES)):
        if pattern.match(token):
            return kind
    if _HARMLESS.match(token):
        return ""
    category = unicodedata.category(token) if len(token) == 1 else ""
    if category in ("Ps", "Pi") or _OPENS.match(token):
        return "open"
    return "close" if category in ("Pe", "Pf") else ""


class _Refused(Exception):
    """A formula is not shown as one."""


@lru_cache(maxsize=512)
def show_formula(tex: str, *, is_block: bool) -> str:
    """Return a formula as MathML, and one that is no TeX, or too much of it, as it was written."""
    try:
        return _convert(tex, is_block=is_block)
    except (LatexError, UnicodeError, _Refused):
        return f"<code>{html.escape(tex, quote=False)}</code>"


def _convert(tex: str, *, is_block: bool) -> str:
    if len(tex) > _LONGEST_FORMULA or is_costly(tex):
        raise _Refused
    keeper = _Keeper()
    keeper.feed(_CONVERTER.convert_with_local_state(tex, displaystyle=is_block))
    keeper.close()
    return "".join(keeper.kept)


class _Keeper(HTMLParser):
    """Writes MathML anew, with nothing in it but what is on the lists."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS or len(self._open) >= _DEEPEST or len(self.kept) > _MOST:
            raise _Refused
        self._open.append(tag)
        self.kept.append(f"<{tag}{''.join(map(_written, attrs))}>")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            raise _Refused
        self.kept.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.kept.append(html.escape(data))


def _written(attribute: tuple[str, str | None]) -> str:
    """Return an attribute as it is kept; the side to which a cell keeps becomes a class, because styles are refused."""
    name, value = attribute[0], attribute[1] or ""
    if name == "style":
        return next((f' class="{side}"' for side in _ASIDE if f"text-align: {side}" in value), "")
    return f' {name}="{html.escape(value)}"' if name in ATTRIBUTES else ""


def take_formulas(parser: MarkdownIt) -> None:
    """Have a parser find formulas and show them as MathML."""
    dollarmath_plugin(
        parser,
        allow_labels=False,
        allow_space=False,
        allow_digits=False,  # what things cost is no formula
        allow_blank_lines=False,
        double_inline=True,
    )
    parser.inline.ruler.before("escape", "bracket_formula", _find_inline)
    parser.block.ruler.before("fence", "bracket_formula_block", _find_block, {"alt": ["paragraph"]})
    for kind in _FRAMES:
        parser.add_render_rule(kind, _show)


def _find_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
    closing, kind = _INLINE.get(state.src[state.pos : state.pos + 2], ("", ""))
    if not closing:
        return False
    begin = state.pos + 2
    end = state.src.find(closing, begin, begin + _LONGEST)
    if end <= begin:
        return False
    if not silent:
        state.push(kind, "math", 0).content = state.src[begin:end]
    state.pos = end + 2
    return True


def _find_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 - as above
    if state.is_code_block(start_line) or not _line(state, start_line).startswith("\\["):
        return False
    last = min(end_line, start_line + _MOST_LINES)
    lines: list[str] = []
    for number in range(start_line, last):
        lines.append(_line(state, number))
        if not lines[-1] or lines[-1].endswith("\\]"):
            break
    if not lines[-1].endswith("\\]"):
        return False
    if not silent:
        state.line = start_line + len(lines)
        token = state.push("math_block", "math", 0)
        token.content = "\n".join(lines)[2:-2]
        token.map = [start_line, state.line]
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].strip()


def _show(_: Any, tokens: Any, index: int, *__: Any) -> str:
    token = tokens[index]
    shown = show_formula(token.content.strip(), is_block=token.type != "math_inline")
    return _FRAMES[token.type].format(shown)
