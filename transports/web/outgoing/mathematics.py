"""Formulas: TeX as MathML, of which only elements and attributes on a short list are kept."""

import html
from functools import lru_cache
from html.parser import HTMLParser
from typing import Final

from math_core import LatexError, LatexToMathML

from transports.web.outgoing.brackets import is_costly

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
_LONGEST: Final = 4_000  # characters of one formula
_DEEPEST: Final = 60  # elements within each other: browsers lay out deeper ones slowly
_MOST: Final = 3_000  # elements of one formula
_ASIDE: Final = ("left", "right")
_CONVERTER: Final = LatexToMathML()


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
    if len(tex) > _LONGEST or is_costly(tex):
        raise _Refused
    keeper = _Keeper()
    keeper.feed(_CONVERTER.convert_with_local_state(tex, displaystyle=is_block))
    keeper.close()
    return "".join(keeper.kept)


class _Keeper(HTMLParser):
    """Writes MathML anew, with nothing in it but what is on the lists."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.kept: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS or len(self._open) >= _DEEPEST or len(self.kept) > _MOST:
            raise _Refused
        self._open.append(tag)
        self.kept.append(f"<{tag}{''.join(map(_written, attrs))}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

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
