"""Questions of MCP servers (elicitation): read from what a server sends, which is untrusted, and answered."""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from botservice.agent.tool_questions import Field, FieldKind, Reply, ReplyAction, ToolQuestion
from botservice.core.messages import storable
from botservice.core.quoting import shortened
from botservice.core.visible_text import as_it_looks
from botservice.texts import LANGUAGES, in_language

MOST_QUESTIONS: Final = 5  # of one call
_MOST_FIELDS: Final = 20
_MOST_OPTIONS: Final = 50
_LARGEST_SCHEMA: Final = 16_000  # characters of JSON
_LONGEST_MESSAGE: Final = 1_200
_LONGEST_LABEL: Final = 100
_LONGEST_DESCRIPTION: Final = 300
_LONGEST_NAME: Final = 128
_LONGEST_URL: Final = 2_000
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
_SECRET: Final = re.compile(
    r"pass[ _-]?(?:word|wd|phrase|code)|\bpwd\b"
    r"|secret(?!ar)|token|(?:api|access|private|signing|encryption)[ _-]?key|credential"
    r"|\bcv[vc]2?\b|\b(?:otp|totp|2fa|mfa|pin)\b|(?:one[ _-]?time|verification|security)[ _-]?code"
    r"|(?:credit|debit|bank|payment)[ _-]?card|card[ _-]?number",
    re.IGNORECASE,
)


class QuestionRefused(ValueError):
    """A question that no person is asked; the message says why, for the model."""


def read_form(message: Any, schema: Any) -> ToolQuestion:
    """Return the question of a form.

    Raises:
        QuestionRefused: it asks for a secret, or for what no form of MCP asks.
    """
    if not isinstance(schema, dict) or len(json.dumps(schema, ensure_ascii=False)) > _LARGEST_SCHEMA:
        raise QuestionRefused(f"its form is no schema of at most {_LARGEST_SCHEMA} characters")
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type", "object") != "object" or not isinstance(properties, dict) or not isinstance(required, list):
        raise QuestionRefused("its form is no flat object")
    if len(properties) > _MOST_FIELDS:
        raise QuestionRefused(f"its form has more than {_MOST_FIELDS} fields")
    fields = tuple(_read_field(name, each, is_required=name in required) for name, each in properties.items())
    return ToolQuestion(_clean(message, _LONGEST_MESSAGE), fields)


def read_url(message: Any, url: Any) -> ToolQuestion:
    """Return the question to open an address.

    Raises:
        QuestionRefused: no person is sent to that address.
    """
    if not isinstance(url, str) or len(url) > _LONGEST_URL or re.search(r"[\s\x00-\x1f\x7f\\]", url):
        raise QuestionRefused("it sends the person to something that is no address")
    try:
        parts = urlsplit(url)
        host, has_account = parts.hostname or "", parts.username is not None or parts.password is not None
        parts.port  # noqa: B018 - it is read here
    except ValueError:
        raise QuestionRefused("it sends the person to something that is no address") from None
    if parts.scheme != "https" or not host or has_account:
        raise QuestionRefused("it sends the person to an address that is not plain https")
    if not host.isascii():
        raise QuestionRefused(f"the host of its address is not written in ASCII: {host_of(url)!r}")
    return ToolQuestion(_clean(message, _LONGEST_MESSAGE), url=url)


def host_of(url: str) -> str:
    """Return the host of an address."""
    return urlsplit(url).hostname or ""


def digest_of(question: ToolQuestion) -> str:
    """Return a digest by which a question is known again."""
    text = json.dumps([question.message, [repr(each) for each in question.fields], question.url])
    return hashlib.sha256(text.encode()).hexdigest()


def as_result(reply: Reply, question: ToolQuestion) -> dict[str, Any]:
    """Return a reply as the protocol writes an ElicitResult."""
    if reply.action is ReplyAction.ACCEPT and question.url is None:
        return {"action": reply.action.value, "content": dict(reply.content)}
    return {"action": reply.action.value}


def _clean(text: Any, limit: int) -> str:
    """Return a foreign text, bounded and storable; where it is shown, every character of it is made visible."""
    return shortened(storable(str(text))[: limit + 1], limit).strip()


