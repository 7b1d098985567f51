"""A formula as a line of words, for where none can be drawn: in signs of Unicode, or as the TeX that was written."""

import unicodedata
from functools import lru_cache
from typing import Final
from xml.etree import ElementTree as ET

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
