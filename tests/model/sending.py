"""How a worker sends what is owed: marked as on its way, confirmed, handed over, and noted."""

from collections.abc import Iterator

from .actor import Actor
from .commits import EXCUSED, Step, checked_commit, is_owed, name_of_delivery, put_delivery, put_turn
from .moves import Change, explain_deed
from .states import HOLDS, Chat, Delivery, Fault, Memory, Turn


class Sending(Actor):
    """Sends one delivery after the other."""

    def _mark(self, memory: Memory) -> Iterator[Step]:
        """Mark a delivery as on its way, if it is still owed."""
        turn, index = self.chat.turns[memory.turn], memory.turn
        delivery: Delivery = getattr(turn, memory.part)
        named = name_of_delivery(index, memory.part)
        is_there = turn.row == memory.row and delivery.status != "nothing"
        if not is_there or (self.rules.sends_only_what_is_owed and not is_owed(delivery)):
            yield self._step(f"{self.me} sees that {named} is not owed any more", self._put(HOLDS))
            return
        marked = delivery._replace(status="attempting", tries=memory.tries + 1)
        new = self._put(
            memory._replace(at="sends", tries=memory.tries + 1), index, put_delivery(turn, memory.part, marked)
        )
        yield from self._commit(
            f"stores that {named} is on its way", new, [("delivery", delivery.status, "attempting")]
        )

    def _sends_blindly(self, memory: Memory) -> bool:
        return memory.at == "sends" and not self.rules.asks_before_sending

    def _confirm(self, memory: Memory) -> Iterator[Step]:
        """Ask whether the conversation is still this worker's."""
        if self._sends_blindly(memory):
            yield from self._send(memory)
        else:
            yield self._step(f"{self.me} is sure to have the conversation", self._put(memory._replace(at="go")))

    def _shown(self, memory: Memory, index: int, turn: Turn, part: str) -> Chat:
        """Return what is after people have seen a message; once more is excused only by what went wrong before."""
        delivery: Delivery = getattr(turn, part)
        is_own = self.memory is not None and self.memory.knows == EXCUSED
        is_excused = is_own if not delivery.is_shown else delivery.is_excused and is_own
        new = self._put(
            memory, index, put_delivery(turn, part, delivery._replace(is_shown=True, is_excused=is_excused))
        )
        if (reason := explain_deed("sent", self._state_of(delivery.status), [])) is not None and not is_own:
            new = new._replace(alarm=reason)
        if delivery.is_shown and not delivery.is_excused and not is_own:
            new = new._replace(alarm="a message is shown again although nothing was lost")
        return new

    def _send(self, memory: Memory) -> Iterator[Step]:
        """Hand the message to the platform, whose answer may be lost."""
        memory = memory._replace(knows="")
        index, part = memory.turn, memory.part
        turn, named = self.chat.turns[index], name_of_delivery(index, part)
        if turn.row != memory.row:  # it was forgotten on its way
            yield self._step(f"{self.me} sends {named}", self._put(memory._replace(at="sent")))
            return
        yield self._step(f"{self.me} sends {named}", self._shown(memory._replace(at="sent"), index, turn, part))
        if self.world.has(Fault.LOST):
            world = self.world.without(Fault.LOST)
            shown = self._shown(memory._replace(at="refused"), index, turn, part)
            seen = shown.turns[index]
            excused = getattr(seen, part)._replace(is_excused=True)
            shown = put_turn(shown, index, put_delivery(seen, part, excused))
            yield self._step(f"{self.me} sends {named}, and the platform's answer is lost", shown, world)
            yield self._step(
                f"{self.me} sends {named}, and the platform takes none for now",
                self._put(memory._replace(at="refused")),
                world,
            )

    def _note(self, memory: Memory) -> Iterator[Step]:
        """Store that the platform took a message."""
        turn, index = self.chat.turns[memory.turn], memory.turn
        named = name_of_delivery(index, memory.part)
        if turn.row != memory.row:
            yield self._step(f"{self.me} finds that {named} was forgotten on its way", self._put(HOLDS))
            return
        delivery: Delivery = getattr(turn, memory.part)
        noted = self._put(HOLDS, index, put_delivery(turn, memory.part, _delivered(delivery)))
        yield from self._commit(f"stores that {named} was sent", noted, [("delivery", delivery.status, "delivered")])

    def _put_off(self, memory: Memory) -> Iterator[Step]:
        """Put a message off that its platform did not take, and with it everything behind it."""
        turn, index = self.chat.turns[memory.turn], memory.turn
        if turn.row != memory.row:
            yield self._step(f"{self.me} finds that it was forgotten meanwhile", self._put(HOLDS))
            return
        delivery: Delivery = getattr(turn, memory.part)
        waits = put_delivery(turn, memory.part, delivery._replace(status="pending"))
        new = self._put(HOLDS, index, waits, wait=self._later())
        yield from self._commit(
            f"puts {name_of_delivery(index, memory.part)} off", new, [("delivery", delivery.status, "pending")]
        )

    def _note_late(self, memory: Memory) -> Iterator[Step]:
        """Store, without the claim, that a message was sent, unless a person has tried to send it since."""
        turn, index = self.chat.turns[memory.turn], memory.turn
        delivery: Delivery = getattr(turn, memory.part)
        named = name_of_delivery(index, memory.part)
        is_own = turn.row == memory.row and delivery.status == "attempting" and delivery.tries == memory.tries
        if not is_own:
            yield self._step(
                f"{self.me} does not store that {named} was sent: somebody else deals with it", self._put(None)
            )
            return
        noted = self._put(None, index, put_delivery(turn, memory.part, _delivered(delivery)))
        checked = checked_commit(
            noted, self.chat, None, [Change("delivery", "attempting", "delivered")], self.is_strict
        )
        yield self._step(f"{self.me} stores that it had sent {named}, without the conversation", checked)


def _delivered(delivery: Delivery) -> Delivery:
    """Return a delivery that is over; how it came about does not matter any more."""
    return Delivery("delivered", is_shown=delivery.is_shown)
