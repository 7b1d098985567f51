"""Enumerating what can happen in one conversation, breadth first.

Two states that differ only in which worker is which are one state: workers run the same program, so what one may do
from the first of them the other may do from the second.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .commits import Situation, is_unanswered, name_of
from .liveness import Edge, find_unfair_end
from .states import ALL_RULES, Chat, Fault, Plan, Rules, World, peaceful
from .steps import steps_in
from .world import after, events_in, swapped, swapped_world


class State(NamedTuple):
    """Where one conversation and all processes stand."""

    world: World
    chat: Chat


@dataclass
class Found:
    """What an enumeration has found.

    Attributes:
        states: Every state, with its number.
        edges: For each state by its number, what may happen there.
        alarm: The first promise that is broken, with the way there; None if none is.
        cause: For each state, how it was reached first: the state before it, and what happened.
    """

    states: dict[State, int] = field(default_factory=dict)
    edges: list[list[Edge]] = field(default_factory=list)
    cause: list[tuple[int, str]] = field(default_factory=list)
    alarm: tuple[str, list[str]] | None = None

    @property
    def transitions(self) -> int:
        """How many transitions there are."""
        return sum(map(len, self.edges))

    def story(self, number: int) -> list[str]:
        """Return what happens until a state is reached, in the order of time."""
        told = list[str]()
        while number > 0:
            number, says = self.cause[number]
            told.append(says)
        return told[::-1]


def moves_from(state: State, rules: Rules, plan: Plan, *, is_strict: bool) -> Iterator[tuple[str, str, State]]:
    """Yield what may happen next: its words, who has to do it some time, and the state after it."""
    world, chat = state
    for says, actor, new, then in steps_in(Situation(chat, world, rules, plan, is_strict)):
        yield says, actor, State(then, new)
    for says, actor, effect, then in events_in(world, rules):
        yield says, actor, State(then, after(chat, effect, rules, world))


def canonical(state: State) -> State:
    """Return the one of a state and its mirror image that stands for both."""
    mirrored = State(swapped_world(state.world), swapped(state.chat))
    return min(state, mirrored, key=_rank)


def _rank(state: State) -> tuple[object, ...]:
    """Return what two mirror images differ in, where they differ at all."""
    world, chat = state
    memory = tuple(each or () for each in chat.memory)
    return world.process, world.session, chat.lock, memory, [each.status for each in chat.turns]


def enumerate_states(
    plan: Plan,
    faults: dict[Fault, int],
    rules: Rules = ALL_RULES,
    *,
    is_strict: bool = True,
    is_symmetric: bool = True,
    harm: str = "",
) -> Found:
    """Enumerate every state that can be reached; stop at the first alarm.

    Args:
        faults: How often each kind may happen.
        is_strict: Whether each commit has to be one that the table of moves knows, too.
        harm: Which alarm is looked for, by a part of its words; others are passed over.
        is_symmetric: Whether mirror images are counted once; a story is told without, or its workers change names.
    """
    found = Found()
    start = State(peaceful(faults), plan.start())
    found.states[start] = 0
    found.cause.append((0, ""))
    queue = [start]
    for state in queue:
        number = found.states[state]
        edges = list[Edge]()
        for says, actor, then in moves_from(state, rules, plan, is_strict=is_strict):
            alarm = then.chat.alarm
            if alarm and harm in alarm:
                found.alarm = alarm, [*found.story(number), says]
                return found
            calm = then._replace(chat=then.chat._replace(alarm="")) if alarm else then
            chosen = canonical(calm) if is_symmetric else calm
            at = found.states.get(chosen)
            if at is None:
                at = found.states[chosen] = len(queue)
                queue.append(chosen)
                found.cause.append((number, says))
            edges.append((at, actor))
        found.edges.append(edges)
    found.alarm = _find_unanswered(found, plan)
    return found


def _find_unanswered(found: Found, plan: Plan) -> tuple[str, list[str]] | None:
    """Return a message that is not answered for ever although a worker lives, with the way there; None for none."""
    states = list(found.states)
    living = [any(each == "up" for each in state.world.process) for state in states]
    waits = {
        **{name_of(index): _waiting_for(states, index) for index in range(len(plan.kinds))},
        "the stop": [state.chat.stop == "stored" for state in states],
        "the edit": [state.chat.edit == "stored" for state in states],
    }
    for what, is_waiting in waits.items():
        inside = [waiting and lives for waiting, lives in zip(is_waiting, living, strict=True)]
        end = find_unfair_end(found.edges, inside)
        if end is not None:
            return f"{what} is left for ever", found.story(end)
    return None


def _waiting_for(states: list[State], index: int) -> list[bool]:
    return [is_unanswered(state.chat.turns[index]) for state in states]
