"""The language of an answer, by its script and its function words."""

import unicodedata
from collections import Counter
from typing import Final

from botservice.search.languages import CODES, guess
from botservice.search.tokens import tokenize

_SCRIPTS: Final = {"HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja", "THAI": "th", "CJK": "zh"}
LANGUAGES: Final = tuple(sorted({*CODES, *_SCRIPTS.values()}))
"""What can be told apart."""
_MOST: Final = 4_000  # characters that are looked at


def language_of(text: str) -> str | None:
    """Return the two letters of the language that a text is in, or None if that is not clear."""
    scripts = [unicodedata.name(each, "").partition(" ")[0] for each in text[:_MOST] if each.isalpha()]
    counts = Counter(_SCRIPTS[script] for script in scripts if script in _SCRIPTS)
    if counts.total() * 2 > len(scripts):
        return "ja" if counts["ja"] else max(_SCRIPTS.values(), key=lambda code: counts[code])
    found = guess(tokenize(text[:_MOST]))
    return None if found < 0 else CODES[found]
