"""From a model's markdown to texts that Slack takes: nobody is pinged, and no piece is too long.

Long markdown is cut where a reader would: between blocks, then lines, sentences and words. A code block that is cut is
closed and opened again, and a table that is cut repeats its head.
"""

import html
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.core.messages import is_blank, storable
from botservice.texts import in_language
from botservice.turns.turn import Delivery
from transports.common.too_long_messages import is_too_intricate
from transports.markdown.graphemes import last_cut
from transports.markdown.parser import PARSER
from transports.slack import charts
from transports.slack.escaping import escape_literals, settled_literals

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
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+")  # noqa: RUF001 - sentences end in many scripts
_BLANK = re.compile(r"\s+")

# A scheme, a host with a path, or a markdown link. Each alternative begins with its own letter class and holds no
# unbounded repetition, so that searching takes time in proportion to the text.
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]{0,20}://|www\.|\.[a-z]{2,24}/|\]\(|\]:|<[a-z]{2,20}:", re.IGNORECASE)

# What Slack makes a name or a time of. `without_pings` has taken out those that would ping whom a model may not.
_MENTION: Final = re.compile(r"(<(?:[@#]|!(?:channel|here|everyone|subteam\^|date\^))[^<>\n]*>)")

FEEDBACK: Final = "feedback"
BUTTON: Final = "say"

# Source: docs.slack.dev, reference/block-kit.
_MAX_LABEL = 75
_MAX_VALUE = 2000
_MAX_BUTTONS = 25
_MAX_URL = 3000


@dataclass(frozen=True, slots=True)
class Pings:
    """Whom a model may ping.

    Attributes:
        users: One person at a time.
        everybody: A whole channel or group.
    """

    users: bool = False
    everybody: bool = False


def without_pings(text: str, pings: Pings) -> str:
    """Return text in which nobody is pinged who may not be; it reads as before."""
    if "@" not in text and "<!" not in text:
        return text
    if not pings.everybody:
        text = _SPECIAL.sub(_without_ping, text)
        text = _PLAIN.sub(lambda found: f"@{_JOINER}{found[1]}", text)
        text = _SPECIAL_REST.sub(f"<{_JOINER}", text)
    if not pings.users:
        text = _USER.sub(lambda found: f"@{_JOINER}{found[2] or found[1]}", text)
        text = _USER_REST.sub(f"<{_JOINER}", text)
    return text


def _without_ping(found: re.Match[str]) -> str:
    """Return a mention of many people as words, with its label: nothing that was written is hidden."""
    return f"@{_JOINER}{found[1].partition('^')[0]}" + (f" ({found[2]})" if found[2] else "")


def format_answer(text: str, pings: Pings) -> list[str]:
    """Return the messages that an answer makes, in order; none if there is nothing to read."""
    return split_markdown(without_pings(storable(text), pings), max_characters=MAX_CHARACTERS)


def as_text(answer: str) -> str:
    """Return an answer as it stands beside blocks, or where nothing else is taken: mentions alone are markup."""
    parts = _MENTION.split(answer)
    return "".join(each if at % 2 else html.escape(each, quote=False) for at, each in enumerate(parts))


def may_hold_figures(text: str) -> bool:
    """Return whether there may be a table or a chart in a text."""
    return ("|" in text and "-" in text) or charts.NAME in text


def stable_part(text: str, pings: Pings) -> str:
    """Return so much of a text that grows as will stand there unchanged, however it goes on."""
    found = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_UNFINISHED))
    return escape_literals(settled_literals(without_pings(storable(text[: found.start()] if found else text), pings)))


