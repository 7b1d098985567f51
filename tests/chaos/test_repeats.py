"""What explains that something was done twice, and what does not."""

import pytest
from chaos.incidents import Harm, Incident
from chaos.repeats import NOTICED_SECONDS, Doing, Reasons

LATER = 100.0


def doing(process: str, at: float, *, has_failed: bool = False) -> Doing:
    return Doing("show it", process, at, has_failed)


def incident(harm: Harm, process: str, started: float, ended: float) -> Incident:
    return Incident("something", harm, process, started, ended)


@pytest.mark.parametrize(
    ("first", "second", "incidents"),
    [
        (doing("a", 1.0, has_failed=True), doing("a", 2.0), []),
        (doing("a", 1.0), doing("b", 3.0), [incident(Harm.ENDS_PROCESS, "a", 2.0, 2.1)]),
        (doing("b", 3.0), doing("a", 3.1), [incident(Harm.ENDS_PROCESS, "a", 2.0, 2.1)]),  # it was under way for long
        (doing("a", 1.0), doing("b", 3.0), [incident(Harm.CUTS_PROCESS_OFF, "a", 0.5, 2.5)]),
        (doing("b", 1.0), doing("a", 3.0), [incident(Harm.CUTS_PROCESS_OFF, "a", 0.5, 2.5)]),
        (doing("a", 1.0), doing("a", 3.0), [incident(Harm.CUTS_ALL_OFF, "c", 2.0, 2.1)]),
        (doing("a", 1.0), doing("b", 3.0), [incident(Harm.CUTS_ALL_OFF, "c", 0.0, 1.0 - NOTICED_SECONDS / 2)]),
    ],
)
def test_what_explains_a_repeat(first: Doing, second: Doing, incidents: list[Incident]) -> None:
    assert Reasons(incidents).unexplained([first, second]) == []


@pytest.mark.parametrize(
    ("first", "second", "incidents"),
    [
        (doing("a", 1.0), doing("a", 2.0), []),
        (doing("a", 1.0), doing("b", 2.0), []),
        (doing("a", 1.0), doing("b", 2.0, has_failed=True), []),
        (doing("a", 1.0), doing("a", 3.0), [incident(Harm.ENDS_PROCESS, "a", 2.0, 2.1)]),
        (doing("a", 1.0), doing("b", 2.0), [incident(Harm.ENDS_PROCESS, "a", 2.5, 2.6)]),
        (doing("a", 1.0), doing("b", 3.0), [incident(Harm.ENDS_PROCESS, "c", 2.0, 2.1)]),
        (doing("a", 1.0), doing("b", 3.0), [incident(Harm.CUTS_PROCESS_OFF, "c", 2.0, 2.1)]),
        (doing("a", 1.0), doing("b", 3.0), [incident(Harm.NONE, "a", 2.0, 2.1)]),
        (doing("a", 1.0), doing("b", 3.0), [incident(Harm.CUTS_ALL_OFF, "a", 3.5, 3.6)]),
        (doing("a", LATER), doing("b", LATER + 1), [incident(Harm.CUTS_ALL_OFF, "a", 1.0, 2.0)]),
    ],
)
def test_what_does_not(first: Doing, second: Doing, incidents: list[Incident]) -> None:
    assert Reasons(incidents).unexplained([first, second]) == [(first, second)]


def test_each_time_needs_a_reason_of_its_own() -> None:
    first, second, third = doing("a", 1.0), doing("b", 3.0), doing("c", 5.0)
    killed = incident(Harm.ENDS_PROCESS, "a", 2.0, 2.1)
    assert Reasons([killed]).unexplained([first, second, third]) == [(second, third)]


def test_a_long_incident_is_not_hidden_by_a_short_one_within() -> None:
    long, short = incident(Harm.CUTS_ALL_OFF, "", 1.0, LATER), incident(Harm.CUTS_ALL_OFF, "", 2.0, 3.0)
    assert Reasons([short, long]).unexplained([doing("a", LATER - 2), doing("b", LATER - 1)]) == []
