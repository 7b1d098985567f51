"""Lists that may be longer than one statement takes."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

# SQLite takes 32,766 parameters in a statement, Postgres 65,535.
CHUNK = 1_000


def chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Yield values in lists of at most so many."""
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk
