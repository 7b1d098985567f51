"""What one model server has been found not to accept, and by which API it is asked."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from botservice.config.settings import OPENAI_API_URL

_OPENAI_HOST = urlsplit(OPENAI_API_URL).hostname or ""
REMEMBERED_SECONDS: Final = 86_400.0  # a server may be replaced by another version, or a model by another one
_MOST_REFUSED: Final = 1_000  # most of them are digests of pictures
_MOST_SEALS: Final = 10_000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def is_digest(name: str) -> bool:
    """Return whether a name of what is refused stands for one picture."""
    return _DIGEST.fullmatch(name) is not None


@lru_cache(maxsize=64)
def is_openai(base_url: str) -> bool:
    """Return whether a server is OpenAI's own, in whatever region."""
    host = urlsplit(base_url).hostname or ""
    return host == _OPENAI_HOST or host.endswith(f".{_OPENAI_HOST}")


class Wire(StrEnum):
    """An API that models are asked by."""

    RESPONSES = "responses"
    CHAT = "chat"

    @property
    def path(self) -> str:
        """Its path behind the base URL, which also names it among what a server refuses."""
        return "/responses" if self is Wire.RESPONSES else "/chat/completions"

    @property
    def other(self) -> "Wire":
        """The one that is left where this one is refused."""
        return Wire.CHAT if self is Wire.RESPONSES else Wire.RESPONSES


class ServerLimits:
    """What one server and model accept, as far as their refusals of the last day have shown.

    Attributes:
        server: The server's address, without what may be secret in it.
        model: The model's name on the server.
        is_wire_fixed: Whether a setting names the API; otherwise a refusal may change it.
        refused_seals: Encrypted reasoning that it does not accept.
        taken_types: Media types of pictures and files that it has answered about: of these it refuses single ones.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        is_wire_fixed: bool,
        base_url: str = OPENAI_API_URL,
        model: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server, self.model = _server_name(base_url), model
        self._wire = wire
        self.is_wire_fixed = is_wire_fixed
        self.refused_seals: frozenset[str] = frozenset()
        self.taken_types: frozenset[str] = frozenset()
        self._clock = clock
        self._expires: dict[str, float] = {}
        self._news: dict[str, str | None] = {}

    @property
    def wire(self) -> Wire:
        """The API that it is asked by: not the one that it refused last, unless a setting names that one."""
        until = {} if self.is_wire_fixed else {wire: self._expires.get(wire.path, 0.0) for wire in Wire}
        refused = max(until, key=lambda wire: until[wire], default=self._wire)
        return refused.other if until.get(refused, 0.0) > self._clock() else self._wire

    @property
    def refused(self) -> frozenset[str]:
        """What it does not accept, as the table of errors calls it; pictures by their digests."""
        if not self._expires:
            return frozenset()
        now = self._clock()
        return frozenset(name for name, expires in self._expires.items() if now < expires)

    @property
    def has_news(self) -> bool:
        """Whether it has refused what nobody has taken note of yet."""
        return bool(self._news)

    def refuse(self, wordings: Mapping[str, str | None]) -> None:
        """Take note of what the server has refused.

        Args:
            wordings: How it said so, by the name of what it refuses.
        """
        until, known = self._clock() + REMEMBERED_SECONDS, self.refused
        self._expires = {name: expires for name, expires in self._expires.items() if name in known}
        self._expires.update(dict.fromkeys(wordings, until))
        self._news.update((name, wording) for name, wording in wordings.items() if not is_digest(name))
        while len(self._expires) > _MOST_REFUSED:
            del self._expires[next(iter(self._expires))]

    def take_news(self) -> dict[str, str | None]:
        """Return what was refused since this was last asked, with the wordings, to be put down for others."""
        news, self._news = self._news, {}
        return news

    def give_back_news(self, news: Mapping[str, str | None]) -> None:
        """Take back what could not be put down."""
        self._news = {**news, **self._news}

    def share(self, known: Mapping[str, float]) -> None:
        """Go by what all processes know: what is not in there was forgotten, but for news and for single pictures.

        Args:
            known: For how many more seconds each refusal counts, by its name.
        """
        now, kept = self._clock(), self._news
        own = {name: until for name, until in self._expires.items() if name in kept or is_digest(name)}
        self._expires = {name: now + seconds for name, seconds in known.items()} | own

    def note_seals(self, seals: Iterable[str]) -> None:
        """Add encrypted reasoning that the server has refused."""
        known = self.refused_seals if len(self.refused_seals) < _MOST_SEALS else frozenset()
        self.refused_seals = known.union(seals)


def _server_name(base_url: str) -> str:
    """Return the address of a server without names, passwords and queries."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
