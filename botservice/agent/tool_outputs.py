"""Reading what a tool returned: as text for the model, as values to keep, as files, and as buttons."""

import json
import math
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter

from botservice.conversation.images import as_file
from botservice.core.messages import Attachment, Button, storable
from botservice.core.quoting import quote_name
from botservice.telemetry.logs import redact

LONGEST_OBSERVATION = 100_000  # characters; what is cut is said
_ANYTHING: Final = TypeAdapter[Any](Any, config=ConfigDict(ser_json_inf_nan="constants"))


class OutputError(Exception):
    """A tool returned something that is no text, no JSON value and no file."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returned."""

    text: str
    value: Any
    files: tuple[Attachment, ...] = ()
    buttons: tuple[Button, ...] = ()


def read_output(returned: Any) -> Output:
    """Return what a tool returned: a value, a file, a button, or a list of them.

    Raises:
        OutputError: there is no JSON for it.
    """
    parts = [as_file(part) for part in (returned if isinstance(returned, list | tuple) else [returned])]
    files = tuple(part for part in parts if isinstance(part, Attachment))
    buttons = tuple(_read_button(part) for part in parts if isinstance(part, Button))
    if files or buttons:
        texts = [_as_text(_read_value(part)) for part in parts if not isinstance(part, Attachment | Button)]
        said = "\n".join(text for text in texts if text)
        named = [f"[{quote_name(each.name, 'file')}: {quote_name(each.mime_type)}]" for each in files]
        if buttons:
            named.append(f"[buttons under your answer: {' | '.join(quote_name(each.text) for each in buttons)}]")
        return Output(cut("\n".join([said, *named] if said else named)), said, files, buttons)
    value = _read_value(returned)
    text = _as_text(value)
    return Output(cut(text), cut(text) if len(text) > LONGEST_OBSERVATION else value)


def as_json_value(value: Any) -> Any:
    """Return a value as JSON has it: models as objects, dates as texts.

    Raises:
        ValueError: there is no JSON for it.
    """
    return _ANYTHING.dump_python(value, mode="json", by_alias=True)


def cut(text: str) -> str:
    """Return text, shortened where it is too long for a prompt, and saying so."""
    if len(text) <= LONGEST_OBSERVATION:
        return text
    return f"{text[:LONGEST_OBSERVATION]}… (cut: it has {len(text)} characters)"


def _read_button(button: Button) -> Button:
    """Return a button as it can be kept and shown."""
    text = _clean(str(button.text)).strip()
    if not text:
        raise OutputError("a Button has a text")
    value, url = (None if each is None else _clean(str(each)) for each in (button.value, button.url))
    return Button(text, value, url, button.style)


def _read_value(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    try:
        return _clean(as_json_value(value))
    except ValueError as error:
        raise OutputError(
            f"the tool returned {type(value).__name__}, of which something is no JSON value; "
            "a file is returned as an Attachment, alone or in a list"
        ) from error


def _clean(value: Any) -> Any:
    """Return a value without secrets, and without characters that a database cannot store."""
    match value:
        case str():
            return redact(storable(value))
        case float() if not math.isfinite(value):
            return json.dumps(value)
        case list():
            return [_clean(each) for each in value]
        case dict():
            return {_clean(key): _clean(each) for key, each in value.items()}
        case _:
            return value


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
