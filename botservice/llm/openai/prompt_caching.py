"""What a server is told so that it finds the beginning of a prompt again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.llm.chat import CachedPrompt, ChatMessage
from botservice.llm.openai.options import CallOptions

KEY: Final = "prompt_cache_key"
BREAKPOINT: Final = "prompt_cache_breakpoint"
_FAMILY: Final = re.compile(r"gpt-([0-9]{1,4})(?:\.([0-9]{1,4}))?(?![0-9.])")
_FIRST_WITH_BREAKPOINTS: Final = (5, 6)


@dataclass(frozen=True, slots=True)
class CacheMarks:
    """What goes into one request.

    Attributes:
        key: What requests with the same beginning have in common; None for servers that know of none.
        breakpoints: The places of the messages after which the server is to keep what it has read.
    """

    key: str | None = None
    breakpoints: frozenset[int] = frozenset()

    @classmethod
    def of(cls, messages: Sequence[ChatMessage], options: CallOptions) -> "CacheMarks":
        """Return what a prompt asks for, as far as its server and its model know of it."""
        key, places = None, frozenset[int]()
        if isinstance(messages, CachedPrompt) and KEY not in options.refused and knows_keys(options):
            key = messages.cache_key
        if isinstance(messages, CachedPrompt) and BREAKPOINT not in options.refused and knows_breakpoints(options):
            places = frozenset(messages.breakpoints)
        return cls(key, places)


def copy_marks(messages: Sequence[ChatMessage], changed: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return changed messages, each in the place of the one before, with what the prompt says of caches."""
    if not isinstance(messages, CachedPrompt):
        return changed
    return _Marked(changed, messages)


class _Marked(CachedPrompt):
    cache_key: str | None = None
    breakpoints: Sequence[int] = ()

    def __init__(self, messages: Sequence[ChatMessage], like: CachedPrompt) -> None:
        super().__init__(messages)
        self.cache_key, self.breakpoints = like.cache_key, like.breakpoints


def knows_keys(options: CallOptions) -> bool:
    """Return whether the server takes a key with a request: OpenAI's does, and others may refuse it."""
    return options.is_openai


def knows_breakpoints(options: CallOptions) -> bool:
    """Return whether the model takes breakpoints at the parts of messages.

    Source: OpenAI API reference, responses and chat completions, prompt_cache_breakpoint.
    """
    found = _FAMILY.match(options.model.rpartition("/")[2]) if options.is_openai else None
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _FIRST_WITH_BREAKPOINTS


def marked(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a message with a breakpoint at the last one."""
    return [*parts[:-1], {**parts[-1], BREAKPOINT: {"mode": "explicit"}}]
