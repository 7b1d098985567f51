"""A step's record is one that the release before this one reads, whatever a server counted."""

from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep
from botservice.core.messages import TokenUsage


def test_newer_numbers_stand_beside_those_that_earlier_releases_know():
    step = ActionStep(1, token_usage=TokenUsage(10, 5, 8, 3, 2))
    record = step.to_dict()
    assert record["token_usage"] == {"$token_usage": {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 8}}
    assert MemoryItem.from_dict(record) == step


def test_a_usage_without_newer_numbers_is_written_as_before():
    record = ActionStep(1, token_usage=TokenUsage(10, 5)).to_dict()
    assert set(record) == {"kind", "version", "step_number", "token_usage"}


def test_a_usage_elsewhere_keeps_all_its_numbers():
    step = ActionStep(1, action_output=[TokenUsage(1, 2, None, 3)])
    assert MemoryItem.from_json(step.to_json()) == step
