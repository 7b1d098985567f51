"""What the model server writes down: every request, and how it ended."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from standins.serving import Entry, Exchange, Served


class Ending(StrEnum):
    """How a request ended."""

    COMPLETED = "completed"
    REFUSED = "refused"  # the request was wrong
    FAILED = "failed"  # a failure that the test ordered
    DROPPED = "dropped"  # the connection was cut, as ordered
    ABORTED = "aborted"  # the client left: the call was cancelled, or its process died


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested(Entry):
    """A request arrived. Its `seq` is what `Ended.request_seq` points to."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Entry):
    """A request ended; `chunks` counts the deltas that were written."""

    request_seq: int
    path: str
    ending: Ending
    status: int
    chunks: int
    detail: str = ""


class Counting(Served):
    """A server that knows how many requests are under way."""

    active = 0
    peak = 0


class Running:
    """A request on its way through the journal: it begins once and ends once."""

    def __init__(self, api: Counting, exchange: Exchange):
        self._api = api
        self._exchange = exchange
        self._seq = 0
        self._ended = False
        self.chunks = 0
        self.is_streamed = False

    def begin(self, body: dict[str, Any]) -> None:
        if self._seq:
            return
        with self._api.condition:
            self._api.active += 1
            self._api.peak = max(self._api.peak, self._api.active)
            path, headers = self._exchange.path, self._exchange.headers
            self._seq = self._api.journal.record(Requested, path=path, body=body, headers=headers).seq

    def end(self, ending: Ending, status: int, detail: str = "") -> None:
        if self._ended:
            return
        self.begin({})
        self._ended = True
        with self._api.condition:
            self._api.active -= 1
            self._api.journal.record(
                Ended,
                request_seq=self._seq,
                path=self._exchange.path,
                ending=ending,
                status=status,
                chunks=self.chunks,
                detail=detail,
            )
