"""How much is enumerated: which conversations, with which faults."""

from collections.abc import Mapping
from itertools import combinations
from typing import Final

from .states import Fault, Kind, Plan

PAYING: Final = Plan((Kind.PAY, Kind.SAY))
TALKING: Final = Plan((Kind.SAY, Kind.SAY))
BOTH: Final = (PAYING, TALKING)
"""Two conversations with two messages each, one call of a tool that must not run twice and needs approval."""
SHUFFLED: Final = Plan((Kind.PAY, Kind.SAY), in_order=False)
"""One conversation whose messages arrive in any order."""
CONTROLLED: Final = Plan((Kind.PAY, Kind.SAY), stops=True, edits=True, forgets=True)
"""One conversation with all that people may do about what they said: stop, edit, and be forgotten."""

ALONE: Final = tuple({fault: 1} for fault in Fault)
PAIRS: Final = tuple(dict.fromkeys(pair, 1) for pair in combinations(Fault, 2))
TWICE: Final = tuple({fault: 2} for fault in Fault)


def name_of_faults(faults: Mapping[Fault, int]) -> str:
    """Return what goes wrong, in a word or two."""
    return " + ".join(f"{fault}{' twice' if count > 1 else ''}" for fault, count in faults.items()) or "nothing"
