r"""Text of others as people see it: what hides is written out, and both directions of writing keep apart.

What cannot be seen, covers its neighbours or turns the direction is written as in JSON, such as \u202e. Words that run
from right to left stand in isolates (U+2068 to U+2069), so that they move neither the digits and signs around them nor
other values in the same line. Source: unicode.org/reports/tr9, tr36 and tr39.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

FSI: Final = "\u2068"
PDI: Final = "\u2069"

_HIDDEN: Final = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Me", "Zl", "Zp"))
# Signs that show nothing although their category does not say so: fillers, joiners, empty letters, notes and cells, and
# what is not assigned and ignored. Source: DerivedCoreProperties.txt, Default_Ignorable_Code_Point.
_EMPTY: Final = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x2D7F, 0x3164, 0xFFA0, 0xFFFC))
) | frozenset(
    map(
        chr,
        (
            0x1107F,
            0x13441,
            0x13442,
            0x16FE4,
            0x1D159,
            0x2065,
            *range(0xFE00, 0xFE10),
            *range(0xFFF0, 0xFFF9),
            *range(0xE0000, 0xE1000),
        ),
    )
)
# Telegram takes these out of every text. Source: github.com/tdlib/td, td/telegram/misc.cpp, clean_input_string.
_TAKEN_OUT: Final = frozenset("\u030a\u0333\u033f")
_OVERLAY: Final = 1  # the combining class of marks that cross a letter out
# In a row, on one letter: what writing needs. Vietnamese takes two, Hebrew with its accents four, Burmese five.
_MOST_GENERAL_MARKS: Final = 2
_MOST_MARKS: Final = 5
_PICTURES: Final = re.compile(
    "[\u00a9\u00ae\u2122\u2190-\u24ff\u25a0-\u27bf\u2900-\u2bff\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_JOINER: Final = "\u200d"
_JOINERS: Final = frozenset("\u200c\u200d")  # parts of letters and of pictures
_AS_PICTURE: Final = "\ufe0f"
_KEY: Final = "\u20e3"  # around a digit
_KEYS: Final = frozenset("0123456789#*")

_MANY_SPACES: Final = re.compile(r" {9,}")
_EDGES: Final = re.compile(r"\A +| +\Z")
# What would look like signs that were written out, or like dots in the place of a secret.
_LOOKALIKES: Final = re.compile(r"⟨(?=\d+ spaces?⟩)|•(?=•{5})")
_PLAIN_LINE: Final = re.compile(r"[!-\[\]-~](?:[ -\[\]-~]*[!-\[\]-~])?")

# Letters and signs of most texts, of which each is seen: whatever consists of them need not be looked through.
_SEEN: Final = re.compile(
    r"[ -~\n\u00a1-\u00ac\u00ae-\u02ff\u0391-\u03a1\u03a3-\u03e1\u0400-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e"
    r"\u20a0-\u20bf\u2190-\u23ff\u2460-\u27ff\u3001-\u3029\u3041-\u3096\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
    r"\uff01-\uff9e\U0001f300-\U0001f64f]*"
)

_FIRST_FROM_RIGHT: Final = "\u0590"
_FROM_RIGHT: Final = frozenset(("R", "AL"))
_WITHIN_WORDS: Final = frozenset(" '\u2019-,.!?:;\u060c\u061b\u061f")  # between words of one sentence
_IN_SENTENCES: Final = _FROM_RIGHT | {"AN", "EN", "NSM"}
_IN_NUMBERS: Final = frozenset(".,:/\u066b\u066c")


def visible(text: str, *, keeps_lines: bool = False, keeps_ends: bool = False, is_code: bool = False) -> str:
    r"""Write out every sign of a text that would not be seen; no two texts look alike, and as code no two spellings.

    What hides, or turns the direction of what follows, is written as in JSON, such as \u202e; so are line breaks. A
    backslash is doubled where it would look like the beginning of that, and many spaces are counted.

    Args:
        keeps_lines: Leave line breaks as they are.
        keeps_ends: Leave single spaces at the beginning and the end, which are to be seen by what stands around it.
        is_code: It is read in the order of its signs, as the arguments of a call are: all but a sentence from right to
            left runs from left to right, and in it each run of words from right to left stands by itself. Letters that
            are not spelt as Unicode composes them (NFC) look like those that are: what is odd in them is written out.
    """
    if _PLAIN_LINE.fullmatch(text) is not None and "  " not in text:
        return text
    fakes = {found.start() for found in _LOOKALIKES.finditer(text)}
    hidden = list(hides(text))
    if is_code:
        fakes.update(_misspelt(text))
    parts: list[str] = []
    for at in range(len(text) - 1, -1, -1):  # backwards: a backslash depends on what is shown behind it
        sign = text[at]
        if sign == "\\":
            is_taken = bool(parts) and parts[-1][0] in "nuU\\"
            parts.append("\\\\" if is_taken else sign)
        elif sign == "\n":
            parts.append(sign if keeps_lines else "\\n")
        else:
            parts.append(escaped(sign) if hidden[at] or at in fakes or _is_odd_space(sign) else sign)
    shown = _MANY_SPACES.sub(_counted, "".join(reversed(parts)))
    shown = shown if keeps_lines or keeps_ends else _EDGES.sub(_counted, shown)
    return isolate_lines(shown, is_code=is_code)


def _misspelt(text: str) -> Iterator[int]:
    """Yield the places of signs that make another spelling of letters which Unicode composes (NFC).

    They are the marks behind a letter, or the letter where it stands for another one by itself, as the sign for ohms.
    """
    if unicodedata.is_normalized("NFC", text):
        return
    begin = 0
    for at in range(1, len(text) + 1):
        if at < len(text) and _goes_with(text[begin:at], text[at]):
            continue
        if not unicodedata.is_normalized("NFC", text[begin:at]):
            is_first_odd = not unicodedata.is_normalized("NFC", text[begin])
            yield from range(begin if is_first_odd else begin + 1, at)
        begin = at


def _goes_with(letter: str, sign: str) -> bool:
    """Return whether a sign is a mark on a letter, or composes with it as the parts of Korean syllables do."""
    if unicodedata.combining(sign):
        return True
    return unicodedata.normalize("NFC", letter + sign) != unicodedata.normalize("NFC", letter) + sign


def isolate_lines(shown: str, *, is_code: bool = True) -> str:
    """Return a text in which nothing hides with each line's words from right to left in isolates; see `visible`."""
    if shown.isascii() or all(each < _FIRST_FROM_RIGHT for each in shown):
        return shown
    return "\n".join(_isolated(line, is_code=is_code) for line in shown.split("\n"))