def split_markdown(text: str, *, max_characters: int) -> list[str]:
    """Return markdown in pieces, each of which reads well by itself; none if there is nothing to read.

    Raises:
        ValueError: max_characters is below 100.
    """
    if max_characters < 100:
        raise ValueError("max_characters must be 100 or more")
    if len(text) <= max_characters:
        return [] if is_blank(text) else [text.strip("\n")]
    if is_too_intricate(text):
        return [piece for piece in _packed(text.strip("\n"), max_characters) if not is_blank(piece)]
    pieces: list[str] = []
    for block in _blocks(text):
        for part in _fitting(block, max_characters):
            if pieces and len(pieces[-1]) + len(part) <= max_characters:
                pieces[-1] += part
            else:
                pieces.append(part)
    return [piece.strip("\n") for piece in pieces if not is_blank(piece)]


def _blocks(text: str) -> Iterator[str]:
    """Yield the top blocks of markdown with what follows each, so that together they are the text."""
    lines = text.splitlines(keepends=True)
    starts = [token.map[0] for token in PARSER.parse(text) if token.map and token.level == 0 and token.nesting >= 0]
    borders = sorted({0, *(start for start in starts if start < len(lines)), len(lines)})
    for begin, end in itertools.pairwise(borders):
        yield "".join(lines[begin:end])


def _fitting(block: str, limit: int) -> Iterator[str]:
    """Yield a block in parts that are not too long."""
    if len(block) <= limit:
        yield block
        return
    token = next((token for token in PARSER.parse(block) if token.map), None)
    lines = f"{block.rstrip()}\n".splitlines(keepends=True)
    if token is not None and token.type == "fence" and len(lines) > 1:
        yield from _framed(lines[1:], f"{lines[0].rstrip()}\n", f"{token.markup}\n", limit)
    elif token is not None and token.type == "table_open" and len(lines) > 2:
        yield from _framed(lines[2:], lines[0] + lines[1], "", limit)
    else:
        yield from _packed(block, limit)


def _framed(rows: list[str], head: str, tail: str, limit: int) -> Iterator[str]:
    """Yield rows in parts, each with head and a tail that closes it; where there is no tail, every row has to fit."""
    room = limit - len(head) - len(tail) - 3
    if tail and rows and rows[-1].strip() == tail.strip():
        rows = rows[:-1]
    if room < 50 or (not tail and room < max(map(len, rows), default=0)):
        yield from _packed(head + "".join(rows) + tail, limit)
        return
    for part in _packed("".join(rows), room, is_code=True):
        end = "" if part.endswith("\n") else "\n"
        yield f"{head}{part}{end}{tail}\n"


def _packed(text: str, limit: int, *, is_code: bool = False) -> Iterator[str]:
    """Yield text in parts, cut after lines where that goes, else after sentences, words or characters."""
    part = ""
    for line in text.splitlines(keepends=True):
        for piece in _cut(line, limit, is_code=is_code):
            if len(part) + len(piece) > limit:
                yield part
                part = ""
            part += piece
    if part:
        yield part


def _cut(line: str, limit: int, *, is_code: bool) -> Iterator[str]:
    while len(line) > limit:
        end = last_cut(line, 0, limit) if is_code else _best_end(line, limit)
        yield line[:end]
        line = line[end:]
    if line:
        yield line


def _best_end(line: str, limit: int) -> int:
    for border in (_SENTENCE, _BLANK):
        ends = [found.end() for found in border.finditer(line, 0, limit) if found.end() > limit // 3]
        if ends:
            return ends[-1]
    return last_cut(line, 0, limit)


def find_address(text: str) -> int | None:
    """Return where the first address of a text begins, with the word that it belongs to, or None if it has none."""
    found = _ADDRESS.search(text)
    if found is None:
        return None
    return 1 + max(text.rfind(blank, 0, found.start()) for blank in (" ", "\n", "\t"))


def before_address(text: str) -> str:
    """Return so much of a text as holds no address, to the last whole word before it."""
    begin = find_address(text)
    return text if begin is None else text[:begin]


def markdown(text: str) -> dict[str, Any]:
    """Return text as a block that takes markdown as models write it."""
    return {"type": "markdown", "text": text}


def mark_of(delivery: Delivery) -> dict[str, Any]:
    """Return the metadata by which a message is known again, also where another database counts anew."""
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
