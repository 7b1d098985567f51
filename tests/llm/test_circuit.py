"""A model that failed is left alone for a while; then one call tries it, and the others wait for what comes of it."""

from hypothesis import given
from hypothesis import strategies as st

from botservice.llm.fallback import LONGEST_PAUSE_SECONDS, Circuit


def failed(*, at: float = 0.0, pause: float = 10.0) -> Circuit:
    circuit = Circuit()
    circuit.fail(circuit.begin(), at, first_pause_seconds=pause)
    return circuit


def test_a_model_that_works_is_asked_by_everybody() -> None:
    circuit = Circuit()
    assert circuit.admits(0.0)
    circuit.begin()
    assert circuit.admits(0.0)


def test_a_model_that_failed_is_left_alone_until_its_pause_is_over() -> None:
    circuit = failed(at=100.0)
    assert circuit.resumes_at == 110.0
    assert not circuit.admits(109.9)
    assert circuit.admits(110.0)


def test_one_call_alone_tries_it_again() -> None:
    circuit = failed()
    era = circuit.begin()
    assert not circuit.admits(10.0)
    assert circuit.succeed(era)
    assert circuit.resumes_at is None
    assert circuit.admits(10.0)


def test_a_try_that_was_stopped_leaves_its_place_to_another() -> None:
    circuit = failed()
    circuit.let_go(circuit.begin())
    assert circuit.admits(10.0)


def test_each_failed_try_makes_the_pause_twice_as_long_up_to_a_limit() -> None:
    circuit, now, pauses = Circuit(), 0.0, []
    for _ in range(9):
        pauses.append(circuit.fail(circuit.begin(), now, first_pause_seconds=10.0))
        now = circuit.resumes_at or 0.0
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, *[LONGEST_PAUSE_SECONDS] * 3]


def test_many_calls_that_fail_at_once_are_one_failure() -> None:
    circuit = Circuit()
    eras = [circuit.begin() for _ in range(200)]
    pauses = [circuit.fail(era, 0.0, first_pause_seconds=10.0) for era in eras]
    assert pauses == [10.0, *[None] * 199]
    assert circuit.resumes_at == 10.0


def test_an_answer_to_an_old_call_does_not_end_a_pause() -> None:
    circuit = Circuit()
    slow = circuit.begin()
    circuit.fail(circuit.begin(), 0.0, first_pause_seconds=10.0)
    assert not circuit.succeed(slow)
    assert not circuit.admits(5.0)


def test_whoever_asks_all_the_same_during_a_pause_makes_it_no_longer_and_may_end_it() -> None:
    circuit = failed()
    assert circuit.fail(circuit.begin(), 5.0, first_pause_seconds=10.0) is None
    assert circuit.resumes_at == 10.0
    assert circuit.succeed(circuit.begin())


def test_a_pause_is_at_least_as_long_as_it_has_to_be() -> None:
    circuit = Circuit()
    assert circuit.fail(circuit.begin(), 0.0, first_pause_seconds=10.0, least_seconds=240.0) == 240.0


@given(st.lists(st.tuples(st.sampled_from(["fail", "succeed", "let_go"]), st.floats(0.0, 1000.0)), max_size=30))
def test_a_model_is_always_asked_again_in_the_end(events: list[tuple[str, float]]) -> None:
    circuit, now = Circuit(), 0.0
    for event, passed in events:
        now += passed
        era = circuit.begin()
        if event == "fail":
            circuit.fail(era, now, first_pause_seconds=10.0)
        else:
            getattr(circuit, event)(era)
    assert circuit.admits(now + LONGEST_PAUSE_SECONDS)
