"""What goes wrong between the openai client and a server: what the server says, of any shape, and in our words."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2

from botservice.config.settings import OPENAI_API_URL
from botservice.core.errors import ContextOverflow, LLMError, LLMFailure
from botservice.llm.openai.error_table import (
    AUDIO,
    CHAT_PATH,
    CLIENT_STATUSES,
    FILE,
    IMAGE,
    KIND_OF_CODE,
    KIND_OF_STATUS,
    MISSING_PATH,
    ONE_IMAGE,
    RULES,
)
from botservice.llm.proxies_and_tls import through_proxy

if TYPE_CHECKING:
    import openai

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


_SMALL_CODE: Final = re.compile(r"[a-z][a-z0-9_.]{0,63}")
_OPENAI_HOST: Final = urlsplit(OPENAI_API_URL).hostname
_PASSING: Final = (LLMFailure.UNAVAILABLE, LLMFailure.RATE_LIMITED)
_NAMED_BY: Final = "OPENAI_MODEL, OPENAI_FALLBACK_MODELS"
_REMEDIES: Final = {
    LLMFailure.UNAUTHORIZED: ": OPENAI_API_KEY is missing, wrong, or not allowed to do this",
    LLMFailure.OUT_OF_QUOTA: ": the account has no credit left",
    LLMFailure.CONTENT_FILTER: ": a filter of the server refuses what was said",
}


def translate(error: "openai.OpenAIError | httpx2.RequestError", model: str, named_by: str = _NAMED_BY) -> LLMError:
    """Return the error without anything that the server repeats of the request, and with what to do.

    Args:
        named_by: The settings that name the model.
    """
    import openai

    match error:
        case openai.APITimeoutError() | httpx2.TimeoutException():
            return LLMError("the model's server did not take the call in time")
        case openai.APIConnectionError() | httpx2.RequestError():
            url = error.request.url
            return LLMError(_unreachable(url.host, f"{url.host}:{url.port}" if url.port else url.host, url.scheme))
        case openai.APIStatusError():
            said = read_error(error.response.content, error.status_code)
            begin = f"the model's server answered {error.status_code} ({_own_code(said) or type(error).__name__})"
            return _as_error(said, begin, _retry_after(error), model, named_by)
        case openai.APIError():  # an event in a stream that the client reads itself
            return reported(getattr(error, "body", None) or {"code": error.code})
        case _:
            return LLMError(f"the openai client failed with {type(error).__name__}")


def reported(body: object) -> LLMError:
    """Return the error that a server reports inside of an answer.

    Args:
        body: What it says, of any shape.
    """
    said = read_error(body)
    return _as_error(said, f"the model's server reported an error while it answered ({_own_code(said) or 'no code'})")


def unanswered(body: object, otherwise: str) -> LLMError:
    """Return why a body is no answer: the error that it names, or otherwise what is wrong with it."""
    error = reported(body)
    is_named = isinstance(body, Mapping) and bool(body.get("error"))
    return error if is_named or error.code or error.kind is not LLMFailure.UNAVAILABLE else LLMError(otherwise)


def _unreachable(host: str, address: str, scheme: str) -> str:
    """Return which server could not be reached, by which proxy, and which setting names it where it is not OpenAI's."""
    where = "is there a way to it from here" + ("" if host == _OPENAI_HOST else ", and is OPENAI_BASE_URL right")
    by = through_proxy(f"{scheme}://{address}")
    return f"the model's server ({host}) cannot be reached{by}, or it cut the connection: {where}?"


def _as_error(
    said: ServerError, begin: str, retry_after: float | None = None, model: str = "", named_by: str = _NAMED_BY
) -> LLMError:
    outcome = judge(said)
    if outcome.kind is LLMFailure.OVERFLOW:
        return ContextOverflow("the prompt is longer than the model's context window")
    return LLMError(
        begin + _remedy(outcome, repr(model) if model else "the model", said.status, named_by),
        is_transient=outcome.kind in _PASSING,
        retry_after_seconds=retry_after,
        kind=outcome.kind,
        status_code=said.status,
        code=_own_code(said),
        refused=outcome.refused,
        wording=outcome.wording,
    )


def _remedy(outcome: ErrorOutcome, model: str, status: int | None, named_by: str) -> str:
    if outcome.kind is LLMFailure.UNKNOWN_MODEL or (outcome.refused == MISSING_PATH and status not in (400, 405)):
        return f": there is no model {model} there, or no more ({named_by}), or the path of OPENAI_BASE_URL is wrong"
    if outcome.refused == CHAT_PATH:
        return f": with tools, {model} wants OPENAI_API=responses, or OPENAI_REASONING_EFFORT=none if it knows that"
    if outcome.refused == "reasoning_effort":
        return f": {model} does not take this OPENAI_REASONING_EFFORT: unset it, or set another one"
    if outcome.refused is not None:
        return f": it does not take this ({outcome.refused})"
    return _REMEDIES.get(outcome.kind, "")


def _own_code(said: ServerError) -> str | None:
    """Return the server's code where it is one, and no text that a person wrote."""
    return said.code if said.code is not None and _SMALL_CODE.fullmatch(said.code) else None


def _retry_after(error: "openai.APIStatusError") -> float | None:
    """Return in how many seconds a server wants to be asked again: it says a number of them, or a date (RFC 9110)."""
    headers = error.response.headers
    milliseconds, said = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    seconds = _number(said) if milliseconds is None else milliseconds / 1000
    if seconds is None:
        return _seconds_until(said)
    return max(0.0, seconds) if seconds < float("inf") else None


def _number(said: str) -> float | None:
    try:
        return float(said)
    except ValueError:
        return None


def _seconds_until(date: str) -> float | None:
    try:
        at = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
