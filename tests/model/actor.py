"""What all that a worker does has in common: it changes its memory, and commits in the session that it gets."""

from collections.abc import Iterator, Sequence
from typing import Any

from .commits import WRITTEN_BACK, Situation, Step, checked_commit, name_of, put_memory, put_turn
from .moves import Change
from .states import HOLDS, WORKERS, Chat, Fault, Memory, Turn, World


class Actor:
    """A worker that may do something in a conversation."""

    def __init__(self, now: Situation, worker: int) -> None:
        self.chat, self.world, self.rules, self.plan, self.is_strict = now
        self.worker = worker
        self.memory = self.chat.memory[worker]
        self.is_online = self.world.session[worker] == "ok"
        self.me = f"worker {worker + 1}"
        shares = self.world.has(Fault.POOLER) and not self.rules.fences_sessions
        self.sessions = tuple(range(WORKERS)) if shares else (worker,)

    def _step(self, says: str, chat: Chat, world: World | None = None) -> Step:
        return Step(says, f"worker {self.worker + 1}", chat, world or self.world)

    def _put(self, memory: Memory | None, index: int = -1, turn: Turn | None = None, **values: Any) -> Chat:
        chat = put_memory(self.chat, self.worker, memory)
        chat = chat if turn is None else put_turn(chat, index, turn)
        return chat._replace(**values) if values else chat

    def _commit(
        self, says: str, new: Chat, changes: Sequence[tuple[str, str, str]], world: World | None = None
    ) -> Iterator[Step]:
        """Yield a commit by the holder, in each session that its transaction may get."""
        for session in self.sessions:
            checked = checked_commit(new, self.chat, session, [Change(*each) for each in changes], self.is_strict)
            elsewhere = "" if session == self.worker else f", in the session of worker {session + 1}"
            yield self._step(f"{self.me} {says}{elsewhere}", checked, world)

    def _later(self) -> str:
        return "far" if self.world.is_ahead else "later"

    def _state_of(self, state: str) -> str:
        """Return a state by which a deed is judged; a twin is caught by the harm that it does, and not by the table."""
        return state if self.is_strict else "gone"

    def _is_stale(self, memory: Memory) -> bool:
        turn = self.chat.turns[memory.turn]
        return turn.row != memory.row or turn.status == "gone"

    def _write_back(self, memory: Memory) -> Iterator[Step]:
        """Store something of a turn that is not there any more."""
        if self.rules.checks_that_turns_exist:
            yield self._step(f"{self.me} finds that {name_of(memory.turn)} was forgotten meanwhile", self._put(HOLDS))
        else:
            new = self._put(HOLDS, alarm=WRITTEN_BACK)
            yield self._step(f"{self.me} stores what it did for {name_of(memory.turn)}", new)
