"""From what the service itself says to Slack's rich text: in it, no sign is markup, and no words ping anybody."""

import html
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from botservice.core.formatted_text import Block, Blocks, CodeBlock, FormattedText, List, Paragraph, Span
from botservice.core.messages import storable
from transports.markdown.splitting import in_pieces

# A message takes about 12,000 characters in all its blocks. Source: github.com/slackapi/bolt-js/issues/2509.
MAX_CHARACTERS: Final = 6_000
_STYLES: Final = ("bold", "italic", "strike", "code")
_TIME: Final = "{date_short_pretty}, {time}"  # by the reader's clock. Source: docs.slack.dev, date element

Element = dict[str, Any]


def format_service_text(text: FormattedText) -> list[dict[str, Any]]:
    """Return the messages that a formatted text makes, in order: each as plain words, and as elements of rich text."""
    pieces = in_pieces(text.blocks, MAX_CHARACTERS)
    return [{"text": storable(FormattedText(each).plain), "rich": list(_elements(each))} for each in pieces]


def rich_text(elements: list[Element]) -> Element:
    """Return elements as a block."""
    return {"type": "rich_text", "elements": elements}


def escape_words(text: str) -> str:
    """Return words as they stand next to blocks, for notifications: nothing in them is a mention or a link."""
    return html.escape(text, quote=False)


def _elements(blocks: Blocks) -> Iterator[Element]:
    section: list[Element] = []
    for at, block in enumerate(blocks):
        if isinstance(block, Paragraph):
            if at:
                is_first = not section
                section.append(_text("\n" if block.is_close or is_first else "\n\n", Span("")))
                if is_first and block.is_close:
                    section.clear()
            section += _inline(block)
            continue
        if section:
            yield {"type": "rich_text_section", "elements": section}
            section = []
        yield from _element(block, 0)
    if section:
        yield {"type": "rich_text_section", "elements": section}


def _element(block: Block, indent: int) -> Iterator[Element]:
    match block:
        case List(items):
            for item in items:
                words = [element for each in item.blocks if isinstance(each, Paragraph) for element in _inline(each)]
                point = {"type": "rich_text_section", "elements": words or [_text("…", Span(""))]}
                yield {"type": "rich_text_list", "style": "bullet", "indent": indent, "elements": [point]}
                for each in item.blocks:
                    if not isinstance(each, Paragraph):
                        yield from _element(each, indent + 1)
        case _:
            shown = block.text if isinstance(block, CodeBlock) else FormattedText((block,)).plain
            yield {"type": "rich_text_preformatted", "elements": [_text(shown or " ", Span(""))]}


def _inline(paragraph: Paragraph) -> list[Element]:
    return [_text(each.text, each) for each in paragraph.spans if isinstance(each, Span) and each.text]


def _text(text: str, span: Span) -> Element:
    style = {name: True for name in _STYLES if getattr(span, name)}
    if span.at is not None and not span.code:
        at = int(datetime.fromisoformat(span.at).timestamp())
        shown_time: Element = {"type": "date", "timestamp": at, "format": _TIME, "fallback": storable(text)}
        return shown_time | ({"style": style} if style else {})
    shown: Element = {"type": "text", "text": storable(text)}
    if span.link is not None:
        shown = {"type": "link", "url": span.link, "text": storable(text)}
    return shown | ({"style": style} if style else {})
