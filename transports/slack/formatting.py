"""What of an answer goes into a message of Slack: nobody is pinged, and no piece is too long."""

import html
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from botservice.config.setting_choices import SlackPings
from botservice.core.formatted_text import Block, Blocks, CodeBlock, FormattedText, List, Paragraph, Span
from botservice.core.messages import is_blank, storable
from botservice.texts import in_language
from botservice.turns.turn import Delivery
from transports.common.too_long_messages import is_too_intricate
from transports.markdown.reading import read_whole
from transports.markdown.splitting import in_pieces
from transports.slack.answer_blocks import read_page
from transports.slack.rendering import MENTION, render_blocks, settled_source

# Markdown blocks take 12,000 characters. Source: docs.slack.dev, chat.postMessage and reference/block-kit/blocks.
MAX_CHARACTERS = 11_000
_JOINER = "\u2060"
_EVERYBODY = "channel|here|everyone|group"
_SPECIAL = re.compile(rf"<!({_EVERYBODY}|subteam\^[^<>|\s]*)(?:\|([^<>\n]*))?>", re.IGNORECASE)
_USER = re.compile(r"<@([^<>|\s]+)(?:\|([^<>\n]*))?>")
_PLAIN = re.compile(rf"(?<![\w.@/])@({_EVERYBODY})\b(?!\.\w|[\w-])", re.IGNORECASE)
# What is left of them: never closed, or with odd labels. A joiner takes its meaning from it.
_SPECIAL_REST = re.compile(rf"<(?=!(?:{_EVERYBODY}|subteam))", re.IGNORECASE)
_USER_REST = re.compile(r"<(?=@\w)")
# What may become a ping when more of the text is there.
_UNFINISHED = re.compile(r"(?:<[!@]?[^<>\s]{0,100}|(?<![\w.])@\w{0,10})$")
_LONGEST_UNFINISHED = 120

# A scheme, a host with a path, or a markdown link. Each alternative begins with its own letter class and holds no
# unbounded repetition, so that searching takes time in proportion to the text.
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]{0,20}://|www\.|\.[a-z]{2,24}/|\]\(|\]:|<[a-z]{2,20}:", re.IGNORECASE)

FEEDBACK: Final = "feedback"
BUTTON: Final = "say"

# Source: docs.slack.dev, reference/block-kit.
_MAX_LABEL = 75
_MAX_VALUE = 2000
_MAX_BUTTONS = 25
_MAX_URL = 3000


def without_pings(text: str, pings: SlackPings) -> str:
    """Return text in which nobody is pinged who may not be; it reads as before."""
    if "@" not in text and "<!" not in text:
        return text
    if pings is not SlackPings.ALL:
        text = _SPECIAL.sub(_without_ping, text)
        text = _PLAIN.sub(lambda found: f"@{_JOINER}{found[1]}", text)
        text = _SPECIAL_REST.sub(f"<{_JOINER}", text)
    if pings is SlackPings.NONE:
        text = _USER.sub(lambda found: f"@{_JOINER}{found[2] or found[1]}", text)
        text = _USER_REST.sub(f"<{_JOINER}", text)
    return text


def _without_ping(found: re.Match[str]) -> str:
    """Return a mention of many people as words, with its label: nothing that was written is hidden."""
    return f"@{_JOINER}{found[1].partition('^')[0]}" + (f" ({found[2]})" if found[2] else "")


def format_answer(text: str, pings: SlackPings) -> list[str]:
    """Return the messages that an answer makes, in order, as Markdown; none if there is nothing to read."""
    said = without_pings(storable(text), pings).strip("\n")
    if is_blank(said):
        return []
    pieces, blocks, limit = [said], read_whole(said), MAX_CHARACTERS
    write = _plain if is_too_intricate(said) else render_blocks
    while any(len(read_page(each).text) > MAX_CHARACTERS for each in pieces):  # what is plain is escaped once more
        pieces = [write(each) for each in in_pieces(blocks, limit, lambda each: len(write(each)))]
        limit = limit * 2 // 3
    return pieces


def as_text(answer: str) -> str:
    """Return an answer as it stands next to blocks, or where nothing else is taken: mentions alone are markup."""
    parts = re.split(f"({MENTION})", answer)
    return "".join(each if at % 2 else html.escape(each, quote=False) for at, each in enumerate(parts))


def _plain(blocks: Blocks) -> str:
    return FormattedText(blocks).plain


def settled_text(text: str, pings: SlackPings) -> str:
    """Return so much of a text that grows as is read the same way, however it goes on."""
    found = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_UNFINISHED))
    return settled_source(without_pings(storable(text[: found.start()] if found else text), pings))


def find_address(text: str) -> int | None:
    """Return where the first address of a text begins, with the word that it belongs to, or None if it has none."""
    found = _ADDRESS.search(text)
    if found is None:
        return None
    return 1 + max(text.rfind(blank, 0, found.start()) for blank in (" ", "\n", "\t"))


def mark_of(delivery: Delivery) -> dict[str, Any]:
    """Return the metadata by which a message is known again, also where another database counts again."""
    name = f"{delivery.payload.get('question') or delivery.turn_id}/{delivery.id}"
    return {"event_type": "botservice_message", "event_payload": {"delivery": name}}


def feedback_buttons(turn_id: int, language: str) -> dict[str, Any]:
    """Return what stands under an answer to say whether it was any good."""

    def button(sign: str, label: str, value: str) -> dict[str, Any]:
        return {"text": {"type": "plain_text", "text": sign}, "accessibility_label": label, "value": value}

    return {
        "type": "context_actions",
        "elements": [
            {
                "type": "feedback_buttons",
                "action_id": FEEDBACK,
                "positive_button": button("👍", in_language("buttons.good", language), f"good:{turn_id}"),
                "negative_button": button("👎", in_language("buttons.bad", language), f"bad:{turn_id}"),
            }
        ],
    }


def button_row(buttons: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what may be pressed instead of typing, as a plan has it; None for nothing."""
    elements = []
    for number, each in enumerate(buttons[:_MAX_BUTTONS]):
        element: dict[str, Any] = {
            "type": "button",
            "action_id": f"{BUTTON}:{number}",
            "text": {"type": "plain_text", "text": str(each["text"])[:_MAX_LABEL] or "…"},
        }
        url, value = each.get("url"), str(each.get("value") or "")
        if url and len(url) <= _MAX_URL:
            element["url"] = url
        elif len(value) <= _MAX_VALUE:
            element["value"] = value
        else:
            continue  # half of what it would say may mean something else
        elements.append(element)
    return {"type": "actions", "elements": elements} if elements else None


# A message takes about 12,000 characters in all its blocks. Source: github.com/slackapi/bolt-js/issues/2509.
_MAX_RICH_CHARACTERS: Final = 6_000
_STYLES: Final = ("bold", "italic", "strike", "code")
_TIME: Final = "{date_short_pretty}, {time}"  # by the reader's clock. Source: docs.slack.dev, date element

Element = dict[str, Any]


def format_service_text(text: FormattedText) -> list[dict[str, Any]]:
    """Return the messages that a formatted text makes, in order: each as plain words, and as elements of rich text."""
    pieces = in_pieces(text.blocks, _MAX_RICH_CHARACTERS)
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
