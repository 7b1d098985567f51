"""How much of a prompt is filled with what was found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from botservice.history.finding.questions import SearchHit
from botservice.messages import Message

_SHARES = 3  # one message takes no more than this part of the room: the others are there to be chosen from


@dataclass(frozen=True, slots=True)
class Room:
    """Room for found messages.

    Attributes:
        tokens: How many there are.
        size: Returns how many of them a message takes as it is shown.
        shorten: Returns a message that takes at most so many; the same one where it does anyway.
    """

    tokens: int
    size: Callable[[Message], int]
    shorten: Callable[[Message, int], Message]

    def fill(self, hits: Iterable[SearchHit]) -> list[SearchHit]:
        """Return those of hits that there is room for, the best first; neighbours, until half of the room is taken."""
        left, longest, taken = self.tokens, self.tokens // _SHARES, []
        for hit in hits:
            short, size = hit, self.size(hit.message)
            if size > longest:
                short = replace(hit, message=self.shorten(hit.message, longest))
                size = self.size(short.message)
            if size > left:
                continue
            left -= size
            beside = 0 if short.neighbour is None else self.size(short.neighbour)
            if beside > left - self.tokens // 2:
                short, beside = replace(short, neighbour=None), 0
            left -= beside
            taken.append(short)
        return taken
