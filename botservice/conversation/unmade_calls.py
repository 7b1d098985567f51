"""Calls of tools that a model wanted and that were not made, because nobody allowed them."""

from collections.abc import Mapping
from typing import Final

DENIED: Final = (
    "Denied: the person did not allow this call, and it was not made. Do not try it again unless they ask for it."
)
EXPIRED: Final = "Not made: nobody allowed this call in time. Say so, and make it again only if the person asks for it."
WITHDRAWN: Final = "Stopped by the person before it was allowed: it was not made."

_STATES: Final[Mapping[str, str]] = {DENIED: "denied", EXPIRED: "expired", WITHDRAWN: "withdrawn"}


def state_of_unmade(told: str) -> str | None:
    """Return why a call was not made, by what its model was told; None where it was made.

    The text is what a step keeps of it. A field of its own could not be read by the release before.
    """
    return _STATES.get(told)
