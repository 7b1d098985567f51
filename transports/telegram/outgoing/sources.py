"""The pages that an answer rests on, as they stand at its end."""

import re
from typing import Final

_LEAST: Final = 3  # fewer are no burden
_SOURCE: Final = re.compile(r"\d{1,2}\. \[[^\]\n]+\]\(\S+\)[^\n]*")


def count_sources(markdown: str) -> int:
    """Return how many lines at the end of a text name a page each; 0 for a few."""
    count = 0
    for line in reversed(markdown.rstrip().split("\n")):
        if _SOURCE.fullmatch(line.strip()) is None:
            break
        count += 1
    return count if count >= _LEAST else 0
