"""From a model's markdown to texts that Slack takes: nobody is pinged, and no piece is too long."""

import re
from dataclasses import dataclass

from botservice.messages import storable
from transports.slack.outgoing.splitting import split_markdown

# Markdown blocks take 12,000 characters. Source: docs.slack.dev, chat.postMessage and reference/block-kit/blocks.
MAX_CHARACTERS = 11_000
_JOINER = "\u2060"
_EVERYBODY = "channel|here|everyone|group"
_SPECIAL = re.compile(rf"<!({_EVERYBODY}|subteam\^[^<>|\s]*)(?:\|[^<>\n]*)?>", re.IGNORECASE)
_USER = re.compile(r"<@([^<>|\s]+)(?:\|([^<>\n]*))?>")
_PLAIN = re.compile(rf"(?<![\w.@/])@({_EVERYBODY})\b(?!\.\w|[\w-])", re.IGNORECASE)
# What is left of them: never closed, or with odd labels. A joiner takes its meaning from it.
_SPECIAL_REST = re.compile(rf"<(?=!(?:{_EVERYBODY}|subteam))", re.IGNORECASE)
_USER_REST = re.compile(r"<(?=@\w)")
# What may become a ping when more of the text is there.
_UNFINISHED = re.compile(r"(?:<[!@]?[^<>\s]{0,100}|(?<![\w.])@\w{0,10})$")
_LONGEST_UNFINISHED = 120


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
        text = _SPECIAL.sub(lambda found: f"@{_JOINER}{found[1].partition('^')[0]}", text)
        text = _PLAIN.sub(lambda found: f"@{_JOINER}{found[1]}", text)
        text = _SPECIAL_REST.sub(f"<{_JOINER}", text)
    if not pings.users:
        text = _USER.sub(lambda found: f"@{_JOINER}{found[2] or found[1]}", text)
        text = _USER_REST.sub(f"<{_JOINER}", text)
    return text


def format_answer(text: str, pings: Pings) -> list[str]:
    """Return the messages that an answer makes, in order; none where there is nothing to read."""
    return split_markdown(without_pings(storable(text), pings), max_characters=MAX_CHARACTERS)


def stable_part(text: str, pings: Pings) -> str:
    """Return so much of a text that grows as will stand there unchanged, however it goes on."""
    found = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_UNFINISHED))
    return without_pings(storable(text[: found.start()] if found else text), pings)
