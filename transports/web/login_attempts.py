"""Wrong tokens: counted for each address and over all of them, and answered more and more slowly."""

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import HTTPConnection

from transports.web.backend import Refusal

logger = logging.getLogger(__name__)

_FREE_GUESSES: Final = 5  # of an address; a person mistypes
_FIRST_WAIT_SECONDS: Final = 30.0
_LONGEST_WAIT_SECONDS: Final = 3600.0
_FORGET_SECONDS: Final = 24 * 3600.0
_MOST_IN_A_MINUTE: Final = 60  # over all addresses, also for a guesser who has many
_MINUTE: Final = 60.0
_MOST_ADDRESSES: Final = 10_000
_LONGEST_ADDRESS: Final = 100


@dataclass(slots=True)
class _Record:
    wrong: int = 0
    waits_until: float = 0.0
    seen_at: float = 0.0
    was_right: bool = False


class Guesses:
    """Makes addresses that sent wrong tokens wait before the next one is checked."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._records: OrderedDict[str, _Record] = OrderedDict()
        self._recent: deque[float] = deque()

    def wait_seconds(self, request: HTTPConnection) -> int:
        """Return how long the sender of a request has to wait before a token is checked, 0 for not at all."""
        now, record = self._now(), self._records.get(address_of(request))
        while self._recent and self._recent[0] <= now - _MINUTE:
            self._recent.popleft()
        waits_until = record.waits_until if record is not None else 0.0
        if len(self._recent) >= _MOST_IN_A_MINUTE and (record is None or not record.was_right):
            waits_until = max(waits_until, self._recent[0] + _MINUTE)
        return max(0, -int(-(waits_until - now) // 1))

    def check(self, request: HTTPConnection, what: str) -> None:
        """Refuse a request whose sender has to wait before another token, or whatever it is, is checked."""
        if seconds := self.wait_seconds(request):
            text = f"There were too many wrong {what}. Try again in {seconds} seconds."
            raise Refusal(429, text, {"Retry-After": str(seconds)})

    def note_wrong(self, request: HTTPConnection) -> None:
        """Take note of a wrong token, and log whose it was."""
        now, address = self._now(), address_of(request)
        record = self._record(address, now)
        record.wrong += 1
        beyond = record.wrong - _FREE_GUESSES
        if beyond >= 0:
            record.waits_until = now + min(_FIRST_WAIT_SECONDS * 2 ** min(beyond, 20), _LONGEST_WAIT_SECONDS)
        self._recent.append(now)
        logger.warning("web.login_refused", extra={"address": address, "wrong_tokens": record.wrong})

    def note_right(self, request: HTTPConnection) -> None:
        """Take note of a right token."""
        record = self._record(address_of(request), self._now())
        record.wrong, record.waits_until, record.was_right = 0, 0.0, True

    def _record(self, address: str, now: float) -> _Record:
        record = self._records.pop(address, None)
        if record is None or record.seen_at < now - _FORGET_SECONDS:
            record = _Record()
        record.seen_at = now
        self._records[address] = record
        if len(self._records) > _MOST_ADDRESSES:
            self._records.popitem(last=False)
        return record


def address_of(request: HTTPConnection) -> str:
    """Return where a request comes from: the other end, and whom the nearest proxy names.

    A client that reaches this service without a proxy can name any address: hence the count over all addresses.
    """
    direct = request.client.host if request.client is not None else "unknown"
    named = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    shown = "".join(each for each in named if each.isascii() and (each.isalnum() or each in ".:[]"))
    return f"{direct} for {shown[:_LONGEST_ADDRESS]}" if shown else direct
