"""Which passages of one long text have most to do with a question."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from botservice.history.ranking.documents import Document
from botservice.history.ranking.index import SearchIndex
from botservice.messages import Role

_AT: Final = datetime(2000, 1, 1, tzinfo=UTC)
# Where a text may be cut, the best first: after a line, after a sentence, between words.
_ENDS: Final = re.compile("\n+|(?<=[.!?:;])\\s+|(?<=[\u3002\uff01\uff1f\uff1b\u061f\u0964])")
_MOST_RANKED: Final = 64


def split_passages(text: str, longest: int) -> list[tuple[int, int]]:
    """Split a text into passages of whole sentences or lines.

    Args:
        longest: Characters of a passage; a longer sentence is cut between words, or anywhere if it has no spaces.

    Returns:
        Where each passage begins and ends, in order; there is only whitespace between them.
    """
    passages: list[tuple[int, int]] = []
    for start, end in _sentences(text, longest):
        if passages and end - passages[-1][0] <= longest:
            passages[-1] = passages[-1][0], end
        else:
            passages.append((start, end))
    return passages


def _sentences(text: str, longest: int) -> Iterator[tuple[int, int]]:
    start = 0
    for match in [*_ENDS.finditer(text), None]:
        end = len(text) if match is None else match.start()
        while end - start > longest:
            space = text.rfind(" ", start + longest // 2, start + longest)
            middle = start + longest if space < 0 else space
            yield start, middle
            start = middle if space < 0 else middle + 1
        if text[start:end].strip():
            yield start, end
        start = end if match is None else match.end()


def rank_passages(text: str, asked: str, longest: int) -> list[tuple[int, int]]:
    """Rank the passages of a text by what they have to do with a question, best first.

    After those that have something to do with it come those beside the best one, the nearest first.

    Args:
        longest: Characters of a passage.
    """
    passages = split_passages(text, longest)
    index = SearchIndex()
    index.add(
        [
            Document(number, Role.ASSISTANT, text[start:end], None, None, _AT, number)
            for number, (start, end) in enumerate(passages)
        ]
    )
    found = [number for number, _ in index.search(asked, k=_MOST_RANKED)]
    best = found[0] if found else 0
    beside = sorted(set(range(len(passages))).difference(found), key=lambda number: abs(number - best))
    return [passages[number] for number in (*found, *beside)]
