"""How a worker claims a conversation, finds out what comes next there, and begins it."""

from collections.abc import Callable, Iterator

from .answering import Answering
from .commits import Step, name_of, name_of_delivery, put_turn
from .moves import explain_turns
from .states import FREE, HOLDS, Delivery, Kind, Memory, Turn
from .work import next_work


class Worker(Answering):
    """What one worker may do next in a conversation."""

    def steps(self) -> Iterator[Step]:
        """Yield them."""
        if self.memory is None:
            yield from self._claim()
            for index, turn in enumerate(self.chat.turns):
                if turn.status == f"heard {self.worker}" and self.is_online:
                    stored = put_turn(self.chat, index, turn._replace(status="queued"))
                    yield self._step(f"{self.me} stores {name_of(index)}", stored)
            return
        act: dict[str, Callable[[Memory], Iterator[Step]]] = {
            "holds": self._look,
            "reads": self._begin,
            "asks": self._answer,
            "shows": self._store_what_is_shown,
            "answered": self._owe_what_is_answered,
            "calls": self._run_tool,
            "ran": self._store_result,
            "owes": self._mark,
            "sends": self._confirm,
            "go": self._send,
            "sent": self._note,
            "refused": self._put_off,
            "late": self._note_late,
        }
        if self.is_online or self.memory.at in ("calls", "go") or self._sends_blindly(self.memory):
            yield from act[self.memory.at](self.memory)

    def _claim(self) -> Iterator[Step]:
        if not self.is_online or next_work(self.chat, self.rules) is None:
            return
        for session in self.sessions:
            elsewhere = "" if session == self.worker else f", in the session of worker {session + 1}"
            if self.chat.lock == FREE:
                yield self._step(f"{self.me} claims the conversation{elsewhere}", self._put(HOLDS, lock=session + 1))
            elif self.chat.lock == session + 1:
                says = f"{self.me} claims the conversation{elsewhere}, which has the lock already"
                yield self._step(says, self._put(HOLDS))
            elif len(self.sessions) > 1:
                yield self._step(f"{self.me} tries to claim the conversation{elsewhere}, and cannot", self.chat)

    def _release(self) -> Iterator[Step]:
        for session in self.sessions:
            if self.chat.lock == session + 1:
                yield self._step(f"{self.me} gives the conversation back", self._put(None, lock=FREE))
            elif self.chat.lock == FREE or not self.rules.claims_by_lock or not self.rules.fences_writes:
                yield self._step(f"{self.me} gives back what it has not", self._put(None))
            else:
                says = (
                    f"{self.me} gives the conversation back in the session of worker {session + 1}, which has no lock"
                )
                yield self._step(says, self._put(None))

    def _look(self, _: Memory) -> Iterator[Step]:
        """Look for the next work."""
        work, chat = next_work(self.chat, self.rules), self.chat
        if work is None:
            yield from self._release()
            return
        turn = chat.turns[work.turn]
        if work.what == "stops":
            yield from self._apply_stop()
        elif work.what == "edit":
            edited = chat.turns[0]
            is_kept = edited.status != "gone"
            new = self._put(HOLDS, 0, edited._replace(is_changed=is_kept), edit="handled")
            yield from self._commit("applies the edit to the history", new, [("control", "stored", "handled")])
        elif work.what == "owes":
            delivery: Delivery = getattr(turn, work.part)
            reads = Memory("owes", work.turn, turn.row, work.part, delivery.tries)
            yield self._step(f"{self.me} reads that {name_of_delivery(work.turn, work.part)} is owed", self._put(reads))
        else:
            knows = "stop" if work.what == "stop" else ""
            if work.turn == 0 and chat.edit == "stored" and turn.status == "queued":
                knows = "edit"
            new = self._put(Memory("reads", work.turn, turn.row, knows=knows))
            earlier = chat.turns[: work.turn]
            if turn.status == "queued" and any(each.status in ("queued", "running") for each in earlier):
                new = new._replace(alarm="a message is taken before an earlier one of its conversation")
            yield self._step(f"{self.me} reads the turn of {name_of(work.turn)}", new)

    def _apply_stop(self) -> Iterator[Step]:
        """Apply a stop where no turn runs: what waits is withdrawn, and ends when it is attended to."""
        changes, turns = [("control", "stored", "handled")], []
        for index, turn in enumerate(self.chat.turns):
            if turn.status == "waiting" and index < self.chat.stop_behind and turn.approval != "withdrawn":
                changes.append(("approval", turn.approval, "withdrawn"))
                turns.append(turn._replace(approval="withdrawn"))
            else:
                turns.append(turn)
        new = self._put(HOLDS, stop="handled", turns=tuple(turns))
        yield from self._commit("takes note of the stop", new, changes)

    def _begin(self, memory: Memory) -> Iterator[Step]:
        """Begin, resume or attend to the turn that was read, if it still is what was read."""
        turn, index = self.chat.turns[memory.turn], memory.turn
        named = name_of(index)
        if turn.row != memory.row or turn.status not in ("queued", "running", "waiting"):
            yield from self._give_up_what_was_read(memory)
        elif turn.status == "queued":
            yield from self._begin_queued(memory, turn)
        elif turn.status == "waiting":
            yield from self._go_on(turn, index)
        elif turn.call == "forgotten":
            given_up = turn._replace(status="set_aside", call="gone", answer=Delivery("pending"))
            changes = [("turn", "running", "set_aside"), ("delivery", "nothing", "pending")]
            yield from self._commit(
                f"gives {named} up: what it did was forgotten", self._put(HOLDS, index, given_up), changes
            )
        elif memory.knows == "stop":
            yield from self._stop(turn, index)
        elif turn.call == "ended":
            asks, closed = Memory("asks", index, turn.row), turn._replace(call="gone")
            yield from self._commit(
                f"closes the step of {named}", self._put(asks, index, closed), [("call", "ended", "gone")]
            )
        elif turn.call != "started":
            asks = Memory("asks", index, turn.row)
            yield from self._commit(
                f"begins {named} again", self._put(asks, index, turn), [("turn", "running", "running")]
            )
        elif self.plan.kinds[index] is Kind.AGAIN or not self.rules.leaves_cut_off_calls:
            calls = Memory("calls", index, turn.row)
            yield from self._commit(
                f"goes on with the call of {named}", self._put(calls), [("turn", "running", "running")]
            )
        else:
            asks, closed = Memory("asks", index, turn.row), turn._replace(call="gone")
            says = f"stores that the outcome of the call of {named} is unknown"
            yield from self._commit(says, self._put(asks, index, closed), [("call", "started", "gone")])

    def _give_up_what_was_read(self, memory: Memory) -> Iterator[Step]:
        yield self._step(f"{self.me} sees that {name_of(memory.turn)} is not any more what it read", self._put(HOLDS))

    def _begin_queued(self, memory: Memory, turn: Turn) -> Iterator[Step]:
        index, chat = memory.turn, self.chat
        if index == 0 and chat.is_forgotten:
            gone = Turn("gone", turn.row + 1)
            edit = "handled" if chat.edit == "stored" else chat.edit
            new = self._put(HOLDS, index, gone, edit=edit)
            yield from self._commit("reads whose message 1 is, and erases it", new, [("turn", "queued", "gone")])
            return
        if memory.knows == "stop":  # it had not begun when the stop came
            yield self._step(f"{self.me} looks again", self._put(HOLDS))
            return
        changes = [("turn", "queued", "running")]
        edit, begun = chat.edit, turn._replace(status="running")
        if memory.knows == "edit":
            edit, begun = "handled", begun._replace(is_changed=self.rules.applies_edits_at_the_beginning)
            changes.append(("control", "stored", "handled"))
        new = self._put(Memory("asks", index, turn.row), index, begun, edit=edit)
        if (reason := explain_turns([each.status for each in new.turns])) is not None:
            new = new._replace(alarm=reason)
        yield from self._commit(f"stores the question of {name_of(index)}, and begins its turn", new, changes)

    def _go_on(self, turn: Turn, index: int) -> Iterator[Step]:
        """Go on with a turn that has waited, where everything is decided."""
        approval, changes, named = turn.approval, [], name_of(index)
        if approval == "waiting" and turn.is_over:
            expired = self._put(self.memory, index, turn._replace(approval="expired"))
            says = f"stores that nobody has decided about {named} in time"
            yield from self._commit(says, expired, [("approval", "waiting", "expired")])
        elif approval == "waiting":
            yield from self._give_up_what_was_read(Memory("reads", index))
        elif approval == "withdrawn":
            stopped = turn._replace(status="done", approval="closed", call="gone")
            changes += [("approval", "withdrawn", "closed"), ("turn", "waiting", "stopped")]
            yield from self._commit(f"ends {named}, which was stopped", self._put(HOLDS, index, stopped), changes)
        elif approval == "allowed" and not self.rules.resumes_in_one_commit:
            says = f"begins the call of {named} while its turn still waits"
            yield from self._commit(says, self._put(Memory("calls", index, turn.row)), [])
        elif approval == "allowed":
            called = turn._replace(status="running", approval="closed", call="started")
            changes += [
                ("approval", "allowed", "closed"),
                ("turn", "waiting", "running"),
                ("call", "nothing", "started"),
            ]
            new = self._put(Memory("calls", index, turn.row), index, called)
            yield from self._commit(f"stores that the call of {named} has started", new, changes)
        else:
            told = turn._replace(status="running", approval="closed", call="ended")
            changes += [("approval", approval, "closed"), ("turn", "waiting", "running"), ("call", "nothing", "ended")]
            new = self._put(Memory("ran", index, turn.row), index, told)
            yield from self._commit(f"stores that the call of {named} is not made", new, changes)
