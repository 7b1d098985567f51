"""The arguments of a call as a person reads them: in full or in short, without secrets, and with nothing unseen."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from botservice.memory.masked_secrets import mask

_LONGEST_VALUE: Final = 300  # characters of one argument where they are shown in short
_MOST_LINES: Final = 20
_SHORTEST_PART: Final = 30
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
# Signs that show nothing although their category does not say so: fillers, variation selectors, the empty braille cell.
_EMPTY: Final = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, 0xFFA0))
) | frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_MANY_SPACES: Final = re.compile(r" {9,}")


def readable(arguments: Mapping[str, Any], *, is_short: bool = True) -> tuple[str, bool]:
    """Return arguments as lines of `name: value`, and whether that is all of them.

    Args:
        is_short: Cut long values, and leave lines out where there are many.
    """
    masked = mask(arguments)
    lines, is_whole = [], True
    for name, value in masked.items():
        text = visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if is_short and len(text) > _LONGEST_VALUE:
            text, is_whole = f"{text[:_LONGEST_VALUE]}… ({len(text)})", False
        lines.append(f"{visible(str(name))}: {text}")
    if is_short and len(lines) > _MOST_LINES:
        lines, is_whole = [*lines[:_MOST_LINES], "…"], False
    return "\n".join(lines), is_whole


def in_one_line(arguments: Mapping[str, Any], most: int) -> tuple[str, bool]:
    """Return arguments in one line, each of its values cut alike, and whether that is all of them.

    Texts stand in quotation marks: what is in them cannot pass as another argument.

    Args:
        most: About how many characters the line may have.
    """
    masked, is_whole, parts = mask(arguments), True, []
    room = max(_SHORTEST_PART, most // max(1, len(masked)))
    for name, value in masked.items():
        text = visible(json.dumps(value, ensure_ascii=False))
        if len(text) > room:
            text, is_whole = f"{text[:room]}…", False
        parts.append(f"{visible(str(name))[:room]}: {text}")
    return "; ".join(parts), is_whole


def has_masked(arguments: Mapping[str, Any]) -> bool:
    """Return whether dots stand in the place of anything."""
    return bool(mask(arguments) != arguments)


def visible(text: str) -> str:
    """Return text in one line in which every sign is seen: what turns the direction or hides is written out."""
    seen = "".join(_written_out(each) for each in text).replace("\n", "\\n")
    return _MANY_SPACES.sub(lambda found: f"⟨{len(found[0])} spaces⟩", seen)


def _written_out(sign: str) -> str:
    if sign in (" ", "\n"):
        return sign
    category = unicodedata.category(sign)
    is_hidden = category in _UNSEEN or category == "Zs" or sign in _EMPTY
    return f"\\u{ord(sign):04x}" if is_hidden else sign


def fenced(text: str) -> str:
    """Return text as a block of code that nothing in it ends."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
