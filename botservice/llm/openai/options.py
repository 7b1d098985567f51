"""What a call of an OpenAI-compatible server is made with, and what its server has been found not to take."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from botservice.llm.chat import AnswerSchema
from botservice.settings import OPENAI_API_URL

_OPENAI_HOST = urlsplit(OPENAI_API_URL).hostname or ""
_REMEMBERED_SECONDS: Final = 86_400.0  # a server may be replaced by another version, or a model by another one
_MOST_REFUSED: Final = 1_000  # most of them are digests of pictures
_MOST_SEALS: Final = 10_000


@lru_cache(maxsize=64)
def is_openai(base_url: str) -> bool:
    """Return whether a server is OpenAI's own, in whatever region."""
    host = urlsplit(base_url).hostname or ""
    return host == _OPENAI_HOST or host.endswith(f".{_OPENAI_HOST}")


def address_of(base_url: str, path: str) -> str:
    """Return where a path of a server is; a query of its base URL, such as api-version=, comes after the path."""
    base, mark, query = base_url.partition("?")
    return f"{base.rstrip('/')}{path}{mark}{query}"


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The same for every call of one model.

    Attributes:
        model: The model's name, as the server knows it.
        base_url: The server.
        is_responses_set: A setting says that it has OpenAI's Responses: it is OpenAI, or a gateway before it.
        reasoning_effort: How hard the model thinks; None for what it does by itself.
        reasoning_summary: How its thoughts are summed up: auto, concise or detailed; None for not at all.
        max_answer_tokens: How long an answer may become; None for what the server allows.
        temperature: None for what the server takes by itself.
        schema: The form that this answer has to have; None for any.
        refused: Fields of requests that the server has refused.
    """

    model: str
    base_url: str = OPENAI_API_URL
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    max_answer_tokens: int | None = None
    temperature: float | None = None
    schema: AnswerSchema | None = None
    refused: frozenset[str] = frozenset()
    is_responses_set: bool = False

    @property
    def is_openai(self) -> bool:
        """Whether OpenAI's models are behind the server, as far as is known."""
        return self.is_responses_set or is_openai(self.base_url)


class Wire(StrEnum):
    """An API that models are asked by."""

    RESPONSES = "responses"
    CHAT = "chat"


class ServerLimits:
    """What one server and model accept, as far as their refusals of the last day have shown.

    Attributes:
        wire: The API that it is asked by.
        is_wire_fixed: Whether a setting names the API; otherwise a refusal may change it.
        refused_seals: Encrypted reasoning that it does not accept.
    """

    def __init__(self, wire: Wire, *, is_wire_fixed: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.wire = wire
        self.is_wire_fixed = is_wire_fixed
        self.refused_seals: frozenset[str] = frozenset()
        self._clock = clock
        self._expires: dict[str, float] = {}

    @property
    def refused(self) -> frozenset[str]:
        """What it does not accept, as the table of errors calls it; pictures by their digests."""
        if not self._expires:
            return frozenset()
        now = self._clock()
        return frozenset(name for name, expires in self._expires.items() if now < expires)

    def refuse(self, names: Iterable[str]) -> None:
        """Take note of what the server has refused."""
        until, known = self._clock() + _REMEMBERED_SECONDS, self.refused
        self._expires = {name: expires for name, expires in self._expires.items() if name in known}
        self._expires.update(dict.fromkeys(names, until))
        while len(self._expires) > _MOST_REFUSED:
            del self._expires[next(iter(self._expires))]

    def note_seals(self, seals: Iterable[str]) -> None:
        """Add encrypted reasoning that the server has refused."""
        known = self.refused_seals if len(self.refused_seals) < _MOST_SEALS else frozenset()
        self.refused_seals = known.union(seals)
