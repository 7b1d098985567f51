"""A page that says one thing, in the look of the browser's pages, and needs no other address to be served.

People come to it from elsewhere, such as from Slack, also where the chat in the browser is off.
"""

import base64
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from importlib import resources
from typing import Final

_PAGE: Final = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="card-page">
<main class="card">
  <h1>{title}</h1>
  <p dir="auto">{text}</p>{way}
</main>
</body>
</html>
"""
_WAY: Final = """
  <p class="ways"><a class="button" href="{address}">{label}</a></p>"""


def write_notice(title: str, text: str, *, language: str = "en", way: tuple[str, str] | None = None) -> str:
    """Write the HTML of a page with a title and a sentence.

    Args:
        language: Of the words, such as "de".
        way: The label and the address of a link that leads on.
    """
    link = "" if way is None else _WAY.format(label=escape(way[0]), address=escape(way[1]))
    return _PAGE.format(
        language=escape(language), title=escape(title), style=_read_style(), text=escape(text), way=link
    )


def notice_headers() -> Mapping[str, str]:
    """Return the headers of such a page: it loads nothing, and its address is told to nobody."""
    digest = base64.b64encode(hashlib.sha256(_read_style().encode()).digest()).decode()
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'",
        "Content-Type": "text/html; charset=utf-8",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }


@lru_cache(maxsize=1)
def _read_style() -> str:
    return (resources.files("transports") / "web" / "static" / "base.css").read_text("utf-8")
