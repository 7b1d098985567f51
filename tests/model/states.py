"""The states of the model: what is stored of a conversation, what processes remember of it, and what may go wrong.

States are tuples that are never changed, so that they can be compared and counted.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

WORKERS: Final = 2
FREE, ORPHAN = 0, WORKERS + 1
"""Who has the lock of a conversation: nobody, worker `w` as `w + 1`, or a session whose process is gone."""


class Fault(StrEnum):
    """A kind of thing that goes wrong."""

    KILL = "kill"  # a process ends wherever it stands
    HANG = "hang"  # a process stands still, is taken over, and wakes up
    CUT = "cut"  # one worker's connection to the database is lost
    FAILOVER = "failover"  # every session ends at once; what was committed is there
    POOLER = "pooler"  # a transaction runs in the session of another connection
    CLOCK = "clock"  # the clock by which work is due jumps ahead, and is put right
    LOST = "lost"  # the platform's answer to a message is lost, or it takes none for now
    MODEL = "model"  # the language model fails, for now or for good


class Kind(StrEnum):
    """What a message needs."""

    SAY = "say"  # an answer
    TOOL = "tool"  # an answer after a call of a tool that must not run twice
    AGAIN = "again"  # an answer after a call of a tool that may run again
    PAY = "pay"  # an answer after a call that a person has to allow


class Delivery(NamedTuple):
    """A message that is to be sent.

    Attributes:
        tries: How often it was marked as on its way.
        is_shown: Whether people have seen it.
        is_excused: Whether something went wrong between a sending of it and the note of that.
    """

    status: str = "nothing"
    tries: int = 0
    is_shown: bool = False
    is_excused: bool = False


class Turn(NamedTuple):
    """What is stored of a message, its turn, its call of a tool and what it owes.

    Attributes:
        row: Which row it is: one that was forgotten is replaced by another one.
        is_over: Whether the time to decide has passed.
        is_changed: Whether the question in the history is as it was edited.
        ran: How often the tool has run.
        word: What a person had decided first.
        answers: How many answers are stored.
    """

    status: str = "nothing"
    row: int = 0
    call: str = "nothing"
    approval: str = "nothing"
    asked: Delivery = Delivery()
    answer: Delivery = Delivery()
    is_over: bool = False
    is_changed: bool = False
    ran: int = 0
    word: str = ""
    answers: int = 0


class Memory(NamedTuple):
    """What a process does in a conversation, and has read for it.

    Attributes:
        at: idle is None instead; see `steps.py` for what comes after what.
        part: Which delivery of the turn: asked or answer.
        tries: Which attempt it was.
        knows: What it has read, such as that there is an edit.
    """

    at: str
    turn: int = 0
    row: int = 0
    part: str = ""
    tries: int = 0
    knows: str = ""


HOLDS: Final = Memory("holds")


class Chat(NamedTuple):
    """A conversation.

    Attributes:
        lock: Whose session has its advisory lock.
        memory: What each worker does there.
        wait: until when what is put off waits: "" for nothing, "later", or "far" as a clock that was ahead set it.
        stop: The state of a person's stop, which came behind so many messages.
        alarm: Which promise was broken on the way here, if one was.
    """

    lock: int
    memory: tuple[Memory | None, ...]
    turns: tuple[Turn, ...]
    wait: str = ""
    stop: str = "nothing"
    stop_behind: int = 0
    edit: str = "nothing"
    is_forgotten: bool = False
    alarm: str = ""


class World(NamedTuple):
    """What all conversations share: processes, their sessions, the clock, and which faults are left to happen.

    Attributes:
        process: up, hung or dead, for each worker.
        session: ok, or cut while the worker does not know yet.
        is_ahead: Whether the clock is wrong.
        left: How often each kind of fault may still happen.
    """

    process: tuple[str, ...]
    session: tuple[str, ...]
    is_ahead: bool
    left: tuple[tuple[Fault, int], ...]

    def has(self, fault: Fault) -> bool:
        """Return whether a fault may happen."""
        return any(kind is fault and count for kind, count in self.left)

    def without(self, fault: Fault) -> "World":
        """Return the world after a fault of a kind."""
        left = tuple((kind, count - (kind is fault)) for kind, count in self.left)
        return self._replace(left=left)


@dataclass(frozen=True)
class Plan:
    """What may happen in one conversation.

    Attributes:
        kinds: What each of its messages needs, in the platform's order.
        in_order: Whether they arrive in that order; a webhook may bring a later one first.
        stops: Whether a person may say stop, once.
        edits: Whether a person may edit the first message, once.
        forgets: Whether the author of the first message may have it forgotten; the others wrote the others.
    """

    kinds: tuple[Kind, ...] = (Kind.SAY, Kind.SAY)
    in_order: bool = True
    stops: bool = False
    edits: bool = False
    forgets: bool = False

    def start(self) -> Chat:
        """Return the conversation before anything is said."""
        return Chat(FREE, (None,) * WORKERS, (Turn(),) * len(self.kinds))


def peaceful(faults: dict[Fault, int]) -> World:
    """Return the world before anything goes wrong."""
    return World(("up",) * WORKERS, ("ok",) * WORKERS, False, tuple(sorted(faults.items())))


@dataclass(frozen=True)
class Rules:
    """The rules of the protocol. A broken twin of the model has one of them less."""

    stores_before_acknowledging: bool = True
    knows_events: bool = True
    claims_by_lock: bool = True
    fences_writes: bool = True
    fences_sessions: bool = True
    stores_answers_before_sending: bool = True
    answers_in_one_commit: bool = True
    asks_before_sending: bool = True
    sends_only_what_is_owed: bool = True
    stores_calls_before_running: bool = True
    leaves_cut_off_calls: bool = True
    decides_only_what_waits: bool = True
    resumes_in_one_commit: bool = True
    checks_that_turns_exist: bool = True
    forgets_in_new_rows: bool = True
    begins_in_order: bool = True
    applies_edits_at_the_beginning: bool = True
    stops_what_came_before: bool = True
    doubts_clocks: bool = True


ALL_RULES: Final = Rules()
"""Those of the model itself."""
