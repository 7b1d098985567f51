"""What is looked for in a chat, and what is found."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from botservice.core.messages import Author, Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WEAK: Final = 0.12  # of questions to another chat, more than half are below it; of those to the right one, one in ten


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A search result.

    Attributes:
        score: Larger is better; comparable only within one search.
        neighbour: The question that it answers, or its answer, if it says little by itself.
        position: Its position in the chat.
        coverage: How much of the query the best result of the search covers, from 0 to 1.
        by_meaning: Whether the search compared meanings in addition to words.
        earlier: Older results of the same author on the same subject.
    """

    message: Message
    score: float
    neighbour: Message | None = None
    position: int = field(default=0, repr=False, compare=False)
    coverage: float = field(default=1.0, compare=False)
    by_meaning: bool = field(default=False, repr=False, compare=False)
    earlier: Message | None = field(default=None, repr=False)

    @property
    def is_newer(self) -> bool:
        """Whether there are older results of the same author on the same subject."""
        return self.earlier is not None

    @property
    def is_weak(self) -> bool:
        """Whether no result is relevant to the query."""
        return self.coverage < _WEAK

    @property
    def messages(self) -> list[Message]:
        """The message, and its neighbour if it has one."""
        return [self.message] if self.neighbour is None else [self.message, self.neighbour]

    def holds_others(self, asker: Author | None) -> bool:
        """Check whether it may contain words of people other than the assistant and the person who asks."""
        return any(each.holds_others(asker) for each in self.messages)


def merge_hits(found: Iterable[Sequence[SearchHit]]) -> list[SearchHit]:
    """Merge what several questions found, each message once: the best of each first, then the second best."""
    merged: dict[int | None, SearchHit] = {}
    for group in zip_longest(*found):
        for hit in group:
            if hit is not None:
                merged.setdefault(hit.message.id, hit)
    return list(merged.values())


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time in which something was said.

    Attributes:
        since: Its beginning; None for the beginning of the chat.
        until: Its end, which is not in it; None for now.
    """

    since: datetime | None = None
    until: datetime | None = None

    @property
    def seconds(self) -> tuple[float, float]:
        """The beginning and the end in seconds since the epoch."""
        return (
            float("-inf") if self.since is None else self.since.timestamp(),
            float("inf") if self.until is None else self.until.timestamp(),
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for.

    Attributes:
        asker: The person whom "I" and "my" in text mean.
        asked_at: What "yesterday" counts from.
        exclude: Ids of messages that are not to be found, and say nothing of those around them: the question's own.
        shown: Ids of messages that are not to be found because they are seen anyway.
        period: When what is found was said; None for at any time.
        is_each_once: Whether of messages of one author that say the same only the newest is found.
        vector: Its meaning, where an embedder gave one.
    """

    text: str
    k: int
    asked_at: datetime
    asker: Author | None = None
    exclude: Collection[int] = ()
    vector: "NDArray[Any] | None" = field(default=None, compare=False)
    shown: Collection[int] = ()
    period: TimeRange | None = None
    is_each_once: bool = False

    @property
    def said_within(self) -> tuple[float, float] | None:
        """The time that is asked for, in seconds since the epoch."""
        return None if self.period is None else self.period.seconds
