"""What the Bot API's refusals mean: every error of the client library is translated here."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import aiohttp
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from botservice.core.errors import DeliveryError, DeliveryRefused, DeliveryUnknown
from botservice.llm.proxies_and_tls import THROUGH

# The request did not leave: nothing can have happened.
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
    aiohttp.ClientHttpProxyError,
)

_REFUSALS = (BadRequest, Forbidden)
# Refusals are known by parts of their descriptions. Source of the words: tdlib/telegram-bot-api, Client.cpp.


def _says(*parts: str, kinds: tuple[type[TelegramError], ...] = (BadRequest,)) -> Callable[[TelegramError], bool]:
    """Return what tells whether an error is a refusal that has one of some words, in lower case, in it."""

    def says(error: TelegramError) -> bool:
        message = error.message.lower()
        return isinstance(error, kinds) and any(part in message for part in parts)

    return says


is_topic_gone: Final = _says("message thread not found", "topic_deleted", "topic_id_invalid", "thread_not_found")
"""Whether the topic is not there any more."""

is_reply_gone: Final = _says(
    "message to be replied not found", "reply message not found", "replied message not found", "quote_text"
)
"""Whether the message that was to be replied to is gone."""

is_not_modified: Final = _says("message is not modified")
"""Whether the message stands there already as it should be."""

is_not_editable: Final = _says(
    "message to edit not found", "message can't be edited", "message_id_invalid", "no text in the message"
)
"""Whether the message that was to be changed is gone."""

is_about_buttons: Final = _says("button", "inline keyboard", "reply markup", "reply_markup")
"""Whether the same message may pass without its buttons."""

is_no_chat: Final = _says(
    *("chat not found", "chat_id_invalid", "bot was kicked", "bot was blocked", "not a member", "deactivated"),
    kinds=_REFUSALS,
)
"""Whether nobody can be told anything in any form: the chat, or the bot's place in it, is not there."""

is_too_late: Final = _says("query is too old", "query_id_invalid", "user_not_participant", kinds=_REFUSALS)
"""Whether one person could not be told alone this time: their press is long ago, or they have left."""

_says_gone = _says(
    *("chat not found", "chat_id_invalid", "peer_id_invalid", "user not found", "user_is_blocked"),
    *("input_user_deactivated", "not enough rights", "have no rights", "need administrator rights"),
    *("chat_write_forbidden", "chat_restricted", "chat_send_", "voice_messages_forbidden", "topic_closed"),
)
_says_entities = _says("entit", "can't parse", "text_link", "url", "user not found", "custom_emoji", "message_too_long")
_forbids_kind = _says(
    "not enough rights to send", "chat_send_", "voice_messages_forbidden", "can't be sent", kinds=_REFUSALS
)
_forbids_words = _says("text messages", "chat_send_plain", "not enough rights to send messages", kinds=_REFUSALS)


def wait_of(error: RetryAfter) -> float:
    """Return the seconds that a 429 asks to wait."""
    wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def as_delivery_error(error: TelegramError) -> DeliveryError:
    """Return what error means for a message that was to become visible."""
    if isinstance(error, RetryAfter):
        wait = wait_of(error)
        return DeliveryError(f"Telegram asks to wait {wait:g} s", retry_after_seconds=wait)
    if isinstance(error, ChatMigrated):
        return DeliveryError("the group has become a supergroup", retry_after_seconds=0.0)
    if isinstance(error, Forbidden | BadRequest) and not is_unreadable(error):
        return DeliveryRefused(f"Telegram refuses: {error.message}")
    return _as_lost(error)


def _as_lost(error: TelegramError) -> DeliveryError:
    if isinstance(error.__cause__, _NOT_SENT):
        return DeliveryError(f"Telegram cannot be reached{_by_proxy(error)}")
    if isinstance(error, TimedOut) or isinstance(error.__cause__, aiohttp.ClientError):
        return DeliveryUnknown(f"Telegram's answer was lost{_by_proxy(error)}")
    return DeliveryError(f"Telegram failed: {type(error).__name__}")


def reason_of(error: Exception) -> str:
    """Return why Telegram could not be asked, as it stands in the log: the kind of the error, and by which proxy."""
    return f"{type(error).__name__}{_by_proxy(error)}"


def _by_proxy(error: Exception) -> str:
    """Return the proxy that an error of the client names."""
    _, found, proxy = str(error).partition(THROUGH)
    return found + proxy


def is_gone(error: TelegramError) -> bool:
    """Return whether the chat takes nothing from this bot, whatever it is."""
    return isinstance(error, Forbidden) or _says_gone(error)


def is_about_entities(error: TelegramError) -> bool:
    """Return whether the same text may pass without its formatting."""
    return _says_entities(error) and not is_gone(error)


def is_kind_forbidden(error: TelegramError) -> bool:
    """Return whether a chat takes no messages of a kind, such as pictures; other ones may pass."""
    return _forbids_kind(error) and not _forbids_words(error)


def is_method_unknown(error: TelegramError) -> bool:
    """Return whether a server lacks a method: the client says of it what it says of a token, which is 401."""
    return isinstance(error, InvalidToken) and "not found" in error.message.lower() and not is_unreadable(error)


def is_too_large(error: TelegramError) -> bool:
    """Return whether a call holds more bytes than a server takes at once (413)."""
    return isinstance(error, NetworkError) and "request entity too large" in error.message.lower()


def is_failing(error: TelegramError) -> bool:
    """Return whether a server was reached and failed, or said nothing that the Bot API says."""
    is_network = isinstance(error, NetworkError) and not isinstance(error, BadRequest)
    return is_unreadable(error) or (is_network and not isinstance(error.__cause__, _NOT_SENT))


def is_unreadable(error: TelegramError) -> bool:
    """Return whether an answer is not the Bot API's, but that of something before it, as of a proxy."""
    return isinstance(error.__cause__, TelegramError)
