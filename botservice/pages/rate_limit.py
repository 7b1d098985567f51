"""The rate limit of fetching pages, for each person."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

_SECONDS: Final = 60.0
_MOST_PEOPLE: Final = 10_000


class PageRates:
    """Counts the pages of each person, in this process, for a minute back."""

    def __init__(self, most_a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most_a_minute = most_a_minute
        self._clock = clock
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()

    def count(self, person: str) -> bool:
        """Count one more page of a person; return whether it is within the limit."""
        now = self._clock()
        asked = self._asked.setdefault(person, deque())
        self._asked.move_to_end(person)
        while asked and asked[0] <= now - _SECONDS:
            asked.popleft()
        if len(asked) >= self.most_a_minute:
            return False
        asked.append(now)
        while len(self._asked) > _MOST_PEOPLE:
            self._asked.popitem(last=False)
        return True
