"""Approvals that nobody decided in time, with questions of tools and later results: until when each of them waits.

An approval waits for `RunOptions.approval_lasts`, by default 24 hours.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from botservice.agent.tool_executor import ToolOutcome
from botservice.conversation.tool_calls import EXPIRED
from botservice.core.states import PendingKind, PendingStatus
from botservice.storage.database import Connection
from botservice.turns.call_queries import decide_call
from botservice.turns.turn import set_due
from botservice.turns.waiting_calls import WaitingCall

_NOTHING_CAME: Final = "Error: no result came in time. Whether the call took effect is not known."

_NOT_ANSWERED: Final = (
    "Error: the tool asked the person something, and they did not answer in time. The call was given up; whether any "
    "of it took effect is not known."
)


def expire_at(until: datetime, now: datetime) -> dict[str, Any]:
    """Return the columns of a call that waits until a moment, and is looked at again then."""
    return {"expires_at": until, **set_due(until, now)}


def expire(connection: Connection, calls: Sequence[WaitingCall], now: datetime) -> None:
    """Take note of the calls whose time is over."""
    for each in calls:
        if each.is_waiting and each.expires_at <= now:
            decide_call(connection, each, PendingStatus.EXPIRED, now)


def expired_outcome(call: WaitingCall) -> ToolOutcome:
    """Return what the model sees of a call that has expired."""
    if call.kind is PendingKind.QUESTION:
        return ToolOutcome(_NOT_ANSWERED, error_type="QuestionExpired")
    if call.kind is PendingKind.APPROVAL:
        return ToolOutcome(EXPIRED, error_type="ApprovalExpired")
    return ToolOutcome(_NOTHING_CAME, error_type="ResultExpired")
