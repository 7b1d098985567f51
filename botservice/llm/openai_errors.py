"""What goes wrong between the openai client and a server, in the service's words."""

import re

import openai

from botservice.errors import ContextOverflow, LLMError

_TOO_LONG = (400, 413, 422)
# How OpenAI, vLLM, llama.cpp, LM Studio, Mistral, Anthropic's and Google's compatible servers say it.
_OVERFLOW = re.compile(
    r"context.?(length|window|size)|maximum context|prompt is too long|input token count|reduce the length",
    re.IGNORECASE,
)
_TRANSIENT = (408, 409, 425, 429)
_CODE = re.compile(r"[a-z][a-z0-9_.]{0,63}")


def translate(error: openai.OpenAIError, model: str) -> LLMError:
    """Return the error without anything that the server repeats of the request, and with what to do."""
    if is_overflow(error):
        return ContextOverflow("the prompt is longer than the model's context window")
    match error:
        case openai.APITimeoutError():
            return LLMError("the model's server did not take the call in time")
        case openai.APIConnectionError():
            return LLMError("the model's server cannot be reached, or it cut the connection: is OPENAI_BASE_URL right?")
        case openai.APIStatusError():
            return LLMError(
                f"the model's server answered {error.status_code} ({_code(error)}){_remedy(error, model)}",
                is_transient=_is_transient(error),
                retry_after_seconds=_retry_after(error),
            )
        case openai.APIError():  # an event in the stream
            return LLMError(f"the model's server reported an error while it answered ({_code(error)})")
        case _:
            return LLMError(f"the openai client failed with {type(error).__name__}")


def is_overflow(error: openai.OpenAIError) -> bool:
    """Return whether error says that the prompt is too long for the model."""
    if not isinstance(error, openai.APIError):
        return False
    if error.code == "context_length_exceeded":
        return True
    return (
        isinstance(error, openai.APIStatusError)
        and error.status_code in _TOO_LONG
        and bool(_OVERFLOW.search(str(error)))
    )


def _remedy(error: openai.APIStatusError, model: str) -> str:
    match error.status_code:
        case 401 | 403:
            return ": OPENAI_API_KEY is missing, wrong, or not allowed to do this"
        case 404:
            return f": there is no model {model!r} there (OPENAI_MODEL), or the path of OPENAI_BASE_URL is wrong"
        case 429 if error.code == "insufficient_quota":
            return ": the account has no credit left"
        case _:
            return ""


def _is_transient(error: openai.APIStatusError) -> bool:
    if error.code == "insufficient_quota":
        return False
    return error.status_code in _TRANSIENT or error.status_code >= 500


def _code(error: openai.APIError) -> str:
    """Return the server's code where it is one, and no text that somebody wrote."""
    code = error.code
    return code if isinstance(code, str) and _CODE.fullmatch(code) else type(error).__name__


def _retry_after(error: openai.APIStatusError) -> float | None:
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, seconds) if seconds < float("inf") else None
