"""Stop it, by patterns: no regular expression takes more than linear time, whatever text it meets."""

import re
import time

import pytest
from attacks.patterns import LENGTH, hostile_texts, patterns, unread_calls

PATTERNS = patterns()
# Linear ones take a millisecond or a few for so much text; quadratic ones half a second and more.
LONGEST_SECONDS = 0.25
# Made of words of ours when it runs, and of nothing foreign.
KNOWN: set[str] = set()


def slowest(pattern: re.Pattern[str] | re.Pattern[bytes]) -> float:
    """Return the most processor time that a pattern takes for one hostile text."""
    longest = 0.0
    for text in hostile_texts(pattern):
        subject: str | bytes = text if isinstance(pattern.pattern, str) else text.encode()
        began = time.thread_time()
        pattern.fullmatch(subject)  # type: ignore[arg-type]  # the kind that the pattern takes
        for _ in pattern.finditer(subject):  # type: ignore[arg-type]  # the same
            pass
        longest = max(longest, time.thread_time() - began)
        if longest > LONGEST_SECONDS:
            break
    return longest


def test_every_pattern_is_found() -> None:
    assert len(PATTERNS) > 60
    assert "transports.slack.formatting._USER[0]" in PATTERNS
    assert set(unread_calls()) == KNOWN


def test_careless_patterns_would_be_noticed() -> None:
    for careless in (r"\s*<@B>\s*$", r"<@([^>|\s]+)(?:\|([^>\n]*))?>", r"\d+\s*,\s*\d+x"):
        assert slowest(re.compile(careless, re.DOTALL)) > LONGEST_SECONDS, careless


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_linear_time(name: str) -> None:
    assert slowest(PATTERNS[name]) < LONGEST_SECONDS, f"{LENGTH} characters"
