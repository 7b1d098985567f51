"""The pages of the web that an answer names, with a number for each in the place of its links."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from botservice.llm.chat import Source

_LONGEST: Final = 2_000  # characters of an address
_UNSAFE: Final = re.compile(r"[\s<>\"\\\x00-\x20\x7f]")
_TRACKING: Final = re.compile(r"utm_\w+|ref_src|gclid|fbclid|msclkid", re.IGNORECASE)


class Citations:
    """The pages that an answer names, in the order in which it does."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}

    @property
    def sources(self) -> tuple[Source, ...]:
        """The pages; the first one has the number 1."""
        return tuple(self._sources.values())

    def number(self, text: str, annotations: Sequence[Mapping[str, Any]]) -> str:
        """Return text with a number in the place of each link that a server put in to name a page.

        Servers differ: what they point at is such a link, or the words that rest on the page. Words stay.
        """
        found = [each for each in annotations if each.get("type") == "url_citation"]
        parts, end = [], 0
        for each in sorted(found, key=lambda each: _place(each, "start_index")):
            number = self._number_of(each)
            if number is None:
                continue
            first, last = _place(each, "start_index"), _place(each, "end_index")
            if not end <= first < last <= len(text):
                continue
            if "](" not in text[first:last] and "://" not in text[first:last]:
                parts.append(f"{text[end:last]} [{number}]")
            elif text[first - 1 : first] == "(" and text[last : last + 1] == ")" and first > end:
                parts.append(f"{text[end : first - 1]}[{number}]")
                last += 1
            else:
                parts.append(f"{text[end:first]}[{number}]")
            end = last
        return "".join([*parts, text[end:]])

    def _number_of(self, citation: Mapping[str, Any]) -> int | None:
        url = _without_tracking(str(citation.get("url") or ""))
        if url is None:
            return None
        self._sources.setdefault(url, Source(url, str(citation.get("title") or "")))
        return list(self._sources).index(url) + 1


def _place(citation: Mapping[str, Any], name: str) -> int:
    place = citation.get(name)
    return place if isinstance(place, int) else -1


def _without_tracking(url: str) -> str | None:
    """Return an address without what tells its server where a person comes from; None for what is none."""
    if len(url) > _LONGEST or _UNSAFE.search(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        return None
    asked = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, value) for name, value in asked if not _TRACKING.fullmatch(name)]
    return urlunsplit(parts._replace(query=urlencode(kept) if len(kept) < len(asked) else parts.query))
