"""How a worker goes on with a turn that has begun: the model is asked, a tool runs, an answer is stored."""

from collections.abc import Iterator

from .commits import FORGOTTEN, WRITTEN_BACK, Step, name_of
from .moves import explain_deed
from .sending import Sending
from .states import HOLDS, Chat, Delivery, Fault, Kind, Memory, Turn


class Answering(Sending):
    """Answers one turn after the other."""

    def _answer(self, memory: Memory) -> Iterator[Step]:
        """Store what the model says: an answer, or a call of a tool."""
        if self._is_stale(memory):
            yield from self._write_back(memory)
            return
        if memory.knows == FORGOTTEN:
            yield self._step(f"{self.me} stores what the model said", self._put(HOLDS, alarm=WRITTEN_BACK))
            return
        index, chat = memory.turn, self.chat
        turn, kind, named = chat.turns[index], self.plan.kinds[index], name_of(index)
        if chat.stop == "stored" and (index < chat.stop_behind or not self.rules.stops_what_came_before):
            yield from self._stop(turn, index)
        if self.world.has(Fault.MODEL):
            yield from self._fail(turn, index)
        if kind is not Kind.SAY and turn.call == "nothing":
            yield from self._act(turn, index, kind)
        elif not self.rules.stores_answers_before_sending:
            new = self._shown(Memory("shows", index, turn.row), index, turn, "answer")
            yield self._step(f"{self.me} shows the answer to {named}", new)
        elif not self.rules.answers_in_one_commit:
            done = turn._replace(status="done", answers=turn.answers + 1)
            new = self._put(Memory("answered", index, turn.row), index, done)
            yield from self._commit(
                f"stores the answer to {named}, and not yet that it is to be sent",
                new,
                [("turn", "running", "answered")],
            )
        else:
            done = turn._replace(status="done", answers=min(2, turn.answers + 1), answer=Delivery("attempting", 1))
            new = self._put(Memory("sends", index, turn.row, "answer", 1), index, done)
            new = new._replace(alarm="a message is answered twice") if turn.answers else new
            changes = [("turn", "running", "answered"), ("delivery", "nothing", "attempting")]
            yield from self._commit(f"stores the answer to {named}, as on its way", new, changes)

    def _store_what_is_shown(self, memory: Memory) -> Iterator[Step]:
        turn = self.chat.turns[memory.turn]
        done = turn._replace(status="done", answers=1, answer=Delivery("delivered", is_shown=True))
        yield self._step(f"{self.me} stores the answer to {name_of(memory.turn)}", self._put(HOLDS, memory.turn, done))

    def _owe_what_is_answered(self, memory: Memory) -> Iterator[Step]:
        turn = self.chat.turns[memory.turn]
        owed = self._put(HOLDS, memory.turn, turn._replace(answer=Delivery("pending")))
        yield self._step(f"{self.me} stores that the answer to {name_of(memory.turn)} is to be sent", owed)

    def _fail(self, turn: Turn, index: int) -> Iterator[Step]:
        world = self.world.without(Fault.MODEL)
        aside = turn._replace(status="set_aside", answer=Delivery("pending"))
        changes = [("turn", "running", "set_aside"), ("delivery", "nothing", "pending")]
        says = f"gives {name_of(index)} up, because the model fails, with an apology"
        yield from self._commit(says, self._put(HOLDS, index, aside), changes, world)
        later = self._put(HOLDS, wait=self._later())
        yield from self._commit(
            f"puts {name_of(index)} off, because something failed", later, [("turn", "running", "running")], world
        )

    def _act(self, turn: Turn, index: int, kind: Kind) -> Iterator[Step]:
        """Open a step with a call: it waits for approval, or starts."""
        named = name_of(index)
        if kind is Kind.PAY:
            asks = turn._replace(status="waiting", approval="waiting", asked=Delivery("pending"))
            changes = [
                ("turn", "running", "waiting"),
                ("approval", "nothing", "waiting"),
                ("delivery", "nothing", "pending"),
            ]
            yield from self._commit(
                f"stores that a call of {named} needs approval", self._put(HOLDS, index, asks), changes
            )
        elif not self.rules.stores_calls_before_running:
            ran = self._ran(Memory("ran", index, turn.row), index, turn)
            yield self._step(f"{self.me} runs the tool for {named}", ran)
        else:
            started = turn._replace(call="started")
            changes = [("turn", "running", "running"), ("call", "nothing", "started")]
            new = self._put(Memory("calls", index, turn.row), index, started)
            yield from self._commit(f"stores that a call of {named} has started", new, changes)

    def _ran(self, memory: Memory, index: int, turn: Turn) -> Chat:
        may_repeat = self.plan.kinds[index] is Kind.AGAIN
        new = self._put(memory, index, turn._replace(ran=min(turn.ran + 1, 1 if may_repeat else 2)))
        before = ["run once"] if turn.ran and not may_repeat else []
        reason = explain_deed("run" if may_repeat else "run once", self._state_of(turn.call), before)
        new = new if reason is None else new._replace(alarm=reason)
        if self.plan.kinds[index] is Kind.PAY and turn.word != "allowed" and turn.status != "gone":
            new = new._replace(alarm="a tool runs that nobody allowed")
        return new

    def _run_tool(self, memory: Memory) -> Iterator[Step]:
        """Run the tool. Where its turn is forgotten meanwhile, it runs all the same: nothing is stored of that."""
        turn, after = self.chat.turns[memory.turn], memory._replace(at="ran")
        says = f"{self.me} runs the tool for {name_of(memory.turn)}"
        if turn.row != memory.row:
            yield self._step(says, self._put(after))
        else:
            yield self._step(says, self._ran(after, memory.turn, turn))

    def _store_result(self, memory: Memory) -> Iterator[Step]:
        """Store what the call gave, and close its step."""
        if self._is_stale(memory):
            yield from self._write_back(memory)
            return
        if memory.knows == FORGOTTEN:
            yield self._step(f"{self.me} stores what the tool gave", self._put(HOLDS, alarm=WRITTEN_BACK))
            return
        turn, index = self.chat.turns[memory.turn], memory.turn
        if self.chat.stop == "stored" and index < self.chat.stop_behind:
            yield from self._stop(turn, index)
        closed = turn._replace(
            call="gone", status="running", approval="closed" if turn.approval != "nothing" else "nothing"
        )
        new = self._put(memory._replace(at="asks"), index, closed)
        yield from self._commit(
            f"stores the result of the call of {name_of(index)}", new, [("call", turn.call, "gone")]
        )

    def _stop(self, turn: Turn, index: int) -> Iterator[Step]:
        """End the turn as stopped; the stop itself is handled at the next look."""
        changes = [("turn", "running", "stopped")]
        if turn.call in ("started", "ended"):
            changes.append(("call", turn.call, "gone"))
        new = self._put(HOLDS, index, turn._replace(status="done", call="gone"))
        if index >= self.chat.stop_behind:
            new = new._replace(alarm="a stop ends a turn that was asked after it")
        yield from self._commit(f"ends {name_of(index)}, which was stopped", new, changes)