def _read_field(name: str, schema: Any, *, is_required: bool) -> Field:
    if not isinstance(schema, dict) or not name or len(name) > _LONGEST_NAME:
        raise QuestionRefused("a field of its form is no schema")
    shown = _clean(name, _LONGEST_LABEL)
    kind, options = _read_kind(schema, shown)
    title = _clean(schema.get("title") or name, _LONGEST_LABEL)
    description = _clean(schema.get("description") or "", _LONGEST_DESCRIPTION)
    if _is_of_secret(schema, kind, name, title, description):
        raise QuestionRefused(
            f"its form asks for a secret, in the field {shown!r}: secrets are never asked for in a chat"
        )
    least, most = {FieldKind.TEXT: ("minLength", "maxLength"), FieldKind.CHOICES: ("minItems", "maxItems")}.get(
        kind, ("minimum", "maximum")
    )
    of_text = schema.get("format")
    return Field(
        name,
        kind,
        title or shown,
        description,
        is_required,
        options,
        _number(schema.get(least)),
        _number(schema.get(most)),
        of_text if of_text in _FORMATS else None,
    )


def _is_of_secret(schema: Mapping[str, Any], kind: FieldKind, *words: str) -> bool:
    if kind not in (FieldKind.TEXT, FieldKind.INTEGER, FieldKind.NUMBER):
        return False
    if schema.get("format") == "password" or schema.get("writeOnly") is True:
        return True
    seen = [as_it_looks(each) for each in words]
    if kind is not FieldKind.TEXT:  # how many tokens is no secret
        seen = [re.sub("tokens", "", each, flags=re.IGNORECASE) for each in seen]
    seen += [each.replace("_", " ") for each in seen]
    return any(_SECRET.search(each) or any(word in each for word in _secret_words()) for each in seen)


@cache
def _secret_words() -> frozenset[str]:
    """Return the words for secrets of every language of the interface."""
    said = (in_language("asking.secret_words", language) for language in LANGUAGES)
    return frozenset(as_it_looks(word) for words in said for word in words.split(","))


def _read_kind(schema: Mapping[str, Any], shown: str) -> tuple[FieldKind, tuple[tuple[str, str], ...]]:
    """Return what a field takes; anything but the flat kinds of the protocol is refused."""
    kind = schema.get("type", "string" if "enum" in schema or "oneOf" in schema else None)
    match kind:
        case "boolean":
            return FieldKind.BOOLEAN, ()
        case "integer":
            return FieldKind.INTEGER, ()
        case "number":
            return FieldKind.NUMBER, ()
        case "string":
            options = _read_options(schema, shown)
            return (FieldKind.CHOICE if options else FieldKind.TEXT), options
        case "array":
            items = schema.get("items")
            options = _read_options(items, shown) if isinstance(items, dict) else ()
            if options:
                return FieldKind.CHOICES, options
    raise QuestionRefused(f"the field {shown!r} of its form is neither text, number, boolean nor a choice")


def _read_options(schema: Mapping[str, Any], shown: str) -> tuple[tuple[str, str], ...]:
    titled, values, names = schema.get("oneOf", schema.get("anyOf")), schema.get("enum"), schema.get("enumNames")
    if titled is None and values is None:
        return ()
    pairs: list[tuple[Any, Any]] = []
    if isinstance(titled, list):
        pairs = [(each.get("const"), each.get("title")) for each in titled if isinstance(each, dict)]
    elif isinstance(values, list):
        has_names = isinstance(names, list) and len(names) == len(values)
        pairs = list(zip(values, names if has_names and names else values, strict=True))
    if not 0 < len(pairs) <= _MOST_OPTIONS:
        raise QuestionRefused(f"the field {shown!r} has no choices, or more than {_MOST_OPTIONS}")
    if not all(isinstance(value, str) and len(value) <= _LONGEST_NAME for value, _ in pairs):
        raise QuestionRefused(f"the choices of the field {shown!r} are not texts")
    return tuple((value, _clean(label or value, _LONGEST_LABEL) or "?") for value, label in pairs)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return value if is_number else None
