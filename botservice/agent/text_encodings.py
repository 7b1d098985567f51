"""The text of a file, in whatever encoding it was written."""

import codecs
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_LATIN: Final = ("cp1252", "cp1250", "cp1254", "cp1257")
# Where several fit alike, the first of them.
_KNOWN: Final = (
    *_LATIN[:2],
    *("cp1251", "koi8_r", "cp932", "gb18030", "big5", "cp949", "euc_jp", "cp866"),
    *("cp1253", "cp1255", "cp1256", *_LATIN[2:]),
)
_OF_MANY_BYTES: Final = frozenset({"cp932", "gb18030", "big5", "cp949", "euc_jp"})
_LONGEST_LOOK: Final = 64 * 1024  # bytes: what a file says of its encoding, it says at its beginning
_ALIKE: Final = 0.06  # of chaos and of coherence, which are between 0 and 1
_AFTER_LATIN: Final = "\u0250"
_AFTER_ALPHABETS: Final = "\u0700"  # Greek, Cyrillic, Hebrew, Arabic
_HALF_WIDTH: Final = re.compile(r"[\uff61-\uff9f]")
_SHORT: Final = 24  # letters beyond ASCII: below that, statistics say little
# What text of Central Europe looks like where it is read as that of Western Europe, and what the latter has itself.
_CENTRAL: Final = re.compile(
    r"\w[³¹º¿]|[³¹¿]\w|ì\w|ø[iíeéáyu]|ù\w|ò\w|[ðþÞ]|õ[^e\s]|è[ínky]|\bè|œ[^u]|æ(?!r|[dlstv])", re.IGNORECASE
)
_WESTERN: Final = re.compile(r"[àâåñ]|ã[eo]|œu|ø[^iíeéáyu]|æ[rdlstv]|ê\w|[èùìò]\b|õe|ï\w|[¿¡]\w", re.IGNORECASE)


def decode(data: bytes) -> tuple[str, str | None] | None:
    """Return the text of a file; None if it is no text.

    With it comes the name of the encoding, if that is a guess that may be wrong.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    text, doubtful = _decoded(data, encoding), None
    if text is None and encoding == "utf-8":
        text, doubtful = _guess(data)
    return None if text is None or text.count("\0") > len(text) // 100 else (text, doubtful)


def _guess(data: bytes) -> tuple[str | None, str | None]:
    """Return the text in the likeliest encoding, and the name of that where it is not certain."""
    from charset_normalizer import from_bytes  # it takes 25 ms to load, and most files are UTF-8

    head = data[:_LONGEST_LOOK]
    head = head if len(data) == len(head) else head[: head.rfind(b"\n") + 1] or head  # no character is cut in two
    found = [each for each in from_bytes(head, cp_isolation=list(_KNOWN)) if _is_plausible(str(each))]
    names = _alike(found)
    if {"cp1252", "cp1250"} <= set(names):
        names = _among_latin(data)
    for name in names:
        text = _decoded(data, name)
        if text is not None:
            is_short = sum(each.isalpha() and each > "\x7f" for each in text[:_LONGEST_LOOK]) < _SHORT
            is_one_of_several = len({_decoded(data, each) for each in names} - {None}) > 1
            others = {str(each) for each in found if each.encoding != name} - {text}
            is_weak = is_short and bool(others) and not found[0].coherence and name not in _OF_MANY_BYTES
            return text, name if is_one_of_several or is_weak else None
    text = _decoded(data, "cp1252")
    return (text, "cp1252") if text is not None else (data.decode("latin-1"), "latin-1")


def _alike(found: "Sequence[CharsetMatch]") -> list[str]:
    """Return the names of the encodings that fit best and alike, in the order of preference."""
    if not found:
        return []
    best = max(found, key=lambda each: (-each.chaos, each.coherence))
    # Accents at unusual places look a little like chaos, wherever they are from.
    most = best.chaos + (_ALIKE if best.encoding in _LATIN else 0.0)
    alike = [each for each in found if each.chaos <= most and each.coherence >= best.coherence - _ALIKE]
    names = {name for each in alike for name in (each.encoding, *each.could_be_from_charset)}
    return [name for name in _KNOWN if name in names]


def _among_latin(data: bytes) -> list[str]:
    """Return the encoding of Western or of Central Europe, as its accents say; both where they do not."""
    text = data[:_LONGEST_LOOK].decode("cp1252", "replace")
    central, western = len(_CENTRAL.findall(text)), len(_WESTERN.findall(text))
    if central == western:
        return ["cp1252", "cp1250"]
    return ["cp1250" if central > western else "cp1252"]


def _is_plausible(text: str) -> bool:
    """Return whether text may be a person's.

    Latin words are mostly ASCII, no word is small before large, and none is of two alphabets.
    """
    letters = [each for each in text if each.isalpha()]
    foreign = [each for each in letters if each > "\x7f"]
    if foreign and max(foreign) < _AFTER_LATIN and 2 * len(foreign) > len(letters):
        return False
    if len(_HALF_WIDTH.findall(text)) * 4 > len(foreign):  # as Chinese looks where it is read as Japanese
        return False
    if sum(unicodedata.combining(each) > 0 for each in text) > len(letters) // 2:  # points without their letters
        return False
    words: list[str] = re.findall(r"[^\W\d_]{2,}", text)
    odd = sum((each[0].islower() and each[1:].isupper()) or _is_of_two_alphabets(each) for each in words)
    return odd * 4 <= len(words)


def _is_of_two_alphabets(word: str) -> bool:
    """Return whether letters of Latin and of another European alphabet stand in one word."""
    kinds = {each < _AFTER_LATIN for each in word if each < _AFTER_ALPHABETS}
    return len(kinds) > 1


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None