def is_all_seen(text: str) -> bool:
    """Return whether a text is of signs that hide nothing; False is no proof that one does."""
    return _SEEN.fullmatch(text) is not None


def hides(text: str) -> Iterator[bool]:
    """Yield for each sign of a text but line breaks whether it is not seen as what it is: nothing, or across others."""
    if is_all_seen(text):
        yield from (False for _ in text)
        return
    base, marks, general, before = "", 0, 0, ""
    for at, sign in enumerate(text):
        if " " <= sign <= "~" or sign == "\n":
            base, marks, general, before = sign if sign.isalnum() else "", 0, 0, sign
            yield False
            continue
        category = unicodedata.category(sign)
        if category == "Mn" and sign not in _EMPTY:
            marks, general = marks + 1, general + _is_general(sign)
            is_hidden = not base or _is_too_much(sign, marks, general)
            base = "" if is_hidden else base
        elif sign in _EMPTY or category in _HIDDEN:
            is_hidden = not _is_of_picture(sign, before, text[at + 1 : at + 2])
            base = ""
        else:
            is_hidden, marks, general = False, 0, 0
            base = sign if category[0] in "LNM" else ""
        before = "" if is_hidden else sign
        yield is_hidden


def _is_too_much(mark: str, marks: int, general: int) -> bool:
    """Return whether a mark is more on its letter than writing needs, or crosses the letter out."""
    is_whole_letter = mark not in _TAKEN_OUT and unicodedata.combining(mark) != _OVERLAY
    return not is_whole_letter or marks > _MOST_MARKS or general > _MOST_GENERAL_MARKS


@lru_cache(maxsize=1024)
def _is_general(mark: str) -> bool:
    """Return whether a mark is of no script: Unicode names it so."""
    return unicodedata.name(mark, "").startswith("COMBINING")


def _is_of_picture(sign: str, before: str, behind: str) -> bool:
    """Return whether a sign that shows nothing makes one picture of its neighbours, or a picture of a sign."""
    if sign == _JOINER:
        return (before == _AS_PICTURE or _is_picture(before)) and _is_picture(behind)
    if sign == _AS_PICTURE:
        return _is_picture(before) or (before in _KEYS and behind == _KEY)
    return sign == _KEY and before == _AS_PICTURE


