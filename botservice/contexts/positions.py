"""Where rows stand between each other: a new one gets the middle of its neighbours' places."""

from collections.abc import Sequence


def place_between(known: Sequence[float | None], floor: float, stride: float = 1.0) -> list[float] | None:
    """Return a place for each item, rising from above floor; None where there is no room between two of them.

    Args:
        known: The places that items have already; they keep them where that is in order.
        stride: How far behind the one before it an item stands that is the last.
    """
    places: list[float] = []
    previous = floor
    for place, upper in zip(known, _following(known, floor), strict=True):
        if place is None or place <= previous:
            place = previous + stride if upper is None else (previous + upper) / 2  # noqa: PLW2901 - the item's place
        if upper is not None and not previous < place < upper:
            return None
        places.append(place)
        previous = place
    return places


def _following(known: Sequence[float | None], floor: float) -> list[float | None]:
    """Return, for each item, the place that is known next after it."""
    following: list[float | None] = []
    upper: float | None = None
    for place in reversed(known):
        following.append(upper)
        upper = place if place is not None and place > floor else upper
    return following[::-1]
