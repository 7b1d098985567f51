"""Lists that may be longer than one statement takes."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

# SQLite takes 32,766 parameters in a statement, Postgres 65,535.
CHUNK = 1_000


def chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """Yield values in lists of at most CHUNK."""
    rest = iter(values)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
