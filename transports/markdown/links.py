"""Links: behind words where a platform cannot follow them, and written out as Markdown for a model."""

import re
from collections.abc import Callable
from dataclasses import replace

from botservice.core.formatted_text import Inline, Span, Spans

_BRACKETS = re.compile(r"([\[\]\\])")


def link(label: str, address: str) -> str:
    """Return a link as Markdown; one whose label is its address stands alone."""
    words = " ".join(label.split())
    if not words or words in (address, address.partition("://")[2], address.partition("://")[2].rstrip("/")):
        return address
    target = f"<{address}>" if re.search(r"[\s()]", address) else address
    escaped = _BRACKETS.sub(r"\\\1", words)
    return f"[{escaped}]({target})"


def with_links_written(spans: Spans, address_of: Callable[[str], str | None]) -> Spans:
    """Return spans in which a link that a platform cannot follow stands in brackets behind its words.

    Args:
        address_of: Returns the address as the platform takes it, or None.
    """
    written: list[Inline] = []
    for at, each in enumerate(spans):
        if not isinstance(each, Span) or each.link is None:
            written.append(each)
            continue
        address = address_of(each.link)
        written.append(replace(each, link=address))
        after = spans[at + 1] if at + 1 < len(spans) else None
        is_last = not isinstance(after, Span) or after.link != each.link
        if address is None and is_last and (said := _address_behind(spans, at)):
            written.append(Span(f" ({said})"))
    return tuple(written)


def _address_behind(spans: Spans, at: int) -> str:
    """Return the address of the link whose last span stands there, as far as its words do not say it."""
    link, words = "", ""
    while at >= 0:
        each = spans[at]
        if not isinstance(each, Span) or each.link is None or (link and each.link != link):
            break
        link, words, at = each.link, each.text + words, at - 1
    said = link.strip()
    is_told = said.startswith("#") or said.removeprefix("mailto:") in words or said in words
    return "" if is_told else said
