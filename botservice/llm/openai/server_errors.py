"""Reading what a server says went wrong: a body of any shape, in the place of an answer or inside of one."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from botservice.core.errors import LLMFailure
from botservice.llm.openai.error_table import (
    AUDIO,
    CLIENT_STATUSES,
    FILE,
    IMAGE,
    KIND_OF_CODE,
    KIND_OF_STATUS,
    MISSING_PATH,
    ONE_IMAGE,
    RULES,
)

_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,63}")
_MOST_CHARACTERS: Final = 8_000
_MOST_BYTES: Final = 200_000
_DEEPEST: Final = 8
_SUCCESS: Final = range(200, 300)
_FAILURES: Final = range(400, 600)
# What repeats the request or its address, and so the words of people.
_OF_THE_REQUEST: Final = frozenset(
    {"input", "prompt", "messages", "content", "body", "request", "request_id", "requestid", "url", "ctx", "instance"}
    | {"failed_generation", "user_id", "documentation_url", "help", "@type", "traceback", "stacktrace"}
)
_CODES: Final = ("code", "type", "status", "reason", "error")
_STATUSES: Final = ("code", "status", "status_code", "http_code")
_NOT_FOUND: Final = 404
_NO_METHOD: Final = 405
_FIRST_OF_SERVERS: Final = 500
_OF_MODELS: Final = re.compile(r"\bmodel\b", re.IGNORECASE)
_MIME_TYPE: Final = re.compile(r"\b(?:image|application|audio|video|text)/[a-z0-9.+-]{1,60}", re.IGNORECASE)
_OF_A_TYPE: Final = re.compile(
    r"(?:un|not )support[^.:]{0,40}(?:mime|media|format|type|image/)|(?:mime|media|format|type|image/\S{1,60})"
    r"[^.:]{0,40}(?:unsupported|not (?:be )?(?:support|allow|accept))",
    re.IGNORECASE,
)
_OF_TYPES: Final = (IMAGE, ONE_IMAGE, FILE, AUDIO)
# One without an end reaches to the end, so that each sign is looked at once.
_MARKUP: Final = re.compile(r"<(style|script)\b.*?(?:</\1>|\Z)|<[^<>]*>", re.IGNORECASE | re.DOTALL)


_WORD: Final = re.compile(r"[^\W\d][\w']*")
_MOST_WORDING: Final = 300
_ESCAPE: Final = re.compile(r"\\.")
_TABLE_WORDS: Final = frozenset(
    word.lower() for rule in RULES for word in _WORD.findall(_ESCAPE.sub(" ", rule.pattern.pattern))
)


@dataclass(frozen=True, slots=True)
class ServerError:
    """What a server says went wrong.

    Attributes:
        status: Its HTTP status, or the one that the body names; None inside of a stream that names none.
        code: Its own word for the error, such as `insufficient_quota`, where it has one.
        codes: This, and whatever else in the body may be such a word: the most exact one first.
        text: All that it says, without what repeats the request. It may contain words of people: it is never shown.
    """

    status: int | None
    code: str | None
    codes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ErrorOutcome:
    """What an error of a server means.

    Attributes:
        refused: What it does not take, as the table of errors calls it.
        wording: By which words it says so: those of the table alone, so that none of a person is among them.
    """

    kind: LLMFailure
    refused: str | None = None
    wording: str | None = None


def read_error(body: object, status: int | None = None) -> ServerError:
    """Read the body of an error.

    Args:
        body: Bytes or text as they came, or parsed JSON.
        status: The HTTP status; one of success, or None, where the error came inside of an answer.
    """
    value = _parsed(body)
    codes = [code for each in _mappings(value, 0) for name in _CODES if (code := _code(each.get(name)))]
    code = next((each["code"] for each in _mappings(value, 0) if each.get("code") is not None), None)
    if status is None or status in _SUCCESS:
        status = next(_statuses(value, 0), None)
    text = "\n".join(_texts(value, 0))[:_MOST_CHARACTERS]
    return ServerError(status, _code(code), tuple(codes), text)


def judge(error: ServerError) -> ErrorOutcome:
    """Say what an error means, by the table of wordings, then by its codes, then by its status."""
    for rule in RULES:
        if error.status is not None and error.status not in rule.statuses:
            continue
        if found := rule.pattern.search(error.text):
            return ErrorOutcome(rule.kind, _exactly(rule.refused, error.text), _wording(error.status, found[0]))
    known = (KIND_OF_CODE.get(code.lower()) for code in error.codes)
    kind = next((kind for kind in known if kind is not None), None)
    is_refusal = error.status in CLIENT_STATUSES  # which a server may call an error of its own all the same
    if kind is not None and not (kind is LLMFailure.UNAVAILABLE and is_refusal):
        return ErrorOutcome(kind)
    if error.status is None:
        return ErrorOutcome(LLMFailure.UNAVAILABLE)
    if error.status == _NO_METHOD or (error.status == _NOT_FOUND and not _OF_MODELS.search(error.text)):
        kind = LLMFailure.UNKNOWN_MODEL if error.status == _NOT_FOUND else LLMFailure.BAD_REQUEST
        return ErrorOutcome(kind, MISSING_PATH)
    default = LLMFailure.UNAVAILABLE if error.status >= _FIRST_OF_SERVERS else LLMFailure.BAD_REQUEST
    return ErrorOutcome(KIND_OF_STATUS.get(error.status, default))


def _exactly(refused: str | None, text: str) -> str | None:
    """Return the media type that a refusal of input names, where it is the one that is refused; or what it refuses.

    What is said of one picture, such as that it is damaged, says nothing of others of its type.
    """
    if refused not in _OF_TYPES or (refused == ONE_IMAGE and not _OF_A_TYPE.search(text)):
        return refused
    types = {found.lower() for found in _MIME_TYPE.findall(text)}
    return types.pop() if len(types) == 1 else refused


def _wording(status: int | None, said: str) -> str:
    """Return what a server said, with "…" for each word that the table of errors does not know."""
    words = [word if word.lower() in _TABLE_WORDS else "…" for word in _WORD.findall(said[:_MOST_WORDING])]
    return " ".join([*([] if status is None else [str(status)]), *(word for word, _ in groupby(words))])


def _parsed(body: object) -> object:
    if isinstance(body, bytes):
        body = body[:_MOST_BYTES].decode(errors="replace")
    if not isinstance(body, str):
        return body
    text = body[:_MOST_BYTES].strip()
    if text.startswith(("data:", "event:", "error:")):  # an event of a stream in the place of an answer
        text = next((line.split(":", 1)[1].strip() for line in text.splitlines() if line[:5] in ("data:", "error")), "")
    if text[:1] in ("{", "[", '"'):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return _MARKUP.sub(" ", text) if text.startswith("<") else text


def _texts(value: object, depth: int) -> Iterator[str]:
    """Yield the texts of a body, without those that repeat the request."""
    match value:
        case str() if value[:1] in ("{", "[") and depth < _DEEPEST:  # one server repeats the body of another
            inner = _parsed(value)
            yield from (value,) if isinstance(inner, str) else _texts(inner, depth + 1)
        case str():
            yield value
        case Mapping() if depth < _DEEPEST:
            for name, inner in value.items():
                if str(name).lower() not in _OF_THE_REQUEST:
                    yield from _texts(inner, depth + 1)
        case list() if depth < _DEEPEST:
            for inner in value:
                yield from _texts(inner, depth + 1)
        case _:
            pass


def _mappings(value: object, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a body, what is inside of `error` first: the inner one is the more exact one."""
    if depth >= _DEEPEST:
        return
    if isinstance(value, list):
        for each in value[:3]:
            yield from _mappings(each, depth + 1)
    elif isinstance(value, Mapping):
        for name in ("error", "detail", "body"):
            yield from _mappings(value.get(name), depth + 1)
        yield value


def _code(value: object) -> str | None:
    return value if isinstance(value, str) and _CODE.fullmatch(value) else None


def _statuses(value: object, depth: int) -> Iterator[int]:
    for each in _mappings(value, depth):
        for name in _STATUSES:
            status = each.get(name)
            if isinstance(status, str) and status.isdecimal() and len(status) <= len("599"):
                status = int(status)
            if isinstance(status, int) and status in _FAILURES:
                yield status
