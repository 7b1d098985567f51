"""When to try again: pure functions of what went wrong and how often, in seconds."""

import itertools
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice import LLMError
from botservice.core.errors import DeliveryError, DeliveryRefused
from botservice.turns.retry_policies import (
    DELIVERY_RETRIES,
    MODEL_RETRIES,
    TURN_RETRIES,
    RetryPolicy,
    delivery_delay,
    model_delay,
    seconds_alive_first,
    turn_delay,
)

POLICY = RetryPolicy(max_attempts=5, first_delay_seconds=0.5, max_delay_seconds=3.0, total_seconds=20.0)


def test_each_wait_is_twice_as_long_up_to_the_longest():
    assert [POLICY.delay(attempt) for attempt in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


@given(st.integers(1, 10**9))
def test_no_wait_is_longer_than_the_longest_however_often_it_failed(attempt):
    for policy in (MODEL_RETRIES, TURN_RETRIES, DELIVERY_RETRIES):
        assert 0 < policy.delay(attempt) <= policy.max_delay_seconds


def test_a_turn_is_tried_four_times_and_then_set_aside():
    assert [turn_delay(TURN_RETRIES, attempt) for attempt in range(1, 5)] == [1.0, 2.0, 4.0, None]


def test_a_message_that_its_platform_does_not_take_stays_owed_for_a_day():
    age, tried = 0.0, 1
    while wait := delivery_delay(DELIVERY_RETRIES, DeliveryError("away"), tried, age):
        age, tried = age + wait, tried + 1
    assert tried == 107
    assert age == pytest.approx(86_400, rel=0.01)


def test_a_message_that_another_version_has_tried_more_often_stays_owed_for_a_day_as_well():
    assert delivery_delay(DELIVERY_RETRIES, DeliveryError("away"), 5_000, 86_000) == 900.0
    assert delivery_delay(DELIVERY_RETRIES, DeliveryError("away"), 5_000, 86_400) is None


def test_a_platform_is_tried_again_after_about_as_long_as_it_was_away():
    waits = [DELIVERY_RETRIES.delay(tried) for tried in range(1, 107)]
    away = list(itertools.accumulate(waits))
    assert all(wait <= gone + 0.5 for gone, wait in zip(away, waits[1:], strict=False))
    assert max(waits) == 900.0


def test_a_turn_that_may_take_its_process_down_waits_for_one_that_has_lived_a_while():
    assert [seconds_alive_first(beginnings) for beginnings in (0, 3, 4, 8, 12, 16, 10**9)] == [0, 0, 1, 2, 4, 8, 8]


def test_a_model_that_asks_to_wait_is_waited_for_where_there_is_time():
    busy = LLMError("busy", retry_after_seconds=7.0)
    assert model_delay(POLICY, busy, 1, 0.0) == 7.0
    assert model_delay(POLICY, busy, 1, 13.5) is None
    assert model_delay(POLICY, LLMError("busy"), 2, 1.0) == 1.0


@pytest.mark.parametrize(
    ("error", "attempt"), [(LLMError("wrong key", is_transient=False), 1), (LLMError("busy"), POLICY.max_attempts)]
)
def test_a_model_that_will_not_answer_is_not_asked_again(error, attempt):
    assert model_delay(POLICY, error, attempt, 0.0) is None


@given(st.floats(0, 60), st.integers(1, 10), st.floats(0, 60))
def test_the_model_is_never_waited_for_beyond_the_time_that_a_person_waits(elapsed, attempt, asked):
    delay = model_delay(MODEL_RETRIES, LLMError("busy", retry_after_seconds=asked), attempt, elapsed)
    assert delay is None or elapsed + delay < MODEL_RETRIES.total_seconds


def test_a_platform_that_refuses_is_not_asked_again_and_one_that_asks_to_wait_is_waited_for():
    assert delivery_delay(POLICY, DeliveryRefused("blocked"), 1, 0) is None
    assert delivery_delay(POLICY, DeliveryError("flood", retry_after_seconds=40.0), 1, 0) == 40.0
    assert delivery_delay(POLICY, DeliveryError("bad gateway"), 3, 0) == 2.0
    assert delivery_delay(POLICY, DeliveryError("bad gateway"), POLICY.max_attempts, 0) is None


@pytest.mark.parametrize("asked", [10.0**30, float("inf"), float("nan"), -1.0])
@pytest.mark.parametrize("kind", [LLMError, DeliveryError])
def test_a_server_that_asks_for_a_wait_without_end_is_asked_again_within_a_day(kind, asked):
    wait = kind("later", retry_after_seconds=asked).retry_after_seconds
    assert timedelta() <= timedelta(seconds=wait) <= timedelta(days=1)
