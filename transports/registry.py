"""Which transports the settings turn on. A transport is imported only where it is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from botservice.settings import Settings, reveal
from transports.served import ServedTransport

if TYPE_CHECKING:
    from transports.telegram.app import TelegramTransport


def build_transports(settings: Settings) -> Sequence[ServedTransport]:
    """Return the transports that have what they need."""
    from transports.web.access import Access
    from transports.web.app import WebTransport

    found: list[ServedTransport] = []
    if settings.telegram_bot_token is not None:
        found.append(build_telegram(settings))
    found.append(WebTransport(access=Access.of(settings)))
    return found


def build_telegram(settings: Settings) -> "TelegramTransport":
    """Return the transport of Telegram, which has a token."""
    from transports.telegram.app import TelegramTransport

    return TelegramTransport(
        token=reveal(settings.telegram_bot_token) or "",
        api_url=settings.telegram_api_url,
        webhook_secret=reveal(settings.telegram_webhook_secret),
        public_url=settings.public_url,
    )
