"""Resuming turns that wait: what was decided is shown, calls expire, and those to run are stored as started, once."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from botservice.agent.tool_executor import ToolOutcome
from botservice.agent.tool_questions import ReplyAction, ToolQuestions
from botservice.conversation.context import AgentContext
from botservice.conversation.queries import read_context_keys
from botservice.conversation.tool_calls import DENIED, EXPIRED
from botservice.core.errors import ClaimLost, StorageUnavailable
from botservice.core.messages import Author, InboundMessage, Message, ToolCall
from botservice.core.states import API, PendingKind, PendingStatus
from botservice.people.names import person_name
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.turns import call_queries
from botservice.turns.call_queries import (
    close_pending,
    expire_calls,
    find_of_turn,
    find_open,
    lock_turn,
    put_back,
    withdraw_turn,
)
from botservice.turns.edits_and_deletions import PendingControl
from botservice.turns.finding_queries import find_turn
from botservice.turns.queries import reopen_turn
from botservice.turns.run_options import RunOptions
from botservice.turns.suspension import Suspension, waiting_for
from botservice.turns.transport import Payload, Transport
from botservice.turns.turn import Turn
from botservice.turns.waiting_calls import WaitingCall

logger = logging.getLogger(__name__)

_NOTHING_CAME: Final = "Error: no result came in time. Whether the call took effect is not known."
_NOT_ANSWERED: Final = (
    "Error: the tool asked the person something, and they did not answer in time. The call was given up; whether any "
    "of it took effect is not known."
)


class SuspendedTurns:
    """Sees to the turns that wait of contexts that the caller has claimed."""

    def __init__(self, storage: Storage, options: RunOptions) -> None:
        self._storage = storage
        self._options = options

    async def attend(self, turn: Turn, context: AgentContext, claim: Claim, transport: Transport) -> bool:
        """Show what was decided where it was asked; return whether nothing is undecided any more."""
        is_welcome = await self._is_welcome(turn, context, is_group=transport.is_shared(context.context_keys))
        now = self._options.clock()
        has_buttons = bool(transport.capabilities.buttons)
        suspension = Suspension(turn, context, lambda shown: _plan(transport, shown, turn), has_buttons)

        def see_to(connection: Connection) -> bool:
            if not lock_turn(connection, turn.id):
                return False
            if not is_welcome:
                withdraw_turn(connection, turn.id, now)
            expire_calls(connection, turn.id, now)
            calls = find_of_turn(connection, turn.id)
            suspension.update_messages(connection, calls, _made_in(context), now)
            is_waiting = any(each.is_waiting for each in calls)
            if is_waiting:
                put_back(connection, [each for each in calls if each.is_open], now)
            return not is_waiting

        return await self._storage.write(see_to, fence=claim)

    async def find_stopped(
        self, context_id: int, stops: Sequence[PendingControl], transports: Mapping[str, Transport]
    ) -> list[int]:
        """Return the turns that wait and that stops are about: begun before, by who says stop or who alone is there."""
        if not stops:
            return []

        def read(connection: Connection) -> tuple[list[tuple[Turn, Author | None]], Mapping[str, str]]:
            askers = {each.turn_id: each.author for each in reversed(find_open(connection, context_id))}
            found = ((find_turn(connection, context_id, turn_id), asker) for turn_id, asker in askers.items())
            waiting = [(turn, asker) for turn, asker in found if turn is not None]
            return waiting, read_context_keys(connection, context_id)

        waiting, keys = await self._storage.read(read)
        return [
            turn.id
            for turn, asker in waiting
            if [
                stop
                for stop in stops
                if stop.order_key > turn.order_key
                if (transport := transports.get(stop.transport)) is not None
                if await _is_of(stop, asker, transport, keys)
            ]
        ]

    async def _is_welcome(self, turn: Turn, context: AgentContext, *, is_group: bool) -> bool:
        """Return whether who asked may still ask."""
        calls = await self._storage.read(lambda connection: find_of_turn(connection, turn.id))
        author = next((each.author for each in calls), None)
        if author is None or author.id is None:
            return True
        message = InboundMessage("", author, is_private=not is_group)
        ruling = await self._options.access.judge(self._storage, message, context.context_keys, self._options.clock())
        return ruling.is_admitted


def _plan(transport: Transport, shown: Message, turn: Turn) -> Sequence[Payload]:
    """Return what shows a message; nothing if its transport shows none, or cannot."""
    try:
        return transport.plan(shown, turn.events)
    except Exception:
        logger.exception("approval.not_shown", extra={"turn": turn.id})
        return []


async def _is_of(stop: PendingControl, asker: Author | None, transport: Transport, keys: Mapping[str, str]) -> bool:
    """Return whether a stop is the asker's: by its author, or because the conversation is private."""
    try:
        message = await transport.peek(stop.event) if stop.event.raw else None
    except (ClaimLost, StorageUnavailable):
        raise
    except Exception:
        logger.exception("turn.stop_unreadable", extra={"event": stop.event.id})
        message = None
    author = None if message is None else message.author
    if author is None or asker is None or not person_name(author):
        return not transport.is_shared(keys)
    return person_name(author) == person_name(asker)


