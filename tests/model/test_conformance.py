"""What the real service records is what the model allows."""

import pytest

from botservice.storage.transitions import Transition

from .commits import COMMITS
from .conformance import find_breaches
from .moves import MOVES, Change, Thing
from .search import enumerate_states
from .states import Fault, Kind, Plan

# What the service does and the model does not.
OUTSIDE = {
    *(move.change for move in MOVES if move.change.thing == Thing.PROGRAM),
    Change("turn", "queued", "queued"),
    Change("turn", "queued", "stopped"),
    Change("turn", "queued", "answered"),
    Change("control", "nothing", "handled"),
    Change("turn", "waiting", "waiting"),
    Change("turn", "waiting", "set_aside"),
    Change("turn", "running", "listened"),
    Change("turn", "running", "refused"),
    *(Change("turn", "set_aside", each) for each in ("running", "queued", "failed")),
    *(Change("turn", each, "gone") for each in ("listened", "refused", "failed")),
    Change("call", "started", "ended"),
    Change("call", "ended", "started"),
    *(Change("approval", before, after) for before, after in (("waiting", "handed_in"), ("handed_in", "withdrawn"))),
    *(Change("approval", "handed_in", each) for each in ("closed", "gone")),
    Change("delivery", "attempting", "failed"),
    Change("delivery", "pending", "failed"),
    Change("delivery", "failed", "gone"),
    *(Change("control", each, "gone") for each in ("stored", "handled")),
}


def entry(
    seq: int, thing: str, before: str, after: str, *, tx: int | None = 1, name: str = "1", is_held: bool = True
) -> Transition:
    return Transition(seq, tx, 1, thing, name, before, after, is_held)


def test_the_model_makes_every_move_of_the_table_but_for_those_that_are_named_here() -> None:
    for faults in ({Fault.LOST: 1}, {Fault.MODEL: 1}):
        assert enumerate_states(Plan((Kind.SAY,), forgets=True), faults).alarm is None
    for plan in (
        Plan((Kind.PAY,), stops=True, forgets=True),
        Plan((Kind.PAY, Kind.SAY), edits=True, forgets=True),
        Plan((Kind.TOOL, Kind.TOOL), forgets=True, stops=True),
    ):
        assert enumerate_states(plan, {Fault.KILL: 1}).alarm is None
    made = {change for changes, _ in COMMITS for change in changes}
    known = {move.change for move in MOVES}
    assert made <= known
    assert known - made == OUTSIDE


def test_an_ordinary_turn_is_allowed() -> None:
    record = [
        entry(1, "turn", "nothing", "queued", tx=1, is_held=False),
        entry(2, "turn", "queued", "running", tx=2),
        entry(3, "turn", "running", "answered", tx=3),
        entry(4, "delivery", "nothing", "attempting", tx=3),
        entry(5, "delivery", "", "sent", tx=None),
        entry(6, "delivery", "attempting", "delivered", tx=4, is_held=False),
    ]
    assert find_breaches(record) == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        pytest.param(
            [entry(1, "turn", "nothing", "queued"), entry(2, "turn", "queued", "running", tx=2, is_held=False)],
            "a turn goes from queued to running without the conversation's claim",
            id="no claim",
        ),
        pytest.param(
            [entry(1, "delivery", "delivered", "attempting")],
            "no delivery goes from delivered to attempting",
            id="sent again",
        ),
        pytest.param(
            [entry(1, "approval", "allowed", "denied")], "no approval goes from allowed to denied", id="decided twice"
        ),
        pytest.param(
            [entry(1, "turn", "running", "answered"), entry(2, "delivery", "nothing", "pending", tx=2)],
            "a turn goes from running to answered without delivery",
            id="an answer in two commits",
        ),
        pytest.param(
            [entry(1, "call", "", "run once", tx=None)], "it is run once while it is stored as nothing", id="not stored"
        ),
        pytest.param(
            [
                entry(1, "turn", "running", "running"),
                entry(2, "call", "nothing", "started"),
                entry(3, "call", "", "run once", tx=None),
                entry(4, "call", "", "run once", tx=None),
            ],
            "a tool runs twice that must not",
            id="run twice",
        ),
        pytest.param(
            [entry(1, "delivery", "pending", "delivered")],
            "no delivery goes from pending to delivered",
            id="not marked",
        ),
        pytest.param(
            [
                *(entry(each, "turn", "nothing", "queued", name=str(each)) for each in (1, 2)),
                *(entry(each + 2, "turn", "queued", "running", tx=2, name=str(each)) for each in (1, 2)),
            ],
            "two turns of a conversation run at once",
            id="two at once",
        ),
    ],
)
def test_what_breaks_a_rule_is_found(record: list[Transition], reason: str) -> None:
    assert reason in " ".join(find_breaches(record))
