"""Why a server cannot be used, in words of ours: for the log, for `doctor` and for the model."""

from typing import Final

from botservice.agent.tool_outputs import OutputError
from botservice.core.errors import BotServiceError
from botservice.core.quoting import quote_name
from botservice.telemetry.logs import redact

_REFUSED: Final = {
    401: "it wants a login (401): give it a token by headers, such as Authorization, or let people sign in by OAuth",
    403: "it refuses (403): the token that it was given does not suffice",
    404: "there is nothing at its url (404)",
}
_CLOSED: Final = -32000  # MCP, error codes: CONNECTION_CLOSED
_CLIENT_SAYS: Final = ("Connection closed", "SSE stream")


class ServerAway(OutputError):
    """A server cannot be used at this moment; the message says so to the model."""


class ServerDown(BotServiceError):
    """A server cannot be used now; the message says why."""


def explain(error: BaseException, *, refused_with: int | None = None, last_words: str = "") -> str:
    """Return why a connection failed; what the server itself says is quoted, and known secrets are taken out."""
    cause = _innermost(error)
    if isinstance(cause, ServerDown):
        return redact(str(cause))
    if refused_with is not None:
        return _REFUSED.get(refused_with, f"it refuses ({refused_with})")
    if isinstance(cause, TimeoutError):
        reason = "it does not answer"
    elif isinstance(cause, ConnectionError) or "Connect" in type(cause).__name__:
        reason = "no connection can be made"
    elif isinstance(cause, OSError):
        reason = f"it cannot be started: {cause.strerror or type(cause).__name__}"
    elif is_closed(cause):
        reason = "it has ended"
    elif type(cause).__name__ == "MCPError":
        reason = f"it said: {quote_name(str(cause), 'nothing')}"
    else:
        reason = f"it does not speak as an MCP server does ({type(cause).__name__})"
    said = quote_name(redact(last_words), "")
    return redact(f'{reason}; its last words: "{said}"' if said else reason)


def is_closed(error: BaseException) -> bool:
    """Return whether the client says by an error that the connection has ended; servers use the same code otherwise."""
    return getattr(error, "code", None) == _CLOSED and str(error).startswith(_CLIENT_SAYS)


def _innermost(error: BaseException) -> BaseException:
    """Return the first error of a group that says something."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