def resume_turn(
    connection: Connection, turn_id: int, context_id: int, step_id: int, made: Sequence[ToolCall], now: datetime
) -> bool:
    """Resume a waiting turn with its step, if every call is decided; return False if the turn is to end instead.

    Args:
        made: All calls of the step.

    Raises:
        TurnWaiting: something is not.
        ClaimLost: the turn does not wait any more.
    """
    if not lock_turn(connection, turn_id):
        raise ClaimLost(f"turn {turn_id} does not wait any more")
    expire_calls(connection, turn_id, now)
    pending = [each for each in find_of_turn(connection, turn_id) if each.is_open]
    if any(each.status is PendingStatus.WITHDRAWN for each in pending):
        return False
    if waiting := [each for each in pending if each.is_waiting]:
        raise waiting_for(turn_id, waiting, made)
    if not call_queries.has_started(connection, step_id):
        call_queries.write_started(connection, context_id, step_id, range(len(made)))
    kept = call_queries.read_kept(connection, step_id)  # of calls whose pause is over
    for each in pending:
        if each.call_index not in kept and (outcome := _outcome(each)) is not None:
            call_queries.write_ended(connection, step_id, each.call_index, outcome)
    for index, exchange in find_replied(pending).items():
        call_queries.write_kept(connection, step_id, index, exchange.state.get("kept"))
    reopen_turn(connection, turn_id, now)
    close_pending(connection, turn_id)
    return True


def find_replied(calls: Sequence[WaitingCall]) -> dict[int, ToolQuestions]:
    """Return what a person has answered to calls that asked something, by their place: the newest of each."""
    found: dict[int, ToolQuestions] = {}
    for each in calls:
        if each.exchange is not None and each.status is PendingStatus.DENIED:
            found[each.call_index] = each.exchange.ended(ReplyAction.DECLINE)
        elif each.exchange is not None and each.status is PendingStatus.HANDED_IN:
            found[each.call_index] = each.exchange
        elif each.exchange is not None and each.status is PendingStatus.EXPIRED and "kept" in each.exchange.state:
            found[each.call_index] = each.exchange.ended(ReplyAction.CANCEL)
    return found


def _outcome(call: WaitingCall) -> ToolOutcome | None:
    """Return what the model sees of a call that is not made, or of which nothing came; None for the others."""
    if call.status is PendingStatus.DENIED and call.kind is not PendingKind.QUESTION:
        return ToolOutcome(DENIED, error_type="Denied")
    if call.status is not PendingStatus.EXPIRED:
        return None
    if call.kind is PendingKind.QUESTION:
        return ToolOutcome(_NOT_ANSWERED, error_type="QuestionExpired")
    if call.kind is PendingKind.APPROVAL:
        return ToolOutcome(EXPIRED, error_type="ApprovalExpired")
    return ToolOutcome(_NOTHING_CAME, error_type="ResultExpired")


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
    if waiting := [each for each in pending if each.turn_id == newest.turn_id and each.is_waiting]:
        raise waiting_for(newest.turn_id, waiting, _made_in(context))


def _made_in(context: AgentContext) -> Sequence[ToolCall]:
    """Return the calls of the open step of a context."""
    step = None if context.open_step is None else context.open_step.item
    return () if step is None else step.get_value("tool_calls") or ()
