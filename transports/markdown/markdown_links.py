"""Links in what people send, written out for a model."""

import re

_BRACKETS = re.compile(r"([\[\]\\])")


def link(label: str, address: str) -> str:
    """Return a link as Markdown; one whose label is its address stands alone."""
    words = " ".join(label.split())
    if not words or words in (address, address.partition("://")[2], address.partition("://")[2].rstrip("/")):
        return address
    target = f"<{address}>" if re.search(r"[\s()]", address) else address
    escaped = _BRACKETS.sub(r"\\\1", words)
    return f"[{escaped}]({target})"
