"""Stop it, by patterns: no regular expression takes more than linear time, whatever text it meets."""

import re
import time

import pytest
from attacks.patterns import LENGTH, hostile_texts, is_only_matched, patterns, unread_calls

PATTERNS = patterns()
# Linear ones take a millisecond or a few for so much text; quadratic ones half a second and more.
LONGEST_SECONDS = 0.25
# Made of words of ours when it runs, and of nothing foreign.
KNOWN: set[str] = set()
# What owners write in their settings, and what the demo asks of short texts alone.
HARMLESS = ("botservice.settings", "botservice.policies", "botservice.llm.demo._TIME")


def slowest(pattern: re.Pattern[str] | re.Pattern[bytes], *, is_searched: bool = True) -> float:
    """Return the most processor time that a pattern takes for one hostile text."""
    longest = 0.0
    for text in hostile_texts(pattern):
        subject: str | bytes = text if isinstance(pattern.pattern, str) else text.encode()
        began = time.thread_time()
        pattern.fullmatch(subject)  # type: ignore[arg-type]  # the kind that the pattern takes
        found = pattern.finditer(subject) if is_searched else ()  # type: ignore[arg-type]  # the same
        for _ in found:
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


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PATTERNS if not name.startswith(HARMLESS)])
def test_a_pattern_takes_linear_time(name: str) -> None:
    assert slowest(PATTERNS[name], is_searched=not is_only_matched(name)) < LONGEST_SECONDS, f"{LENGTH} characters"
