"""The browser: a chat page, its events, and the inspector."""

from transports.web.app import WebTransport
from transports.web.owner_token import PageAccess

__all__ = ["PageAccess", "WebTransport"]
