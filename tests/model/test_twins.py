"""The model without one of its rules breaks a promise, and the shortest way there is told as a story."""

from dataclasses import fields

import pytest

from .states import Rules
from .stories import tell
from .twins import TWINS, Twin

POOLED = next(each for each in TWINS if each.rule == "fences_sessions")


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.rule)
def test_a_broken_twin_is_caught_where_the_model_is_sound(twin: Twin) -> None:
    alarm = twin.caught()
    assert alarm is not None
    assert alarm[1], "there is a story to tell"
    assert twin.is_sound_with_the_rule()


def test_each_rule_has_a_twin_without_it() -> None:
    assert [each.rule for each in TWINS] == [each.name for each in fields(Rules)]


def test_the_shortest_story_is_told_in_plain_words() -> None:
    first = next(each for each in TWINS if each.rule == "leaves_cut_off_calls")
    assert tell(first) == (
        "Where a call that was cut off is made again, a tool runs twice that must not:\n"
        "  1. Message 1 is stored, and then the platform is told that it has arrived.\n"
        "  2. Worker 1 claims the conversation.\n"
        "  3. Worker 1 reads the turn of message 1.\n"
        "  4. Worker 1 stores the question of message 1, and begins its turn.\n"
        "  5. Worker 1 stores that a call of message 1 has started.\n"
        "  6. Worker 1 runs the tool for message 1.\n"
        "  7. Worker 1 is killed.\n"
        "  8. Worker 2 claims the conversation.\n"
        "  9. Worker 2 reads the turn of message 1.\n"
        " 10. Worker 2 goes on with the call of message 1.\n"
        " 11. Worker 2 runs the tool for message 1.\n"
    )


def test_a_pooler_leaves_a_message_unanswered_where_the_fence_has_no_session() -> None:
    """7 of 100 were: a lock is given back in a session that does not have it, and stays where it is."""
    story = tell(POOLED, "left for ever")
    assert "gives the conversation back in the session of worker 2, which has no lock" in story
    assert story.splitlines()[0].endswith("message 2 is left for ever:")


@pytest.mark.parametrize("harm", ["answered twice", "shown again"])
def test_a_pooler_has_a_message_answered_twice_where_the_fence_has_no_session(harm: str) -> None:
    """2 of 100 were: two workers share a session, in which both get the same lock."""
    assert "claims the conversation, in the session of worker 1, which has the lock already" in tell(POOLED, harm)
