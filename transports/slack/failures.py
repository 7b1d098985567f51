"""What Slack's refusals mean: every error of its client is translated here."""

import asyncio

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from botservice.errors import BotServiceError, DeliveryError, DeliveryRefused, DeliveryUnknown

# The request did not leave: nothing can have happened.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
# "Some aspect of the operation succeeded before the error was raised." Source: docs.slack.dev, errors of every method.
_HALF_DONE = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org"})
# A token that was changed is put right by whoever runs the bot; what is owed waits for that.
_LATER = frozenset(
    {
        "ratelimited",
        "rate_limited",
        "message_limit_exceeded",
        "invalid_auth",
        "not_authed",
        "token_expired",
        *_HALF_DONE,
    }
)
_TOKEN_GONE = frozenset({"account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked"})
_FORM = frozenset(
    {
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_arguments",
        "markdown_text_conflict",
        "msg_blocks_too_long",
        "msg_too_long",
    }
)
# What is drawn in a message, such as a table, is not known in this workspace.
_FIGURES = frozenset({"invalid_blocks", "invalid_blocks_format", "invalid_chunks"})
_ARGUMENTS = frozenset({"invalid_arguments", "invalid_session_status", "invalid_task_display_mode"})
# Neither another time nor in another form: the workspace has no such thing, or the app may not use it.
_NOT_HERE = frozenset(
    {
        "feature_not_enabled",
        "method_deprecated",
        "missing_scope",
        "not_allowed_token_type",
        "unknown_method",
        *_ARGUMENTS,
    }
)
# One conversation is not as it was thought to be; others of the workspace are.
_PLACE = frozenset(
    {
        "access_denied",
        "cannot_reply_to_message",
        "channel_not_found",
        "channel_type_not_supported",
        "invalid_thread_ts",
        "is_archived",
        "message_not_found",
        "no_permission",
        "not_in_channel",
        "restricted_action",
        "session_not_found",
        "thread_not_found",
        "user_not_found",
        "user_not_in_channel",
    }
)
_STREAMING_OFF = frozenset(
    {"channel_type_not_supported", "feature_not_enabled", "not_allowed_token_type", "unknown_method"}
)


class SlackFailure(BotServiceError):
    """A call that Slack refused, or that has no answer.

    Attributes:
        code: Slack's word for it; "lost" where no answer came, "unreachable" where the request did not leave.
        retry_after_seconds: How long Slack asked to wait, if it did.
        needed: The scope that the token lacks, where that is why.
    """

    def __init__(
        self, code: str, *, retry_after_seconds: float | None = None, needed: str | None = None, detail: str = ""
    ) -> None:
        super().__init__(f"Slack says {code}" + (f" ({detail})" if detail else ""))
        self.code = code
        self.retry_after_seconds = retry_after_seconds
        self.needed = needed

    @property
    def is_unknown(self) -> bool:
        """Whether it may have happened all the same."""
        return self.code == "lost" or self.code in _HALF_DONE

    @property
    def is_later(self) -> bool:
        """Whether trying again later may help."""
        return self.is_unknown or self.code in _LATER or self.code == "unreachable"

    @property
    def is_token_gone(self) -> bool:
        """Whether the token is not valid any more."""
        return self.code in _TOKEN_GONE

    @property
    def is_about_form(self) -> bool:
        """Whether the same words may pass in a simpler form."""
        return self.code in _FORM

    @property
    def is_about_figures(self) -> bool:
        """Whether what is drawn in a message is not known there."""
        return self.code in _FIGURES

    @property
    def is_about_arguments(self) -> bool:
        """Whether something that was asked for is not known there."""
        return self.code in _ARGUMENTS

    @property
    def is_not_here(self) -> bool:
        """Whether a method cannot be used in this workspace."""
        return self.code in _NOT_HERE

    @property
    def is_about_place(self) -> bool:
        """Whether it says something about one conversation, and nothing about its workspace."""
        return self.code in _PLACE

    @property
    def is_without_streams(self) -> bool:
        """Whether a workspace, or a conversation, has no streams."""
        return self.code in _STREAMING_OFF


class NotInstalled(BotServiceError):
    """No token is known for a workspace."""


def translate(error: Exception) -> SlackFailure:
    """Return what went wrong with a call."""
    if isinstance(error, SlackApiError):
        return _refusal(error)
    if isinstance(error, _NOT_SENT):
        return SlackFailure("unreachable")
    if isinstance(error, aiohttp.ClientError | TimeoutError | asyncio.TimeoutError | OSError):
        return SlackFailure("lost")
    if isinstance(error, SlackClientError):
        return SlackFailure("invalid_arguments", detail=type(error).__name__)
    return SlackFailure("lost", detail=type(error).__name__)


def as_delivery_error(failure: SlackFailure) -> DeliveryError:
    """Return what failure means for a message that was to become visible."""
    if failure.is_unknown:
        return DeliveryUnknown("Slack's answer was lost")
    if failure.is_later:
        return DeliveryError(str(failure), retry_after_seconds=failure.retry_after_seconds)
    return DeliveryRefused(f"Slack refuses: {failure.code}")


def _refusal(error: SlackApiError) -> SlackFailure:
    response = error.response
    status = int(getattr(response, "status_code", None) or getattr(response, "status", None) or 200)
    data = getattr(response, "data", None)
    data = data if isinstance(data, dict) else {}
    code = data.get("error")
    if status == 429:
        return SlackFailure("ratelimited", retry_after_seconds=_seconds(getattr(response, "headers", {})))
    if not isinstance(code, str) or status >= 500:
        return SlackFailure("lost" if status != 404 else "unknown_method", detail=f"HTTP {status}")
    needed = data.get("needed")
    return SlackFailure(code, needed=needed if isinstance(needed, str) else None)


def _seconds(headers: object) -> float:
    """Return what Retry-After says; Slack means whole seconds."""
    value = next((value for name, value in dict(headers or {}).items() if name.lower() == "retry-after"), "1")  # type: ignore[call-overload]  # headers of whichever client
    if isinstance(value, list):
        value = value[0] if value else "1"
    try:
        return max(float(value), 0.0)
    except ValueError:
        return 1.0