def _is_picture(sign: str) -> bool:
    """Return whether a sign may be an emoji, or the colour of one's skin. Source: emoji-data.txt of Unicode."""
    return _PICTURES.fullmatch(sign) is not None and unicodedata.category(sign) in ("So", "Sk", "Sm")


def _is_odd_space(sign: str) -> bool:
    return sign != " " and unicodedata.category(sign) == "Zs"


def escaped(sign: str) -> str:
    """Return a sign as it is written out."""
    return f"\\u{ord(sign):04x}" if ord(sign) <= 0xFFFF else f"\\U{ord(sign):08x}"


def _counted(found: re.Match[str]) -> str:
    count = len(found[0])
    return f"⟨{count} space{'s' if count > 1 else ''}⟩"


def _isolated(line: str, *, is_code: bool) -> str:
    """Return a shown line in which what runs from right to left stands in isolates."""
    kinds = [unicodedata.bidirectional(each) for each in line]
    strong = [each for each in kinds if each == "L" or each in _FROM_RIGHT]
    if strong and strong[0] in _FROM_RIGHT and not (is_code and not _is_sentence(line, kinds)):
        return f"{FSI}{line}{PDI}"
    if "AN" not in kinds and not any(each in _FROM_RIGHT for each in strong):
        return line
    parts, begin = [], 0
    while begin < len(line):
        end = _end_of_run(line, kinds, begin)
        parts.append(f"{FSI}{line[begin:end]}{PDI}" if end > begin else line[begin])
        begin = max(end, begin + 1)
    return "".join(parts)


def _is_sentence(line: str, kinds: list[str]) -> bool:
    """Return whether a line holds nothing but words from right to left, numbers, and what stands between words."""
    pairs = zip(line, kinds, strict=True)
    return all(kind in _IN_SENTENCES or sign in _WITHIN_WORDS or sign in "()%" for sign, kind in pairs)


def _end_of_run(line: str, kinds: list[str], begin: int) -> int:
    """Return where the words, or the number, from right to left end that begin at a place; the place for none."""
    end = begin
    is_number = kinds[begin] == "AN"
    if not is_number and kinds[begin] not in _FROM_RIGHT:
        return end
    for at in range(begin, len(line)):
        if kinds[at] == "AN" if is_number else kinds[at] in _FROM_RIGHT:
            end = at + 1
        elif kinds[at] == "NSM":
            end = at + 1 if end == at else end
        elif line[at] not in (_IN_NUMBERS if is_number else _WITHIN_WORDS):
            break
    return end


def without_hidden(text: str) -> str:
    """Return text without what is not seen as what it is: marks go, and a space stands for what is nothing.

    Joiners stay, which are parts of letters, and what a later Unicode may have assigned.
    """
    if text.isascii() and text.isprintable():
        return text
    pairs = zip(text, hides(text), strict=True)
    return "".join(_instead(sign) if is_hidden else sign for sign, is_hidden in pairs)


def _instead(sign: str) -> str:
    category = unicodedata.category(sign)
    if sign in _JOINERS or (category == "Cn" and sign not in _EMPTY):
        return sign
    return "" if category in ("Mn", "Me") else " "


def begun_isolate(text: str, place: int) -> str:
    """Return what begins the rest of a shown text that is cut at a place: an isolate that was open there."""
    is_open = text.rfind(FSI, 0, place) > max(text.rfind(PDI, 0, place), text.rfind("\n", 0, place))
    return FSI if is_open else ""


def shown_beginning(shown: str, most: int) -> str:
    """Return the beginning of a shown text, with its isolates closed."""
    cut = shown[:most]
    return cut + PDI if begun_isolate(cut, len(cut)) else cut


# Cyrillic, Greek and a few other letters. Source: unicode.org/Public/security, confusables.txt
_LATIN_LOOKALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b"
    "\u051d\u04bb\u043a\u043c\u0442\u0432\u043d\u0475\u03b1\u03bf\u03c1\u03b5"
    "\u03b9\u03ba\u03bd\u03c5\u03c4\u03c7\u03c9\u0131\u0261\u0251",
    "aeopcyxijsdqwhkmtbhvaopeikvutxwiga",
)


def as_it_looks(text: str) -> str:
    """Return a text folded so that what looks like the same Latin word is the same: for comparing, not for showing."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    kept = (sign for sign in folded if unicodedata.category(sign) not in ("Cf", "Mn"))
    dashes = ("-" if unicodedata.category(sign) == "Pd" else sign for sign in kept)
    return " ".join("".join(dashes).translate(_LATIN_LOOKALIKES).split())
