"""Links and marks: around words, behind them where a platform cannot follow, and as Markdown for a model."""

import re
from collections.abc import Callable, Sequence
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


def write_marked(
    spans: Spans,
    address_of: Callable[[str], str | None],
    marks_of: Callable[[Span], Sequence[tuple[str, str]]],
    write: Callable[[Inline], str],
) -> str:
    """Return words with marks around them; a mark that goes on is not closed between two spans.

    Args:
        address_of: As for `with_links_written`.
        marks_of: Returns what opens and closes each mark of a span, the outermost first.
        write: Returns the words of a span without its marks.
    """
    parts: list[str] = []
    opened: list[tuple[str, str]] = []
    for each in (*with_links_written(spans, address_of), Span("")):
        wanted = marks_of(each) if isinstance(each, Span) else ()
        kept = next((at for at, mark in enumerate(opened) if mark not in wanted), len(opened))
        parts += [closing for _, closing in reversed(opened[kept:])]
        added = [mark for mark in wanted if mark not in opened[:kept]]
        parts += [opening for opening, _ in added]
        opened = [*opened[:kept], *added]
        parts.append(write(each))
    return "".join(parts)


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
