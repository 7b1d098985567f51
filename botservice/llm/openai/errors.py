"""What goes wrong between the openai client and a server, in the service's words."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2

from botservice.config.settings import OPENAI_API_URL
from botservice.core.errors import ContextOverflow, LLMError, LLMFailure
from botservice.llm.openai.error_table import CHAT_PATH, MISSING_PATH
from botservice.llm.openai.server_errors import ErrorOutcome, ServerError, judge, read_error
from botservice.llm.proxies import through_proxy

if TYPE_CHECKING:
    import openai

_CODE: Final = re.compile(r"[a-z][a-z0-9_.]{0,63}")
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
    return said.code if said.code is not None and _CODE.fullmatch(said.code) else None


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
