"""Counting tokens: exactly where the encoding can be had, on the safe side where not."""

import functools
import logging
import re
import threading
from typing import Protocol

import tiktoken

logger = logging.getLogger(__name__)

DEFAULT_ENCODING = "o200k_base"
LOAD_SECONDS = 10.0  # tiktoken downloads an encoding at first use, without a time limit of its own
_PIECE_CHARACTERS = 20_000
_WORDS_AND_SIGNS = re.compile(r"\w+|[^\w\s]")


class TokenCounter(Protocol):
    """What counts the tokens of a text.

    Attributes:
        name: Names the encoding; a count made under another name is made again.
    """

    @property
    def name(self) -> str:
        """The encoding's name."""

    def count(self, text: str) -> int:
        """Return how many tokens text takes."""


class EncodingCounter:
    """Counts with a tiktoken encoding."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding

    @property
    def name(self) -> str:
        """The encoding's name."""
        return self._encoding.name

    def count(self, text: str) -> int:
        """Return how many tokens text takes; a very long text is counted in pieces, cut at blanks."""
        if len(text) <= _PIECE_CHARACTERS:
            return len(self._encoding.encode_ordinary(text))
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in _pieces(text))


class EstimateCounter:
    """Counts too many rather than too few, without any encoding."""

    name = "estimate"

    def count(self, text: str) -> int:
        """Return the larger of words + signs and a third of the UTF-8 bytes, and a tenth more."""
        if not text:
            return 0
        words = sum(1 for _ in _WORDS_AND_SIGNS.finditer(text))
        size = len(text.encode("utf-8", "replace"))
        return -(-max(words * 3, size) * 11 // 30)


class _Encodings:
    """The encodings of this process, each loaded once and off the caller's time where that takes long."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counters: dict[str, TokenCounter] = {}
        self._loading: dict[str, threading.Thread] = {}

    def is_ready(self, encoding_name: str) -> bool:
        return encoding_name in self._counters

    def get(self, encoding_name: str) -> TokenCounter:
        counter = self._counters.get(encoding_name)
        if counter is not None:
            return counter
        with self._guard:
            thread = self._loading.get(encoding_name)
            if thread is None:
                thread = threading.Thread(target=self._load, args=(encoding_name,), daemon=True)
                self._loading[encoding_name] = thread
                thread.start()
        thread.join(LOAD_SECONDS)
        with self._guard:
            # Whoever waited in vain does not wait again; the encoding takes over if it arrives after all.
            return self._counters.setdefault(encoding_name, EstimateCounter())

    def _load(self, encoding_name: str) -> None:
        try:
            counter: TokenCounter = EncodingCounter(tiktoken.get_encoding(encoding_name))
        except Exception as error:  # noqa: BLE001 - whatever a download can raise: the estimate stands in
            logger.warning("tokens.estimated", extra={"encoding": encoding_name, "reason": type(error).__name__})
            counter = EstimateCounter()
        self._counters[encoding_name] = counter


_encodings = _Encodings()


def counter_for(model: str | None = None) -> TokenCounter:
    """Return the counter for a model; an unknown or unnamed model is counted with o200k_base.

    The first call for an encoding may block for up to LOAD_SECONDS: call it off the event loop.
    """
    return _encodings.get(_encoding_name(model))


def is_counter_ready(model: str | None = None) -> bool:
    """Return whether counter_for(model) answers at once."""
    return _encodings.is_ready(_encoding_name(model))


@functools.cache
def _encoding_name(model: str | None) -> str:
    try:
        return tiktoken.encoding_name_for_model(model) if model else DEFAULT_ENCODING
    except KeyError:
        return DEFAULT_ENCODING


def _pieces(text: str) -> list[str]:
    pieces = []
    start = 0
    while start < len(text):
        end = start + _PIECE_CHARACTERS
        blank = text.rfind(" ", start + 1, end) if end < len(text) else -1
        end = blank if blank > start else end
        pieces.append(text[start:end])
        start = end
    return pieces
