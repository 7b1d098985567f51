"""Enumerate more than the tests do: `python -m tests.model alone`, `pairs`, `wide`, `controls` or `twice`.

With `twins`, the stories of the broken twins are told instead.

Names of faults behind it choose those that have them: `python -m tests.model pairs hang`.
"""

import resource
import sys
import time
from collections.abc import Mapping, Sequence

from .bounds import ALONE, BOTH, CONTROLLED, PAIRS, PAYING, TALKING, TWICE, name_of_faults
from .product import count_both
from .search import enumerate_states
from .states import Fault, Plan
from .stories import tell
from .twins import TWINS


def main(what: str, chosen: Sequence[str]) -> None:
    """Enumerate what is asked for, and say how much there was."""
    both = {"alone": (BOTH, (*ALONE, {})), "pairs": (BOTH, PAIRS), "wide": ((CONTROLLED, TALKING), (*ALONE, {}))}
    one = {"controls": (CONTROLLED, (*ALONE, {})), "twice": (PAYING, TWICE)}
    if what == "twins":
        print(*map(tell, TWINS), sep="\n")
    elif what in both:
        plans, every = both[what]
        for faults in _among(every, chosen):
            _both(plans, faults)
    elif what in one:
        plan, cases = one[what]
        for faults in _among(cases, chosen):
            _one(plan, faults)
    else:
        sys.exit(__doc__)


def _among(every: Sequence[Mapping[Fault, int]], chosen: Sequence[str]) -> list[dict[Fault, int]]:
    return [dict(faults) for faults in every if not chosen or set(chosen) & set(faults)]


def _both(plans: tuple[Plan, Plan], faults: dict[Fault, int]) -> None:
    began = time.monotonic()
    count = count_both(plans, faults)
    _say(faults, count.states, count.transitions, began)


def _one(plan: Plan, faults: dict[Fault, int]) -> None:
    began = time.monotonic()
    found = enumerate_states(plan, faults)
    if found.alarm is not None:
        sys.exit("\n".join([found.alarm[0], *found.alarm[1]]))
    _say(faults, len(found.states), found.transitions, began)


def _say(faults: dict[Fault, int], states: int, transitions: int, began: float) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    seconds = time.monotonic() - began
    name = name_of_faults(faults)
    print(
        f"{name:<20} {states:>12,} states {transitions:>13,} transitions {seconds:>7.1f} s {memory:>6} MB", flush=True
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:])
