"""Whether something can go on for ever: fair cycles in a graph of states.

Everybody who has to act does so some time if they can all the while (weak fairness): each worker, the database server
with the sessions that it ends, and time. A run that never ends stays in one strongly connected component from some
moment on. It is fair if, for each of them, the component has a step of theirs, or a state in which they can do nothing.
"""

from collections.abc import Iterator, Sequence

Edge = tuple[int, str]
"""Where something leads, and who has to do it some time; "" for nobody."""

ACTORS = ("worker 1", "worker 2", "server", "time")


def find_unfair_end(edges: Sequence[Sequence[Edge]], inside: Sequence[bool]) -> int | None:
    """Return the first state of those inside in which a fair run may stay inside for ever; None if none does.

    Args:
        edges: For each state, what may happen there.
        inside: For each state, whether the run has to stay among them.
    """
    ends = [min(part) for part in _components(edges, inside) if _is_fair(edges, set(part))]
    return min(ends, default=None)


def _is_fair(edges: Sequence[Sequence[Edge]], part: set[int]) -> bool:
    """Return whether a fair run may stay in a component for ever; in a single state it may stand still."""
    acting = set[str]()
    able = dict.fromkeys(ACTORS, True)
    for state in part:
        actors = {actor for _, actor in edges[state]}
        acting.update(actor for target, actor in edges[state] if target in part)
        for actor in ACTORS:
            able[actor] = able[actor] and actor in actors
    return all(actor in acting or not able[actor] for actor in ACTORS)


def _components(edges: Sequence[Sequence[Edge]], inside: Sequence[bool]) -> list[list[int]]:
    """Return the strongly connected components of the graph of the states inside."""
    search = _Tarjan(edges, inside)
    for root in range(len(edges)):
        if inside[root] and root not in search.order:
            search.visit(root)
    return search.parts


class _Tarjan:
    """Tarjan's algorithm, with a list in the place of recursion."""

    def __init__(self, edges: Sequence[Sequence[Edge]], inside: Sequence[bool]) -> None:
        self.order: dict[int, int] = {}
        self.parts: list[list[int]] = []
        self._edges = edges
        self._inside = inside
        self._low: dict[int, int] = {}
        self._stack: list[int] = []
        self._on_stack: set[int] = set()

    def visit(self, root: int) -> None:
        """Find the components that can be reached from a state and are not known yet."""
        work = [self._enter(root)]
        while work:
            state, rest = work[-1]
            new = next((target for target in rest if self._is_new(state, target)), None)
            if new is not None:
                work.append(self._enter(new))
                continue
            work.pop()
            if work:
                self._low[work[-1][0]] = min(self._low[work[-1][0]], self._low[state])
            if self._low[state] == self.order[state]:
                self._close(state)

    def _enter(self, state: int) -> tuple[int, Iterator[int]]:
        self.order[state] = self._low[state] = len(self.order)
        self._stack.append(state)
        self._on_stack.add(state)
        return state, (target for target, _ in self._edges[state] if self._inside[target])

    def _is_new(self, state: int, target: int) -> bool:
        """Return whether a target was not entered yet; take note of one that is above on the way here."""
        if target in self._on_stack:
            self._low[state] = min(self._low[state], self.order[target])
        return target not in self.order

    def _close(self, state: int) -> None:
        part = list[int]()
        while not part or part[-1] != state:
            part.append(self._stack.pop())
            self._on_stack.discard(part[-1])
        self.parts.append(part)
