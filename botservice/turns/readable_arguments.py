"""Arguments of tool calls as people see them: what is acted on is seen, secrets are not, and nothing forges another."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from botservice.conversation.masked_secrets import DOTS, Secret, find_secrets
from botservice.core.visible_text import shown_beginning, visible

_LONGEST_VALUE: Final = 300  # characters of one argument where they are shown in short
_MOST_LINES: Final = 20
_SHORTEST_PART: Final = 30
_JSON_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_JSON: Final = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)


def readable_arguments(arguments: Mapping[str, Any], *, is_short: bool = True) -> tuple[str, bool]:
    """Return arguments as lines of `name: value`, and whether that is all of them.

    What is masked is not all of it; nor is what is cut. No two calls look alike where neither is so: a text that reads
    as another kind of value stands in quotation marks.

    Args:
        is_short: Cut long values, and leave lines out where there are many.
    """
    lines, is_whole = [], True
    for name, value in arguments.items():
        text, has_secrets = _shown(value, str(name))
        if is_short and len(text) > _LONGEST_VALUE:
            text, is_whole = _cut_text(text, _LONGEST_VALUE), False
        lines.append(f"{_argument_name(str(name))}: {text}")
        is_whole = is_whole and not has_secrets
    if is_short and len(lines) > _MOST_LINES:
        lines, is_whole = [*lines[:_MOST_LINES], f"… ({len(lines)})"], False
    return "\n".join(lines), is_whole


def arguments_in_one_line(arguments: Mapping[str, Any], most: int) -> tuple[str, bool]:
    """Return arguments in one line, each of its values cut alike, and whether that is all of them.

    Texts stand in quotation marks: what is in them cannot pass as another argument.

    Args:
        most: About how many characters the line may have.
    """
    is_whole, parts = True, []
    room = max(_SHORTEST_PART, most // max(1, len(arguments)))
    for name, value in arguments.items():
        text, has_secrets = _shown(value, str(name), is_quoted=True)
        if len(text) > room:
            text, is_whole = _cut_text(text, room), False
        shown_name = _argument_name(str(name))
        if len(shown_name) > room:
            shown_name, is_whole = _cut_text(shown_name, room), False
        parts.append(f"{shown_name}: {text}")
        is_whole = is_whole and not has_secrets
    return "; ".join(parts), is_whole


def has_masked(arguments: Mapping[str, Any]) -> bool:
    """Return whether dots stand in the place of anything."""
    return any(_shown(value, str(name))[1] for name, value in arguments.items())


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _argument_name(name: str) -> str:
    """Return the name of an argument; in quotation marks where it could pass as more than a name."""
    if name.isascii() and name.replace("-", "_").isidentifier():
        return name
    return "".join(_text_parts(_as_json(name), [], is_json=True))


def _shown(value: Any, name: str, *, is_quoted: bool = False) -> tuple[str, bool]:
    """Return a value with every sign of it to be seen, and dots for secrets; and whether there are any."""
    is_json = is_quoted or not isinstance(value, str)
    text = _as_json(value) if is_json else value
    secrets = find_secrets(text, name, is_json=is_json)
    shown = "".join(_text_parts(text, secrets, is_json=is_json))
    return (shown if is_json or not _is_like_json(text) else f'"{shown}"'), bool(secrets)


def _is_like_json(text: str) -> bool:
    """Return whether a text could pass as a value that is none, such as `null` or `5`; or as a text in quotes."""
    if text.startswith('"'):
        return True
    try:
        _JSON.decode(text)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def _text_parts(text: str, secrets: Sequence[Secret], *, is_json: bool) -> Iterator[str]:
    """Yield a text with dots for secrets; in JSON each text by itself, so that none moves what stands around it."""
    texts = _JSON_TEXT.finditer(text) if is_json and not text.isascii() else ()
    places = sorted({*(place for found in texts for place in found.span(1)), len(text)})
    end = 0
    for each in (*secrets, None):
        upto = len(text) if each is None else each.begin
        for place in places[bisect_right(places, end) : bisect_left(places, upto)]:
            yield visible(text[end:place], keeps_ends=True, is_code=True)
            end = place
        yield visible(text[end:upto], keeps_ends=end > 0 and is_json, is_code=True)
        if each is not None:
            before, behind = each.shown(text)
            yield f"{visible(before, is_code=True)}{DOTS}{visible(behind, is_code=True)} ({each.length})"
            end = each.end


def _cut_text(text: str, most: int) -> str:
    """Return the beginning of a text, with its whole length."""
    return f"{shown_beginning(text, most)}… ({len(text)})"
