"""Formulas as MathML for the browser, and as a line of words where a platform shows none."""

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser
from typing import Final

from math_core import LatexError, LatexToMathML

# Commands that take no argument: a bracket behind any other may be its argument, and then closes nothing.
_SYMBOLS: Final = (
    "(?:alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi"
    "|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega|infty|ell|hbar|partial|[cl]?dots|prime|emptyset"
    "|r(?:angle|floor|ceil|brace|brack|vert|Vert))(?![A-Za-z])"
)
_CLOSING: Final = r"(?:[^\x00-(*-\x5c^-\x7f\w\s(\[⌈⌊⌜⌞⎰❲⟅⟦⟨⟪⟬⟮⦃⦅⦇⦋⦍⦏⦑⦓⦕⦗⧘⧚⧼]|\\r[A-Za-z]+|\\\})"  # noqa: RUF001 - signs that open
_TOKEN: Final = re.compile(
    r"\\(?:left|middle|right)(?![A-Za-z])\s*(?:\\(?:[A-Za-z]+|.)|.)?"
    r"|\\sqrt\s*\[[\w+-]*\]"
    rf"|(?:[\^_']|\\(?!{_SYMBOLS})[A-Za-z]+)\s*{_CLOSING}"
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


class _NotShown(Exception):
    """A formula is not shown as one."""


_PERCENT: Final = re.compile(r"(?<!\\)((?:\\\\)*)%")  # TeX would leave out what stands behind one


@lru_cache(maxsize=512)
def show_formula(tex: str, *, is_block: bool) -> str:
    """Return a formula as MathML, and one that is no TeX, or too much of it, as it was written."""
    try:
        return _convert(tex, is_block=is_block)
    except (LatexError, UnicodeError, _NotShown):
        return f"<code>{html.escape(tex, quote=False)}</code>"


def _convert(tex: str, *, is_block: bool) -> str:
    tex = _PERCENT.sub(r"\1\%", tex)
    if len(tex) > _LONGEST_FORMULA or is_costly(tex):
        raise _NotShown
    keeper = _Keeper()
    keeper.feed(_CONVERTER.convert_with_local_state(tex, displaystyle=is_block))
    keeper.close()
    return "".join(keeper.kept)


class _Keeper(HTMLParser):
    """Writes MathML again, with nothing in it but what is on the lists."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS or len(self._open) >= _DEEPEST or len(self.kept) > _MOST:
            raise _NotShown
        self._open.append(tag)
        self.kept.append(f"<{tag}{''.join(map(_written, attrs))}>")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            raise _NotShown
        self.kept.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.kept.append(html.escape(data))


def _written(attribute: tuple[str, str | None]) -> str:
    """Return an attribute as it is kept; the side to which a cell keeps becomes a class, because styles are refused."""
    name, value = attribute[0], attribute[1] or ""
    if name == "style":
        return next((f' class="{side}"' for side in _ASIDE if f"text-align: {side}" in value), "")
    return f' {name}="{html.escape(value)}"' if name in ATTRIBUTES else ""
