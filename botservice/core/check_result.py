"""The result of a check of `botservice doctor`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        text: What was found, and what to do if that is wrong.
        is_wrong: Whether something has to be done.
    """

    name: str
    text: str
    is_wrong: bool = False
    is_off: bool = False

    @property
    def mark(self) -> str:
        """One sign for the beginning of a line."""
        return "✗" if self.is_wrong else "·" if self.is_off else "✓"
