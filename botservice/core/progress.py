"""How long work says how far it is."""

from typing import Protocol


class Progress(Protocol):
    """Is told how far some work is: from any thread, as often as the work likes."""

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """Note that so much of an estimated total is done; note says more in a few words."""


def unwatched(done: float, total: float, note: str = "") -> None:
    """Tell nobody."""
