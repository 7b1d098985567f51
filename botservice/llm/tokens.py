"""Counting tokens: exactly where the encoding can be had, on the safe side where not."""

import asyncio
import functools
import logging
import re
import threading
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

import tiktoken

logger = logging.getLogger(__name__)

DEFAULT_ENCODING = "o200k_base"
LOAD_SECONDS = 10.0  # tiktoken downloads an encoding at first use, without a time limit; then the log says so
_PIECE_CHARACTERS = 20_000
# Nothing else has these threads: counts never wait behind slow work.
_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="botservice-counting")

T = TypeVar("T")


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
    """Counts without any encoding: rather too many than too few of what people write, code, JSON and addresses.

    Measured against o200k_base: chats in seven languages 1.3 to 1.5 times the tokens, code 1.7, emoji 1.6, base64 0.9;
    rare Chinese or Korean characters in a row, which nobody writes, 0.5.
    """

    name = "estimate"

    def count(self, text: str) -> int:
        """Return about how many tokens text takes."""
        size = 0  # in hundredths of a token, a tenth of them to be on the safe side
        for word, wide, sign in _PARTS.findall(text):
            if word:
                size += 110 * -(-len(word) // (5 if len(word) <= _LONGEST_WORD else 2))
            elif wide:
                size += sum(_WIDE[bisect_right(_CODES, ord(character))][1] for character in wide)
            else:
                size += 110 + 10 * len(sign)
        return max(-(-size // 100), bool(text))


# What encodings split a text into: words, up to three digits, signs, blanks in a row; and everything beyond ASCII.
_PARTS = re.compile(r"([A-Z]?[a-z]+|[A-Z]+)|([^\x00-\x7f]+)|([0-9]{1,3}|  +|\n+|[^\w ]|_| (?=[0-9]))")
_LONGEST_WORD = 14  # what is longer is a key or a hash, and takes a token for every other letter
# Hundredths of a token per character, by the first code that it is no longer for. Alphabets of two bytes take less
# than one; so do the large Asian scripts, which encodings know well; other scripts, symbols and emoji take more.
_WIDE = (
    (0x700, 90), (0x900, 220), (0xE80, 120), (0x10A0, 220), (0x1200, 120), (0x3040, 220), (0xA000, 120),
    (0xAC00, 220), (0xD7B0, 120), (0xFF00, 220), (0xFFF0, 120), (0x10000, 220), (0x110000, 340),
)  # fmt: skip
_CODES = [code for code, _ in _WIDE]


class Encodings:
    """The encodings of this process, each loaded once and off everybody's time: nobody waits for one."""

    def __init__(
        self,
        load: Callable[[str], tiktoken.Encoding] = tiktoken.get_encoding,
        *,
        patience_seconds: float = LOAD_SECONDS,
    ) -> None:
        """Make a set of encodings, none of them loaded.

        Args:
            patience_seconds: After how long the log says that counts are estimated meanwhile.
        """
        self._load_encoding = load
        self._patience_seconds = patience_seconds
        self._guard = threading.Lock()
        self._counters: dict[str, TokenCounter] = {}
        self._loading: dict[str, threading.Thread] = {}
        self._said: set[str] = set()

    def get(self, encoding_name: str) -> TokenCounter:
        """Return the counter for an encoding at once: the estimate, until the encoding is loaded."""
        counter = self._counters.get(encoding_name)
        if counter is not None:
            return counter
        with self._guard:
            if encoding_name not in self._loading:
                thread = threading.Thread(target=self._load, args=(encoding_name,), daemon=True)
                self._loading[encoding_name] = thread
                thread.start()
        return _ESTIMATE

    def wait(self, encoding_name: str, patience_seconds: float) -> TokenCounter:
        """Return the counter for an encoding as soon as it is loaded, or after so long. Blocks."""
        self.get(encoding_name)
        self._loading[encoding_name].join(patience_seconds)
        return self.get(encoding_name)

    def _load(self, encoding_name: str) -> None:
        late = threading.Timer(self._patience_seconds, self._say, (encoding_name, "TimeoutError"))
        late.daemon = True
        late.start()
        try:
            counter: TokenCounter = EncodingCounter(self._load_encoding(encoding_name))
        except Exception as error:  # noqa: BLE001 - whatever a download can raise: the estimate stands in for good
            counter = _ESTIMATE
            self._say(encoding_name, type(error).__name__)
        finally:
            late.cancel()
        self._counters[encoding_name] = counter

    def _say(self, encoding_name: str, reason: str) -> None:
        """Say once that the estimate stands in for an encoding."""
        with self._guard:
            is_new = encoding_name not in self._said
            self._said.add(encoding_name)
        if is_new:
            logger.debug("tokens.estimated", extra={"encoding": encoding_name, "reason": reason})


_ESTIMATE = EstimateCounter()
_encodings = Encodings()


def counter_for(model: str | None = None) -> TokenCounter:
    """Return the counter for a model, at once; an unknown or unnamed model is counted with o200k_base.

    Until the encoding is loaded, and where it cannot be had, that is the estimate.
    """
    return _encodings.get(_encoding_name(model))


def find_encoding(model: str | None = None, *, patience_seconds: float = LOAD_SECONDS) -> str:
    """Say how the tokens of a model are counted, once its encoding is loaded or patience_seconds are over. Blocks."""
    name = _encoding_name(model)
    if _encodings.wait(name, patience_seconds) is _ESTIMATE:
        return (
            f"estimated, on the safe side: the encoding {name} cannot be downloaded; "
            "TIKTOKEN_CACHE_DIR may name a folder that holds it"
        )
    return f"counted by {name}"


async def count_aside(function: Callable[..., T], *arguments: object) -> T:
    """Return what a function that counts returns for these arguments; it runs off the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, function, *arguments)


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
