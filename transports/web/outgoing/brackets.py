"""Brackets in TeX that nothing closes: the library reads what comes after one twice, so that each doubles its work."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

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
