"""Stop it, by patterns: no regular expression takes more than linear time, whatever text it meets."""

import re
import time

import pytest
from attacks.patterns import LENGTH, hostile_texts, is_only_matched, patterns, rooms, unread_calls

# Linear ones take a millisecond or a few for so much text; only what takes longer is looked at closely.
SUSPICIOUS_SECONDS = 0.03
# Four times the text takes a linear one four times as long, a quadratic one sixteen times.
MOST_TIMES_AS_LONG = 9
# Made of words of ours when it runs, of the bot's own name, of a tool's, or of a number of ticks.
KNOWN: set[str] = {
    "botservice.llm.demo",
    "botservice.llm.demo_calls",
    "botservice.llm.demo_sentences",
    "botservice.llm.openai.error_table",
    "botservice.privacy.account_queries",
    "transports.slack.formatting",
    "transports.telegram.inbound_messages",
}
# What owners write in settings, what the demo asks of short texts alone, templates of ours, and the end of a line.
HARMLESS = (
    "botservice.config.settings",
    "botservice.core.policies",
    "botservice.llm.demo._TIME",
    "botservice.texts.formatted._FENCE",
)


def seconds(pattern: re.Pattern[str] | re.Pattern[bytes], text: str, *, is_searched: bool) -> float:
    """Return the processor time that a pattern takes for a text."""
    subject: str | bytes = text if isinstance(pattern.pattern, str) else text.encode()
    began = time.thread_time()
    pattern.fullmatch(subject)  # type: ignore[arg-type]  # the kind that the pattern takes
    found = pattern.finditer(subject) if is_searched else ()  # type: ignore[arg-type]  # the same
    for _ in found:
        pass
    return time.thread_time() - began


def fastest(pattern: re.Pattern[str] | re.Pattern[bytes], text: str, *, is_searched: bool) -> float:
    """Return the least processor time of a few tries."""
    return min(seconds(pattern, text, is_searched=is_searched) for _ in range(2))


def is_linear(pattern: re.Pattern[str] | re.Pattern[bytes], *, length: int = LENGTH, is_searched: bool = True) -> bool:
    """Return whether hostile text that is four times as long takes a pattern about four times as long."""
    for long, short in zip(hostile_texts(pattern, length), hostile_texts(pattern, length // 4), strict=True):
        if seconds(pattern, long, is_searched=is_searched) > SUSPICIOUS_SECONDS:
            took, before = (fastest(pattern, text, is_searched=is_searched) for text in (long, short))
            if took > MOST_TIMES_AS_LONG * before:
                return False
    return True


@pytest.mark.slow
def test_every_pattern_is_found() -> None:
    found = {name for room in rooms() for name in patterns(room)}
    assert len(found) > 60
    assert "transports.slack.formatting._USER[0]" in found
    assert [each for each in HARMLESS if not any(name.startswith(each) for name in found)] == []
    assert {each.partition(":")[0] for each in unread_calls()} == KNOWN


@pytest.mark.slow
def test_careless_patterns_would_be_noticed() -> None:
    for careless, part in ((r"\s*<@B>\s*$", 2), (r"<@([^>|\s]+)(?:\|([^>\n]*))?>", 4), (r"\d+\s*,\s*\d+x", 4)):
        assert not is_linear(re.compile(careless, re.DOTALL), length=LENGTH // part), careless


@pytest.mark.slow
@pytest.mark.parametrize("room", rooms())
def test_every_pattern_takes_linear_time(room: str) -> None:
    found = {name: pattern for name, pattern in patterns(room).items() if not name.startswith(HARMLESS)}
    slow = [name for name, each in found.items() if not is_linear(each, is_searched=not is_only_matched(name))]
    assert slow == [], f"{LENGTH} characters"
