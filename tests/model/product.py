"""Enumerating two conversations at once, which share their workers, sessions, clock and faults.

A step in one conversation changes nothing in the other one, apart from the number of faults that are left; what happens
to a process happens in both. So each conversation's part of a state of both is a state of that conversation alone, and
its steps are looked up there: `Side` lists them, and `count_both` walks through the pairs with arrays of numbers. It
finds out if that is not so: a pair whose part is not listed ends the enumeration with an error.

Nothing is left out: every interleaving is walked through. Two states that differ only in which worker is which, or in
which of two conversations with one plan is which, are counted once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .commits import Situation
from .search import State, enumerate_states
from .states import ALL_RULES, Chat, Fault, Plan, Rules, World
from .steps import steps_in
from .world import after, events_in, swapped, swapped_world

Numbers = npt.NDArray[np.int64]
_MOST_PENDING = 4_000_000
_NOWHERE = -1


@dataclass(frozen=True)
class Count:
    """How much was exhausted."""

    states: int
    transitions: int
    depth: int


class Side:
    """All states of one conversation with the world, and what leads from each to which."""

    def __init__(self, plan: Plan, faults: dict[Fault, int], worlds: dict[World, int], rules: Rules) -> None:
        found = enumerate_states(plan, faults, rules, is_symmetric=False)
        assert found.alarm is None, found.alarm
        self.plan = plan
        self.chats: dict[Chat, int] = {}
        for world, chat in found.states:
            worlds.setdefault(world, len(worlds))
            self.chats.setdefault(chat, len(self.chats))
        self._found, self._worlds, self._rules = found, worlds, rules

    def close(self) -> None:
        """Number everything, once the worlds of both sides are known."""
        states, worlds = self._found.states, self._worlds
        self.world = np.array([worlds[world] for world, _ in states], np.int64)
        self.chat = np.array([self.chats[chat] for _, chat in states], np.int64)
        self.pair = np.full((len(worlds), len(self.chats)), _NOWHERE, np.int64)
        self.pair[self.world, self.chat] = np.arange(len(states))
        mirrored = [self.chats[swapped(chat)] for chat in self.chats]
        self.mirror = np.array(mirrored, np.int64)
        starts, targets = [0], list[int]()
        for state in states:
            now = Situation(state.chat, state.world, self._rules, self.plan, is_strict=True)
            targets += [states[State(step.world, step.chat)] for step in steps_in(now)]
            starts.append(len(targets))
        self.starts, self.targets = np.array(starts, np.int64), np.array(targets, np.int64)

    def effect(self, effect: tuple[str, int], world: World) -> Numbers:
        """Return what becomes of each chat by something that happens to all."""
        found = (self.chats.get(after(chat, effect, self._rules, world), _NOWHERE) for chat in self.chats)
        return np.fromiter(found, np.int64, len(self.chats))


class Both:
    """Two conversations."""

    def __init__(self, plans: tuple[Plan, Plan], faults: dict[Fault, int], rules: Rules = ALL_RULES) -> None:
        worlds: dict[World, int] = {}
        self.left, self.right = (Side(plan, faults, worlds, rules) for plan in plans)
        self.left.close()
        self.right.close()
        self._is_same = plans[0] == plans[1]
        self._width = len(self.right.chats)
        self._mirror = np.array([worlds[swapped_world(each)] for each in worlds], np.int64)
        effects: dict[tuple[str, int], tuple[Numbers, Numbers]] = {}
        self._events: list[list[tuple[int, Numbers, Numbers]]] = []
        for world in worlds:
            happening = []
            for event in events_in(world, rules):
                if event.effect not in effects:
                    effects[event.effect] = (
                        self.left.effect(event.effect, world),
                        self.right.effect(event.effect, world),
                    )
                happening.append((worlds[event.world], *effects[event.effect]))
            self._events.append(happening)

    def count(self) -> Count:
        """Enumerate all states."""
        start = np.array([self._code(np.array([0]), np.array([0]))[0]], np.int64)
        seen, frontier = [start], start
        states, transitions, depth = 1, 0, 0
        while frontier.size:
            new, walked = self._after(frontier)
            transitions += walked
            for known in seen:
                places = np.minimum(np.searchsorted(known, new), known.size - 1)
                new = new[known[places] != new]
            frontier = new
            states += int(new.size)
            depth += 1
            _keep(seen, new)
        return Count(states, transitions, depth - 1)

    def _after(self, frontier: Numbers) -> tuple[Numbers, int]:
        """Return the states that are reached from some in one step, each once, and how many steps that takes."""
        found, pending, walked = list[Numbers](), 0, 0
        for part in np.array_split(frontier, 1 + frontier.size // 200_000):
            for codes in self._steps(part):
                walked += codes.size
                found.append(np.unique(self._canonical(codes)))
                pending += found[-1].size
                if pending > _MOST_PENDING:
                    found = [np.unique(np.concatenate(found))]
                    pending = found[0].size
        return (np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)), walked

    def _steps(self, codes: Numbers) -> Sequence[Numbers]:
        left, chat = np.divmod(codes, self._width)
        world = self.left.world[left]
        right = _known(self.right.pair[world, chat])
        steps = list[Numbers]()
        origins, targets = _follow(self.left, left)
        steps.append(self._code(targets, chat[origins]))
        origins, targets = _follow(self.right, right)
        moved = _known(self.left.pair[self.right.world[targets], self.left.chat[left[origins]]])
        steps.append(self._code(moved, self.right.chat[targets]))
        for number in np.unique(world):
            here = np.flatnonzero(world == number)
            for then, of_left, of_right in self._events[int(number)]:
                moved = _known(self.left.pair[then, of_left[self.left.chat[left[here]]]])
                steps.append(self._code(moved, of_right[chat[here]]))
        return steps

    def _code(self, left: Numbers, chat: Numbers) -> Numbers:
        return left * self._width + chat

    def _canonical(self, codes: Numbers) -> Numbers:
        """Return for each state the number that stands for it and its mirror images."""
        left, chat = np.divmod(codes, self._width)
        world, mine = self.left.world[left], self.left.chat[left]
        then = self._mirror[world]
        pair = _known(self.left.pair[then, self.left.mirror[mine]])
        best = np.minimum(codes, self._code(pair, self.right.mirror[chat]))
        if self._is_same:
            best = np.minimum(best, self._code(_known(self.left.pair[world, chat]), mine))
            both = _known(self.left.pair[then, self.left.mirror[chat]])
            best = np.minimum(best, self._code(both, self.left.mirror[mine]))
        return best


def _follow(side: Side, pairs: Numbers) -> tuple[Numbers, Numbers]:
    """Return where the steps of one conversation lead: for each the place of its state among pairs, and its target."""
    counts = side.starts[pairs + 1] - side.starts[pairs]
    origins = np.repeat(np.arange(pairs.size), counts)
    ends = np.cumsum(counts)
    within = np.arange(origins.size) - np.repeat(ends - counts, counts)
    return origins, side.targets[side.starts[pairs][origins] + within]


def _known(pairs: Numbers) -> Numbers:
    if pairs.size and int(pairs.min()) == _NOWHERE:
        raise AssertionError("two conversations reach what one of them alone does not: they are not independent")
    return pairs


def _keep(seen: list[Numbers], new: Numbers) -> None:
    """Keep new states in few sorted arrays: the small ones are put together."""
    if not new.size:
        return
    seen.append(new)
    while len(seen) > 1 and seen[-2].size < 2 * seen[-1].size:
        last = seen.pop()
        seen[-1] = np.sort(np.concatenate([seen[-1], last]), kind="stable")


def count_both(plans: tuple[Plan, Plan], faults: dict[Fault, int]) -> Count:
    """Enumerate two conversations with some faults, and return how many states there are."""
    return Both(plans, faults).count()
