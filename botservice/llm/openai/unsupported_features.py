"""What a model's server does not accept, learned from its refusals, so that each is found out once."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

_MOST_SEALS: Final = 10_000


class Wire(StrEnum):
    """An API that models are asked by."""

    RESPONSES = "responses"
    CHAT = "chat"


class ServerLimits:
    """What one server and model accept, as far as their refusals have shown.

    Attributes:
        wire: The API that it is asked by.
        is_wire_fixed: Whether a setting names the API; otherwise a refusal may change it.
        refused: What it does not accept, as the table of errors calls it.
        refused_seals: Encrypted reasoning that it does not accept.
    """

    def __init__(self, wire: Wire, *, is_wire_fixed: bool) -> None:
        self.wire = wire
        self.is_wire_fixed = is_wire_fixed
        self.refused: frozenset[str] = frozenset()
        self.refused_seals: frozenset[str] = frozenset()

    def note_seals(self, seals: Iterable[str]) -> None:
        """Add encrypted reasoning that the server has refused."""
        known = self.refused_seals if len(self.refused_seals) < _MOST_SEALS else frozenset()
        self.refused_seals = known.union(seals)
