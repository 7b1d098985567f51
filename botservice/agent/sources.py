"""The pages that an answer rests on, under the answer."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, urlsplit

from botservice.core.messages import is_blank
from botservice.core.quoting import quote_in_markdown
from botservice.llm.chat import Source
from botservice.texts import in_language

_MOST: Final = 10
# Of an address, what neither ends a link nor is markup in one: entities and escapes need ";" and backslashes.
_SAFE: Final = "/:?#@!,=+%&'-."


def with_sources(text: str, sources: Sequence[Source], language: str | None) -> str:
    """Return an answer with a numbered line for each page that it names: its title, as a link, and its host."""
    if not sources or is_blank(text):
        return text
    lines = [f"{number}. {_describe(source)}" for number, source in enumerate(sources[:_MOST], 1)]
    heading = in_language("answer.sources", language)
    return "\n".join([text.rstrip(), "", heading, *lines])


def _describe(source: Source) -> str:
    """Return a page's title as a link, and its host: words of others, in which nothing is markup."""
    try:
        parts = urlsplit(source.url)
        host = quote_in_markdown(parts.hostname or "", "?")
    except ValueError:  # it is no address
        return quote_in_markdown(source.title, "?")
    title = quote_in_markdown(source.title, host)
    if parts.scheme not in ("http", "https"):
        return title
    link = f"[{title}]({_encoded(source.url)})"
    return link if title == host else f"{link} ({host})"


def _encoded(url: str) -> str:
    """Return an address with everything percent-encoded that could end its link, or be read as markup."""
    kept = (each if each.isalnum() or each in _SAFE else quote(each, safe="", errors="replace") for each in url)
    return "".join("%5F" if each == "_" else "%7E" if each == "~" else each for each in kept)
