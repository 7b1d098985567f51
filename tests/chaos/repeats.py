"""Whether something was done twice for a reason."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from chaos.incidents import Harm, Incident

NOTICED_SECONDS = 2.0
"""How long after an incident a process may not know yet what it has lost: until it next speaks with the database."""


@dataclass(frozen=True, slots=True)
class Doing:
    """One time that a process did something.

    Attributes:
        has_failed: Whether it was told that it failed, so that it has to try again.
    """

    what: str
    process: str
    at: float
    has_failed: bool


class Reasons:
    """What there is that explains why something was done twice."""

    def __init__(self, incidents: Iterable[Incident]) -> None:
        self._ended_at: dict[str, float] = {}
        spans: dict[str | None, list[tuple[float, float]]] = {}
        for incident in incidents:
            span = (incident.started, incident.ended + NOTICED_SECONDS)
            if incident.harm is Harm.ENDS_PROCESS:
                self._ended_at[incident.process] = incident.started
            elif incident.harm is Harm.CUTS_PROCESS_OFF:
                spans.setdefault(incident.process, []).append(span)
            elif incident.harm is Harm.CUTS_ALL_OFF:
                spans.setdefault(None, []).append(span)
        self._spans = {process: _Spans(found) for process, found in spans.items()}

    def unexplained(self, doings: Iterable[Doing]) -> list[tuple[Doing, Doing]]:
        """Return what was done again without a reason, each with the time before; doings are in the order of time."""
        last: dict[str, Doing] = {}
        found = []
        for doing in doings:
            before = last.get(doing.what)
            if before is not None and not self._explain(before, doing):
                found.append((before, doing))
            last[doing.what] = doing
        return found

    def _explain(self, first: Doing, second: Doing) -> bool:
        if first.has_failed:
            return True
        # What a process sent just before it ended may arrive after what another one sent in its place.
        if first.process != second.process and (self._is_over(first, second) or self._is_over(second, first)):
            return True
        known = (self._spans.get(each) for each in (None, first.process, second.process))
        return any(spans.touch(first.at, second.at) for spans in known if spans is not None)

    def _is_over(self, one: Doing, other: Doing) -> bool:
        """Return whether the process that did one thing had ended when the other was done."""
        return self._ended_at.get(one.process, other.at) < other.at


class _Spans:
    """Spans of time, to be asked many times."""

    def __init__(self, spans: list[tuple[float, float]]) -> None:
        spans = sorted(spans)
        self._starts = [start for start, _ in spans]
        self._latest_ends = list(accumulate((end for _, end in spans), max))

    def touch(self, first: float, last: float) -> bool:
        """Return whether one of them touches the time between two moments."""
        begun = bisect_right(self._starts, last)
        return begun > 0 and self._latest_ends[begun - 1] >= first
