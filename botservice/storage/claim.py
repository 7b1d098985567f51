"""The right to work on one context."""

from collections.abc import Callable

from botservice.errors import ClaimLost


class Claim:
    """The right to work on one context, as long as nobody took it over.

    Attributes:
        is_idle: Whether its holder does nothing at the moment: a run between two steps may be taken over.
    """

    def __init__(self, context_id: int, holds: Callable[["Claim"], bool]) -> None:
        self.context_id = context_id
        self.is_idle = False
        self._holds = holds

    @property
    def is_held(self) -> bool:
        """Whether the right still exists."""
        return self._holds(self)

    def check(self) -> None:
        """Return if the claim is held.

        Raises:
            ClaimLost: it is not.
        """
        if not self.is_held:
            raise ClaimLost(f"context {self.context_id} is worked on by somebody else now")
