"""The conversation: what was said, what of it stands in a prompt, and how it is found again."""

from botservice.history.chat_history import ChatHistory
from botservice.history.search import SearchHit
from botservice.history.selectors import (
    MessageSelector,
    MessageWindowMessageSelector,
    NoMessages,
    TokenWindowMessageSelector,
)

__all__ = [
    "ChatHistory",
    "MessageSelector",
    "MessageWindowMessageSelector",
    "NoMessages",
    "SearchHit",
    "TokenWindowMessageSelector",
]
