"""Where a text holds addresses that Slack may fetch to show what lies behind them."""

import re
from typing import Final

# A scheme, a host with a path, or a markdown link. Each alternative begins with its own letter class and holds no
# unbounded repetition, so that searching takes time in proportion to the text.
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]{0,20}://|www\.|\.[a-z]{2,24}/|\]\(|\]:|<[a-z]{2,20}:", re.IGNORECASE)


def find_address(text: str) -> int | None:
    """Return where the first address of a text begins, with the word that it belongs to; None where it has none."""
    found = _ADDRESS.search(text)
    if found is None:
        return None
    begin = max(text.rfind(blank, 0, found.start()) for blank in (" ", "\n", "\t"))
    return begin + 1


def before_address(text: str) -> str:
    """Return so much of a text as holds no address, to the last whole word before it."""
    begin = find_address(text)
    return text if begin is None else text[:begin]
