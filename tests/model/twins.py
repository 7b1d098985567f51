"""Broken twins of the model: each has one rule less, and each has to be caught."""

from dataclasses import dataclass, replace
from typing import Final

from .search import Found, enumerate_states
from .states import Fault, Kind, Plan, Rules

_SAY: Final = Plan((Kind.SAY,))
_TWO: Final = Plan((Kind.SAY, Kind.SAY))
_TOOL: Final = Plan((Kind.TOOL,))
_PAY: Final = Plan((Kind.PAY,))


@dataclass(frozen=True)
class Twin:
    """A model without one of the rules.

    Attributes:
        rule: The rule, as `Rules` calls it.
        says: What is done instead.
        faults: What has to go wrong for it to show; nothing where it shows by itself.
    """

    rule: str
    says: str
    plan: Plan
    faults: tuple[Fault, ...] = ()

    def caught(self) -> tuple[str, list[str]] | None:
        """Return which promise is broken and the shortest way there; None if none is."""
        return self.search().alarm

    def search(self, harm: str = "") -> Found:
        """Enumerate its states until a promise is broken.

        Args:
            harm: Which promise it has to be, such as "twice"; others are passed over.
        """
        rules = replace(Rules(), **{self.rule: False})
        faults = dict.fromkeys(self.faults, 1)
        return enumerate_states(self.plan, faults, rules, is_strict=False, is_symmetric=False, harm=harm)

    def is_sound_with_the_rule(self) -> bool:
        """Return whether the same goes well in the model itself."""
        return enumerate_states(self.plan, dict.fromkeys(self.faults, 1)).alarm is None


TWINS: Final = (
    Twin(
        "stores_before_acknowledging",
        "the platform hears that a message has arrived before it is stored",
        _SAY,
        (Fault.KILL,),
    ),
    Twin("knows_events", "an event that is delivered again is stored again", _SAY),
    Twin(
        "claims_by_lock",
        "a claim holds for a time, and its worker believes in it until it is told otherwise",
        _SAY,
        (Fault.HANG,),
    ),
    Twin("fences_writes", "a worker that has lost its connection connects again and goes on", _SAY, (Fault.CUT,)),
    Twin("fences_sessions", "a transaction that gets another session is not noticed", _TWO, (Fault.POOLER,)),
    Twin("stores_answers_before_sending", "an answer is sent and then stored", _SAY, (Fault.KILL,)),
    Twin(
        "answers_in_one_commit", "an answer is stored, and what is to be sent in the next commit", _SAY, (Fault.KILL,)
    ),
    Twin("asks_before_sending", "a message is sent without asking who has the conversation", _SAY, (Fault.HANG,)),
    Twin(
        "sends_only_what_is_owed",
        "a message is marked as on its way whatever became of it since it was read",
        _SAY,
        (Fault.CUT,),
    ),
    Twin("stores_calls_before_running", "a tool runs before its call is stored", _TOOL, (Fault.KILL,)),
    Twin("leaves_cut_off_calls", "a call that was cut off is made again", _TOOL, (Fault.KILL,)),
    Twin("decides_only_what_waits", "a decision is stored whatever was decided before", _PAY),
    Twin("resumes_in_one_commit", "an allowed call runs while its turn still waits", _PAY, (Fault.KILL,)),
    Twin(
        "checks_that_turns_exist",
        "a worker stores what it did without looking whether its turn is still there",
        replace(_SAY, forgets=True),
    ),
    Twin("forgets_in_new_rows", "a turn that has seen forgotten words keeps its row", replace(_TWO, forgets=True)),
    Twin("begins_in_order", "the newest message is taken first", _TWO),
    Twin(
        "applies_edits_at_the_beginning",
        "an edit is marked as handled by a worker that has read the message before",
        replace(_SAY, edits=True),
    ),
    Twin("stops_what_came_before", "a stop ends whatever runs", replace(_TWO, stops=True)),
    Twin(
        "doubts_clocks",
        "what was put off waits until the time that was set, by whatever clock",
        _SAY,
        (Fault.CLOCK, Fault.LOST),
    ),
)
