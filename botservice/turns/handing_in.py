"""What programs do about calls that wait: deciding, and handing in results that come later."""

import asyncio
from datetime import datetime
from typing import Any, Final

from botservice.agent.tool_executor import ToolOutcome, describe_failure, outcome_of
from botservice.agent.tool_outputs import OutputError
from botservice.conversation.context import AgentContext
from botservice.core.errors import BotServiceError, InvalidField
from botservice.storage.database import Connection, Storage
from botservice.turns import call_queries
from botservice.turns.call_queries import decide_call, find_of_context
from botservice.turns.deciding import Decider, carry_out
from botservice.turns.parsing_decisions import DecisionRequest
from botservice.turns.queries import find_running_turn
from botservice.turns.turn import EventKind
from botservice.turns.waiting_calls import PendingKind, PendingStatus, WaitingCall
from botservice.turns.wakeups import Wakeup, notify_replicas

_PAUSES_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.0, 2.0)


async def decide(
    context: AgentContext, call_id: str | int, *, is_allowed: bool, is_always: bool, now: datetime
) -> bool:
    """Store the decision about a waiting call, and return whether it was undecided before.

    Raises:
        BotServiceError: no such call waits, or has; or several are called so; or is_allowed is neither True nor False.
    """
    if not isinstance(is_allowed, bool):
        raise BotServiceError(f"allow must be True or False, not {is_allowed!r}")
    order = DecisionRequest(is_allowed, is_always=is_always)

    def write(connection: Connection) -> bool:
        call = _find(connection, context.id, call_id, PendingKind.APPROVAL)
        if call is None:
            raise BotServiceError(f"no call {call_id!r} waits for a word in context {context.id}")
        if not call.is_waiting or call.expires_at <= now:
            return False
        notify_replicas(connection, [Wakeup(context.id, EventKind.DECISION, is_open=True)])
        return bool(carry_out(connection, [call], order, Decider(None), now))

    return await context.storage.write(write, sort_key=(context.id,))


async def hand_in(context: AgentContext, name: str | int, result: Any, now: datetime) -> bool:
    """Hand in the result that a turn waits for, and return whether nothing had become of it before.

    A result that is faster than the storing of what waits for it waits a moment.

    Raises:
        BotServiceError: nothing of that name waits, or has; or several do.
        InvalidField: the result cannot be represented as JSON.
    """
    outcome = _outcome(result)
    for pause_seconds in (*_PAUSES_SECONDS, None):
        taken = await context.storage.write(
            lambda connection: _take(connection, context.id, name, outcome, now), sort_key=(context.id,)
        )
        if taken is not None:
            return taken
        if pause_seconds is None or not await _is_running(context.storage, context.id):
            break
        await asyncio.sleep(pause_seconds)
    raise BotServiceError(f"nothing called {name!r} waits for its result in context {context.id}")


def _take(connection: Connection, context_id: int, name: str | int, outcome: ToolOutcome, now: datetime) -> bool | None:
    call = _find(connection, context_id, name, PendingKind.LATER)
    if call is None:
        return None
    if not call.is_waiting or not decide_call(connection, call, PendingStatus.HANDED_IN, now):
        return False
    call_queries.write_ended(connection, call.step_id, call.call_index, outcome)
    notify_replicas(connection, [Wakeup(context_id, EventKind.DECISION, is_open=True)])
    return True


def _find(connection: Connection, context_id: int, call_id: str | int, kind: PendingKind) -> WaitingCall | None:
    """Return the call that waits and is called so; else the newest that has waited.

    Raises:
        BotServiceError: several wait that are called so: models give one id to many calls; or it is no name at all.
    """
    if not isinstance(call_id, str | int) or isinstance(call_id, bool):
        raise BotServiceError(f"a call is named by its id, a text, or by its number, not by {call_id!r}")
    found = [
        each
        for each in find_of_context(connection, context_id)
        if each.kind is kind and call_id in (each.id, each.call_id, each.name)
    ]
    waiting = [each for each in found if each.is_waiting]
    if len(waiting) > 1:
        numbers = ", ".join(str(each.id) for each in waiting)
        raise BotServiceError(
            f"{len(waiting)} calls that are called {call_id!r} wait in context {context_id}; say its number: {numbers}"
        )
    return next(iter(waiting), found[-1] if found else None)


def _outcome(result: Any) -> ToolOutcome:
    if isinstance(result, BaseException):
        return ToolOutcome(f"Error: {describe_failure(result)}", error_type=type(result).__name__)
    try:
        return outcome_of(result)
    except OutputError as error:
        raise InvalidField(str(error)) from error


async def _is_running(storage: Storage, context_id: int) -> bool:
    return await storage.read(lambda connection: find_running_turn(connection, context_id)) is not None
