"""Lists of numbers in few characters of JSON."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, groupby, repeat
from operator import sub

Short = list[int | list[int]]
"""The first number, and how much larger each next one is than the one before; [n, d] stands for n times d."""

_FEWEST = 3  # fewer are longer as a pair


def shorten(numbers: Sequence[int]) -> Short:
    """Return numbers so that `lengthen` gives them back."""
    short: Short = []
    for step, same in groupby(map(sub, numbers, (0, *numbers))):
        count = len(list(same))
        short += [[count, step]] if count >= _FEWEST else [step] * count
    return short


def lengthen(short: Iterable[int | list[int]]) -> list[int]:
    """Return the numbers that `shorten` was given."""
    return list(accumulate(chain.from_iterable(repeat(*reversed(e)) if isinstance(e, list) else (e,) for e in short)))
