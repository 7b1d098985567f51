"""Texts in which nothing can be seen: they ask nothing."""

import re
from typing import Final

# White space, control characters, what Unicode 17.0 lets every program ignore (DerivedCoreProperties.txt,
# Default_Ignorable_Code_Point), and Braille without a dot.
_BLANK: Final = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u2800"
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen."""
    return _BLANK.fullmatch(text) is not None
