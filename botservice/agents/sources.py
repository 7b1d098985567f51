"""The pages that an answer rests on, under the answer."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from botservice.llm.chat import Source
from botservice.messages import is_blank
from botservice.quoting import quote_name
from botservice.texts import in_language

_MOST: Final = 10
_STYLES: Final = re.compile(r"[*_~#|&\\]+")
_ENCODED: Final = str.maketrans({"(": "%28", ")": "%29", "*": "%2A", "_": "%5F", "~": "%7E", "|": "%7C", "`": "%60"})


def with_sources(text: str, sources: Sequence[Source], language: str | None) -> str:
    """Return an answer with a numbered line for each page that it names: its title, as a link, and its host."""
    if not sources or is_blank(text):
        return text
    lines = [f"{number}. {_describe(source)}" for number, source in enumerate(sources[:_MOST], 1)]
    heading = in_language("answer.sources", language)
    return "\n".join([text.rstrip(), "", heading, *lines])


def _describe(source: Source) -> str:
    host = quote_name(urlsplit(source.url).hostname)
    title = quote_name(_STYLES.sub(" ", source.title), host)
    link = f"[{title}]({source.url.translate(_ENCODED)})"
    return link if title == host else f"{link} ({host})"
