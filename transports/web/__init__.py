"""The browser: a chat page, its events, and the inspector."""

from transports.web.access import Access
from transports.web.app import WebTransport

__all__ = ["Access", "WebTransport"]
