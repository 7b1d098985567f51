"""What of an answer is not as it was expected."""

import time

import pytest

from botservice import TokenUsage
from botservice.devtools.cases import Expectations, Pattern, find_failures, language_of
from botservice.devtools.replayed_answers import ReplayedAnswer, ReplayedCall, ResultOrigin

ADDED = ReplayedCall("add", {"a": 1}, "2", ResultOrigin.RECORD)
ANSWER = ReplayedAnswer("Your dog is called Rex.", usage=TokenUsage(100, 20), cost=2_000_000, tool_calls=(ADDED,))


@pytest.mark.parametrize(
    ("expect", "failure"),
    [
        (Expectations(), None),
        (Expectations(contains=("rex", "DOG")), None),
        (Expectations(contains=("Bello",)), "does not contain 'Bello'"),
        (Expectations(not_contains=("cat",)), None),
        (Expectations(not_contains=("REX",)), "contains 'REX'"),
        (Expectations(regex=(Pattern("called R.x"),)), None),
        (Expectations(regex=(Pattern("^Rex"),)), "does not match '^Rex'"),
        (Expectations(not_regex=(Pattern("R[e]x"),)), "matches 'R[e]x'"),
        (Expectations(calls=("add",), not_calls=("drop",)), None),
        (Expectations(calls=("drop",)), "does not call drop"),
        (Expectations(not_calls=("add",)), "calls add"),
        (Expectations(max_tokens=20, max_cost=0.002), None),
        (Expectations(max_tokens=19), "takes 20 tokens, not 19 at most"),
        (Expectations(max_cost=0.001), "costs 0.002000, not 0.001 at most"),
        (Expectations(language="en"), None),
        (Expectations(language="de"), "is in en, not in de"),
    ],
)
def test_what_is_not_as_expected_is_said(expect, failure):
    assert find_failures(ANSWER, expect) == ([] if failure is None else [failure])


def test_no_answer_is_a_failure_whatever_is_expected():
    assert find_failures(ReplayedAnswer(error="the server is down"), Expectations()) == [
        "no answer: the server is down"
    ]


def test_what_nobody_knows_the_price_of_does_not_pass_a_limit_of_money():
    assert "PRICES" in find_failures(ReplayedAnswer("a"), Expectations(max_cost=1))[0]


def test_tokens_are_counted_where_no_server_says():
    assert find_failures(ReplayedAnswer("word " * 50), Expectations(max_tokens=10))
    assert not find_failures(ReplayedAnswer("word"), Expectations(max_tokens=10))


def test_a_pattern_takes_linear_time_whatever_it_is():
    began = time.thread_time()
    assert not Pattern("(a+)+$").is_in("a" * 50_000 + "b")
    assert not Pattern("(a|a|ab)*c").is_in("ab" * 50_000)
    assert time.thread_time() - began < 5


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Your dog is called Rex, as you told me.", "en"),
        ("Dein Hund heißt Rex, das hast du mir gesagt.", "de"),
        ("Votre chien s'appelle Rex, vous me l'avez dit.", "fr"),
        ("Твою собаку зовут Рекс, ты мне это говорил.", "ru"),
        ("你的狗叫 Rex", "zh"),
        ("あなたの犬は Rex です", "ja"),
        ("당신의 개는 Rex입니다", "ko"),
        ("12 + 5 = 17", None),
        ("", None),
    ],
)
def test_languages_are_told_apart(text, language):
    assert language_of(text) == language
