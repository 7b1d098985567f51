"""What goes out: an answer as its delivery."""

from datetime import UTC, datetime

from botservice.core.messages import Message, Role
from transports.web.outbound import plan_answer


def test_an_answer_is_one_delivery():
    answer = Message(role=Role.ASSISTANT, text="hello", created_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert plan_answer(answer) == [{"text": "hello", "at": "2026-01-01T00:00:00+00:00"}]
