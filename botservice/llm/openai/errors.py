"""What goes wrong between the openai client and a server, in the service's words."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from botservice.errors import ContextOverflow, LLMError, LLMFailure
from botservice.settings import OPENAI_API_URL

if TYPE_CHECKING:
    import openai

_OVERFLOW_CODE = "context_length_exceeded"
_TOO_LONG = (400, 413, 422)
# How OpenAI, vLLM, llama.cpp, LM Studio, Mistral, Anthropic's and Google's compatible servers say it.
_OVERFLOW = re.compile(
    r"context.?(length|window|size)|maximum context|prompt is too long|input token count|reduce the length",
    re.IGNORECASE,
)
_TRANSIENT = (408, 409, 425, 429)
_CODE = re.compile(r"[a-z][a-z0-9_.]{0,63}")
_KINDS = {
    "insufficient_quota": LLMFailure.OUT_OF_QUOTA,
    "billing_hard_limit_reached": LLMFailure.OUT_OF_QUOTA,
    "billing_not_active": LLMFailure.OUT_OF_QUOTA,
    "model_not_found": LLMFailure.UNKNOWN_MODEL,
    "model_deprecated": LLMFailure.UNKNOWN_MODEL,
    "rate_limit_exceeded": LLMFailure.RATE_LIMITED,
    "invalid_api_key": LLMFailure.UNAUTHORIZED,
    "invalid_prompt": LLMFailure.BAD_REQUEST,
}
_OPENAI_HOST = urlsplit(OPENAI_API_URL).hostname
_EFFORT = ("reasoning_effort", "reasoning.effort")
_KIND_OF_STATUS = {
    401: LLMFailure.UNAUTHORIZED,
    402: LLMFailure.OUT_OF_QUOTA,
    403: LLMFailure.UNAUTHORIZED,
    429: LLMFailure.RATE_LIMITED,
}
_NO_ITEM = re.compile(r"\bItem\b.*\bnot found\b", re.IGNORECASE | re.DOTALL)
_NO_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)
_NO_ROUTE = re.compile(r"Invalid URL|page not found|cannot (POST|GET)|method not allowed", re.IGNORECASE)
_LASTING = (LLMFailure.OUT_OF_QUOTA, LLMFailure.UNKNOWN_MODEL, LLMFailure.UNAUTHORIZED, LLMFailure.BAD_REQUEST)


def translate(
    error: "openai.OpenAIError | httpx2.RequestError",
    model: str,
    named_by: str = "OPENAI_MODEL, OPENAI_FALLBACK_MODELS",
) -> LLMError:
    """Return the error without anything that the server repeats of the request, and with what to do.

    Args:
        named_by: The settings that name the model.
    """
    import openai

    if is_overflow(error):
        return ContextOverflow("the prompt is longer than the model's context window")
    match error:
        case openai.APITimeoutError() | httpx2.TimeoutException():
            return LLMError("the model's server did not take the call in time")
        case openai.APIConnectionError() | httpx2.RequestError():
            return LLMError(_unreachable(error.request.url.host))
        case openai.APIStatusError():
            return _of_status(error, model, named_by)
        case openai.APIError():  # an event in the stream
            return reported({"code": error.code}, otherwise=type(error).__name__)
        case _:
            return LLMError(f"the openai client failed with {type(error).__name__}")


def _unreachable(host: str) -> str:
    """Return which server could not be reached, and which setting names it where it is not OpenAI's own."""
    where = "is there a way to it from here" + ("" if host == _OPENAI_HOST else ", and is OPENAI_BASE_URL right")
    return f"the model's server ({host}) cannot be reached, or it cut the connection: {where}?"


def reported(error: Any, *, otherwise: str = "APIError") -> LLMError:
    """Return the error that a server reports while it answers.

    Args:
        otherwise: What it is called where it has no code.
    """
    code = _word(error.get("code")) if isinstance(error, Mapping) else None  # some servers say a text
    if code == _OVERFLOW_CODE:
        return ContextOverflow("the prompt is longer than the model's context window")
    kind = _KINDS.get(code or "", LLMFailure.UNAVAILABLE)
    text = f"the model's server reported an error while it answered ({code or otherwise})"
    return LLMError(text, is_transient=kind not in _LASTING, kind=kind, code=code)


def is_overflow(error: Exception) -> bool:
    """Return whether error says that the prompt is too long for the model."""
    import openai

    if not isinstance(error, openai.APIError):
        return False
    if error.code == _OVERFLOW_CODE:
        return True
    return (
        isinstance(error, openai.APIStatusError)
        and error.status_code in _TOO_LONG
        and bool(_OVERFLOW.search(str(error)))
    )


def is_missing_route(error: "openai.APIStatusError") -> bool:
    """Return whether a server has nothing at a path, which is neither a missing model nor a missing item."""
    if error.status_code == 405:
        return True
    text = str(error)
    is_other = error.code == "model_not_found" or _NO_ITEM.search(text) or _NO_MODEL.search(text)
    return error.status_code == 404 and not is_other


def failure_kind(error: "openai.APIStatusError") -> LLMFailure:
    """Return why a server refused a call."""
    known = _KINDS.get(_code(error)) or _KIND_OF_STATUS.get(error.status_code)
    if known is not None:
        return known
    if error.status_code in (404, 410):
        is_no_model = not (_NO_ITEM.search(str(error)) or _NO_ROUTE.search(str(error)))
        return LLMFailure.UNKNOWN_MODEL if is_no_model else LLMFailure.BAD_REQUEST
    is_passing = error.status_code in _TRANSIENT or error.status_code >= 500
    return LLMFailure.UNAVAILABLE if is_passing else LLMFailure.BAD_REQUEST


def _of_status(error: "openai.APIStatusError", model: str, named_by: str) -> LLMError:
    kind = failure_kind(error)
    return LLMError(
        f"the model's server answered {error.status_code} ({_code(error)}){_remedy(error, kind, model, named_by)}",
        is_transient=_is_transient(error, kind),
        retry_after_seconds=_retry_after(error),
        kind=kind,
        status_code=error.status_code,
        code=_own_code(error),
    )


def _remedy(error: "openai.APIStatusError", kind: LLMFailure, model: str, named_by: str) -> str:
    if kind is LLMFailure.UNAUTHORIZED:
        return ": OPENAI_API_KEY is missing, wrong, or not allowed to do this"
    if kind is LLMFailure.UNKNOWN_MODEL or error.status_code == 404:
        return f": there is no model {model!r} there, or no more ({named_by}), or the path of OPENAI_BASE_URL is wrong"
    if kind is LLMFailure.OUT_OF_QUOTA:
        return ": the account has no credit left"
    if kind is LLMFailure.BAD_REQUEST and "/v1/responses" in str(error):
        return f": with tools, {model!r} wants OPENAI_API=responses, or OPENAI_REASONING_EFFORT=none if it knows that"
    if error.param in _EFFORT:
        return f": {model!r} does not take this OPENAI_REASONING_EFFORT: unset it, or set another one"
    return ""


def _is_transient(error: "openai.APIStatusError", kind: LLMFailure) -> bool:
    return kind not in _LASTING and (error.status_code in _TRANSIENT or error.status_code >= 500)


def _code(error: "openai.APIError") -> str:
    """Return the server's code where it is one, and no text that a person wrote."""
    return _own_code(error) or type(error).__name__


def _own_code(error: "openai.APIError") -> str | None:
    return _word(error.code)


def _word(code: Any) -> str | None:
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


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
