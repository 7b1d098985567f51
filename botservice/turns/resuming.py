"""Resuming a turn that has waited: the calls to run are stored as started in the same transaction, so they run once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from botservice.agent.tool_executor import ToolOutcome
from botservice.agent.tool_questions import ReplyAction, ToolQuestions
from botservice.conversation.context import AgentContext
from botservice.conversation.tool_calls import DENIED
from botservice.core.errors import ClaimLost
from botservice.core.messages import ToolCall
from botservice.core.states import API, PendingKind, PendingStatus
from botservice.storage.database import Connection
from botservice.turns import call_queries
from botservice.turns.call_queries import find_of_turn, find_open, lock_turn, put_off_waiting, resume_turn
from botservice.turns.expired_approvals import expire, expired_outcome
from botservice.turns.queries import set_waiting
from botservice.turns.suspending import waiting_of
from botservice.turns.waiting_calls import PendingCall, WaitingCall


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the calls of a step that its turn has waited with.

    Attributes:
        ended: What is known of calls that need not run, by their place.
        replied: What a person has answered to the calls that are made again with it, by their place.
        is_withdrawn: Whether the turn is to end instead.
    """

    ended: dict[int, ToolOutcome] = field(default_factory=dict)
    replied: Mapping[int, ToolQuestions] = field(default_factory=dict)
    is_withdrawn: bool = False


def go_on(
    connection: Connection, turn_id: int, context_id: int, step_id: int, calls: Sequence[ToolCall], now: datetime
) -> Settled:
    """Resume a waiting turn with its step, if every call is decided.

    Raises:
        TurnWaiting: something is not.
        ClaimLost: the turn does not wait any more.
    """
    if not lock_turn(connection, turn_id):
        raise ClaimLost(f"turn {turn_id} does not wait any more")
    expire(connection, _open(connection, turn_id), now)
    pending = _open(connection, turn_id)
    if any(each.status is PendingStatus.WITHDRAWN for each in pending):
        return Settled(is_withdrawn=True)
    check_decided(turn_id, pending, calls)
    has_started = call_queries.has_started(connection, step_id)
    given = {each.call_index: outcome for each in pending if (outcome := _outcome(each)) is not None}
    for index, outcome in given.items():
        if has_started:
            call_queries.write_ended(connection, step_id, index, outcome)
        else:
            call_queries.write_given(connection, context_id, step_id, index, outcome)
    if not has_started:
        started = [index for index in range(len(calls)) if index not in given]
        call_queries.write_started(connection, context_id, step_id, started)
    resume_turn(connection, turn_id, now)
    ended, replied = {**call_queries.read_ended(connection, step_id), **given}, find_replied(pending)
    return Settled({index: each for index, each in ended.items() if index not in replied}, replied)


def find_replied(calls: Sequence[WaitingCall]) -> dict[int, ToolQuestions]:
    """Return what a person has answered to calls that asked something, by their place: the newest of each."""
    found: dict[int, ToolQuestions] = {}
    for each in calls:
        if each.exchange is not None and each.status is PendingStatus.DENIED:
            found[each.call_index] = each.exchange.ended(ReplyAction.DECLINE)
        elif each.exchange is not None and each.status is PendingStatus.HANDED_IN:
            found[each.call_index] = each.exchange
    return found


def read_replied(connection: Connection, turn_id: int, step_id: int) -> dict[int, ToolQuestions]:
    """Return what a person has answered to calls of a step whose turn goes on, by their place."""
    return find_replied([each for each in find_of_turn(connection, turn_id) if each.step_id == step_id])


def has_open(connection: Connection, turn_id: int) -> bool:
    """Return whether a turn has calls that it waits with."""
    return bool(_open(connection, turn_id))


def wait_again(connection: Connection, turn_id: int, now: datetime) -> None:
    """Mark a turn whose calls still wait as waiting, and due at once."""
    set_waiting(connection, turn_id)
    put_off_waiting(connection, turn_id, now, now)


async def check_none_waits(context: AgentContext) -> None:
    """Return if no turn of a program waits in a context; otherwise bring the context up to date with that turn.

    Raises:
        TurnWaiting: one does: for a person's word, or for a result.
    """
    pending = await context.storage.read(lambda connection: find_open(connection, context.id))
    newest = next((each for each in reversed(pending) if each.transport == API), None)
    if newest is None:
        return
    await context.refresh(newest.turn_id)
    step = None if context.open_step is None else context.open_step.item
    calls = () if step is None else step.get_value("tool_calls") or ()
    check_decided(newest.turn_id, [each for each in pending if each.turn_id == newest.turn_id], calls)


def check_decided(turn_id: int, pending: Sequence[WaitingCall], calls: Sequence[ToolCall]) -> None:
    """Return if nothing of what a turn waits with is undecided.

    Raises:
        TurnWaiting: something is.
    """
    waiting = [each for each in pending if each.is_waiting]
    if waiting:
        shown = [
            PendingCall(
                each.name or each.call_id,
                each.tool,
                calls[each.call_index].arguments if each.call_index < len(calls) else {},
                each.id,
            )
            for each in waiting
        ]
        raise waiting_of(turn_id, shown, waiting[0].kind)


def _open(connection: Connection, turn_id: int) -> list[WaitingCall]:
    return [each for each in find_of_turn(connection, turn_id) if each.is_open]


def _outcome(call: WaitingCall) -> ToolOutcome | None:
    """Return what the model sees of a call that is not made, or of which nothing came; None for the others."""
    if call.status is PendingStatus.EXPIRED:
        return expired_outcome(call)
    if call.status is PendingStatus.DENIED and call.kind is not PendingKind.QUESTION:
        return ToolOutcome(DENIED, error_type="Denied")
    return None
