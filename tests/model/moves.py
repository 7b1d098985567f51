"""The table of moves: how a stored row may change, who may change it, and what has to change in the same transaction.

The model makes no other change of a row than these, and the changes that the real service records are held against the
same table. So neither can say something else than the other.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple


class Thing(StrEnum):
    """A kind of row with a state."""

    TURN = "turn"  # of a message or a reminder
    PROGRAM = "program"  # a turn that a program asked for, which has the answer: nothing is sent
    CALL = "call"  # of a tool, in the step that is open
    APPROVAL = "approval"  # a call that waits for a person's decision, or for its result
    DELIVERY = "delivery"
    CONTROL = "control"  # a stop, an edit or a deletion


class By(StrEnum):
    """Who may make a move."""

    HOLDER = "the holder"  # of the conversation's claim: the session that writes has its lock
    ANYBODY = "any process"


NOTHING: Final = "nothing"
"""The state of a row that does not exist yet."""
GONE: Final = "gone"
"""The state of a row that was deleted."""


class Change(NamedTuple):
    """A change of one row."""

    thing: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Move:
    """A change that is allowed.

    Attributes:
        together: At least one of these has to be in the same transaction, if there are any.
        why: What happens, for people.
    """

    change: Change
    by: By
    why: str
    together: frozenset[Change] = frozenset()


def _move(
    thing: Thing, before: str, after: str, by: By, why: str, together: Sequence[tuple[Thing, str, str]] = ()
) -> Move:
    return Move(Change(thing, before, after), by, why, frozenset(Change(*each) for each in together))


_T, _P, _C, _A, _D, _E = Thing.TURN, Thing.PROGRAM, Thing.CALL, Thing.APPROVAL, Thing.DELIVERY, Thing.CONTROL
_HOLDER, _ANYBODY = By.HOLDER, By.ANYBODY
_RUNS = [(_T, "running", "running"), (_P, "running", "running")]
_PARKS = [(_T, "running", "waiting"), (_P, "running", "waiting")]
_GOES_ON = [(_T, "waiting", "running"), (_P, "waiting", "running")]
_IS_OWED = [
    (_D, NOTHING, "pending"),
    (_D, NOTHING, "attempting"),
    (_D, "attempting", "pending"),
    (_D, "attempting", "attempting"),
]
_DECIDED = ("allowed", "denied", "expired", "handed_in")
_ENDED = ("answered", "listened", "refused", "stopped", "failed")
_ERASED = "it is forgotten, or its time to be kept is over"

MOVES: Final = (
    _move(_T, NOTHING, "queued", _ANYBODY, "a message is accepted"),
    _move(_T, NOTHING, "running", _HOLDER, "a reminder is due"),
    _move(
        _T,
        NOTHING,
        "running",
        _ANYBODY,
        "what ran a tool and saw what is forgotten is to be given up",
        [(_T, "running", GONE), (_T, "waiting", GONE)],
    ),
    _move(_T, "queued", "queued", _HOLDER, "it waits for what else is said in its group"),
    _move(_T, "queued", "running", _HOLDER, "it begins: the question enters the history"),
    _move(_T, "queued", "stopped", _ANYBODY, "the operator drops it"),
    _move(_T, "queued", GONE, _ANYBODY, "its message joins another turn, or is forgotten"),
    _move(_T, "queued", "answered", _ANYBODY, "a program sends what nobody asked for", [(_T, NOTHING, "queued")]),
    _move(_T, "running", "running", _HOLDER, "it begins again, or a step is stored"),
    _move(_T, "running", "waiting", _HOLDER, "a call needs approval, or its result comes later"),
    _move(_T, "running", "answered", _HOLDER, "the answer is stored, with what is to be sent", _IS_OWED),
    _move(_T, "running", "listened", _HOLDER, "nobody is to be answered"),
    _move(_T, "running", "refused", _HOLDER, "whoever asks is not let in, or a budget does not reach"),
    _move(_T, "running", "stopped", _HOLDER, "a person stops it"),
    _move(_T, "running", "set_aside", _HOLDER, "it is given up, with an apology", _IS_OWED),
    _move(_T, "running", GONE, _ANYBODY, "it is forgotten; what others asked is asked again in a new row"),
    _move(_T, "waiting", "running", _HOLDER, "every call is decided", [(_A, each, "closed") for each in _DECIDED]),
    _move(_T, "waiting", "waiting", _HOLDER, "going on failed, and is tried again later"),
    _move(
        _T,
        "waiting",
        "stopped",
        _HOLDER,
        "it is stopped, or its question was taken back",
        [(_A, "withdrawn", "closed")],
    ),
    _move(_T, "waiting", "stopped", _ANYBODY, "the operator drops it, whose calls are forgotten"),
    _move(_T, "waiting", "set_aside", _HOLDER, "it is given up, with an apology", _IS_OWED),
    _move(_T, "waiting", GONE, _ANYBODY, "it is forgotten; what others asked is asked again in a new row"),
    _move(_T, "set_aside", "running", _ANYBODY, "the operator retries it"),
    _move(_T, "set_aside", "queued", _ANYBODY, "the operator retries it in a conversation that has gone on"),
    _move(_T, "set_aside", "failed", _ANYBODY, "the operator drops it"),
    *(_move(_T, each, GONE, _ANYBODY, _ERASED) for each in ("set_aside", *_ENDED)),
    _move(_P, NOTHING, "running", _HOLDER, "a program asks"),
    _move(
        _P,
        NOTHING,
        "failed",
        _ANYBODY,
        "what a program asked has seen what is forgotten",
        [(_P, "running", GONE), (_P, "waiting", GONE)],
    ),
    _move(_P, NOTHING, "queued", _ANYBODY, "a program sends what nobody asked for", [(_P, "queued", "answered")]),
    _move(_P, "queued", "answered", _ANYBODY, "a program sends what nobody asked for", [(_P, NOTHING, "queued")]),
    _move(_P, "running", "set_aside", _HOLDER, "it is given up"),
    _move(_P, "set_aside", "running", _ANYBODY, "the program resumes it, or the operator retries it"),
    _move(_P, "set_aside", "failed", _ANYBODY, "the operator drops it"),
    _move(_P, "running", "running", _HOLDER, "it begins again, or a step is stored"),
    _move(_P, "running", "waiting", _HOLDER, "a call needs approval, or its result comes later"),
    _move(_P, "waiting", "running", _HOLDER, "every call is decided", [(_A, each, "closed") for each in _DECIDED]),
    _move(_P, "waiting", "stopped", _HOLDER, "it is stopped", [(_A, "withdrawn", "closed")]),
    *(_move(_P, "running", each, _HOLDER, "it ends") for each in _ENDED),
    *(_move(_P, each, GONE, _ANYBODY, _ERASED) for each in ("running", "waiting", "set_aside", *_ENDED)),
    _move(_C, NOTHING, "started", _HOLDER, "it is about to run", [*_RUNS, *_GOES_ON]),
    _move(_C, NOTHING, "ended", _HOLDER, "it was denied, or not decided in time, and does not run", _GOES_ON),
    _move(_C, "started", "ended", _HOLDER, "its result is stored"),
    _move(_C, "started", "ended", _ANYBODY, "its late result is handed in", [(_A, "waiting", "handed_in")]),
    _move(_C, "started", GONE, _HOLDER, "the step has its result, or says that its outcome is unknown"),
    _move(_C, "ended", "started", _HOLDER, "it is about to run again, with the answers that it asked for", _GOES_ON),
    _move(_C, "ended", GONE, _HOLDER, "the step has its result"),
    *(
        _move(
            _C,
            each,
            GONE,
            _ANYBODY,
            _ERASED,
            [
                (_T, "running", GONE),
                (_T, "waiting", GONE),
                (_T, "set_aside", GONE),
                (_P, "running", GONE),
                (_P, "waiting", GONE),
            ],
        )
        for each in ("started", "ended")
    ),
    _move(_A, NOTHING, "waiting", _HOLDER, "a person is asked, or a result comes later", _PARKS),
    _move(_A, "waiting", "allowed", _ANYBODY, "a person allows the call"),
    _move(_A, "waiting", "denied", _ANYBODY, "a person denies the call"),
    _move(_A, "waiting", "handed_in", _ANYBODY, "the result is handed in"),
    _move(_A, "waiting", "expired", _HOLDER, "the time to decide is over"),
    *(
        _move(_A, each, "withdrawn", _ANYBODY, "the turn is stopped before it goes on")
        for each in ("waiting", *_DECIDED)
    ),
    *(
        _move(
            _A,
            each,
            "closed",
            _HOLDER,
            "the turn goes on",
            [*_GOES_ON, (_T, "waiting", "set_aside"), (_T, "running", "set_aside")],
        )
        for each in _DECIDED
    ),
    _move(
        _A, "withdrawn", "closed", _HOLDER, "the turn ends", [(_T, "waiting", "stopped"), (_P, "waiting", "stopped")]
    ),
    *(_move(_A, each, GONE, _ANYBODY, _ERASED) for each in ("waiting", "withdrawn", "closed", *_DECIDED)),
    _move(_D, NOTHING, "pending", _ANYBODY, "a message is to be sent"),
    _move(
        _D, NOTHING, "attempting", _HOLDER, "the first message of an answer is sent at once, or a visible stream opens"
    ),
    _move(_D, "pending", "attempting", _HOLDER, "it is about to be sent"),
    _move(_D, "attempting", "attempting", _HOLDER, "an attempt was cut off: it is sent again"),
    _move(_D, "attempting", "delivered", _ANYBODY, "the platform has it; whoever sent it may say so without the claim"),
    _move(_D, "attempting", "pending", _HOLDER, "the platform did not take it for now, or a stream becomes the answer"),
    _move(_D, "attempting", "failed", _HOLDER, "the platform will not take it, or a stream was cut off"),
    _move(_D, "pending", "failed", _HOLDER, "the rest of a stopped answer is dropped"),
    *(_move(_D, each, GONE, _ANYBODY, _ERASED) for each in ("pending", "attempting", "delivered", "failed")),
    _move(_E, NOTHING, "stored", _ANYBODY, "a stop, an edit or a deletion is accepted, or records are to be cleaned"),
    _move(_E, NOTHING, "handled", _ANYBODY, "a program sends something, under a key of its own"),
    _move(_E, "stored", "handled", _ANYBODY, "it takes effect, or its message is forgotten"),
    *(_move(_E, each, GONE, _ANYBODY, _ERASED) for each in ("stored", "handled")),
)

_BY_CHANGE: Final[dict[Change, tuple[Move, ...]]] = {
    change: tuple(each for each in MOVES if each.change == change) for change in dict.fromkeys(m.change for m in MOVES)
}


def explain(changes: Collection[Change], *, holds: bool, is_whole: bool = True) -> str | None:
    """Return why a transaction with these changes is not allowed; None if it is.

    Args:
        changes: What it changes in one conversation.
        holds: Whether its session has the conversation's lock.
        is_whole: Whether these are all of its changes.
    """
    there = set(changes)
    for change in changes:
        known = _BY_CHANGE.get(change)
        if known is None:
            return f"no {change.thing} goes from {change.before} to {change.after}"
        permitted = [each for each in known if holds or each.by is By.ANYBODY]
        if not permitted:
            return f"a {change.thing} goes from {change.before} to {change.after} without the conversation's claim"
        if is_whole and not any(not each.together or each.together & there for each in permitted):
            needed = sorted({f"{c.thing} {c.before} → {c.after}" for each in permitted for c in each.together})
            return f"a {change.thing} goes from {change.before} to {change.after} without {' or '.join(needed)}"
    return None


def explain_turns(statuses: Collection[str]) -> str | None:
    """Return why the turns of a conversation may not have these states at once; None if they may."""
    return "two turns of a conversation run at once" if sum(each == "running" for each in statuses) > 1 else None


def explain_deed(deed: str, state: str, before: Collection[str]) -> str | None:
    """Return why something may not be done with a row; None if it may.

    Args:
        deed: sent, of a delivery; of a call, run once or run, which may be repeated.
        state: The state of the row.
        before: What was done with it before.
    """
    needed = "attempting" if deed == "sent" else "started"
    if state not in (needed, GONE):  # what is forgotten at this moment is on its way already
        return f"it is {deed} while it is stored as {state}"
    if deed == "run once" and deed in before:
        return "a tool runs twice that must not"
    return None
