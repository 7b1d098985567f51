"""What people see of a `text` in Slack, which reads it as mrkdwn: marks, entities, and what stands in angle brackets.

Source: docs.slack.dev/messaging/formatting-message-text.
"""

import html
import re

_CONTROL = re.compile(r"<([^<>]*)>")
_CODE = re.compile(r"```(.+?)```|`([^`\n]+)`", re.DOTALL)
_MARKS = re.compile(r"(?<![\w*_~])([*_~])(?=\S)([^\n]*?\S)\1(?![\w*_~])")
_QUOTE = re.compile(r"^(?:&gt;|>) ?", re.MULTILINE)


def read_mrkdwn(text: str, *, has_marks: bool = True) -> str:
    """Return the words that are seen.

    Args:
        has_marks: False where a message was sent with `mrkdwn: false`. Brackets and entities are read all the same.
    """
    shown = _CONTROL.sub(_named, text)
    if has_marks:
        parts = []
        at = 0
        for found in _CODE.finditer(shown):
            parts += [_without_marks(shown[at : found.start()]), found[1] or found[2]]
            at = found.end()
        shown = "".join([*parts, _without_marks(shown[at:])])
    return html.unescape(re.sub(r"&(?!(?:amp|lt|gt);)", "&amp;", shown))  # no other entities are known


def _without_marks(text: str) -> str:
    before = ""
    while before != text:
        before, text = text, _MARKS.sub(r"\2", text)
    return _QUOTE.sub("", text)


def _named(found: re.Match[str]) -> str:
    """Return what is shown of a mention or a link; of anything else in angle brackets, nothing is."""
    target, _, label = found[1].partition("|")
    if re.match(r"https?://|mailto:|tel:", target):
        return label or target
    if re.match(r"[@#][A-Z0-9]+\Z", target):
        return f"{target[0]}{label or target[1:]}"
    special = re.match(r"!(here|channel|everyone|subteam|date)", target)
    return label or f"@{special[1]}" if special else ""
