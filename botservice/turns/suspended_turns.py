"""Attending to waiting turns: what was decided is shown in the message that asked, and expired calls end."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from botservice.conversation.context import AgentContext
from botservice.conversation.queries import read_context_keys, read_is_shared
from botservice.conversation.reminder_queries import find_time_zone
from botservice.conversation.time_zones import known_zone
from botservice.core.errors import ClaimLost, StorageUnavailable
from botservice.core.messages import Author, InboundMessage, Message, ToolCall
from botservice.core.states import PendingKind, PendingStatus
from botservice.people.names import person_name
from botservice.people.queries import list_names
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.turns.approval_message import ApprovalRequest, show_question
from botservice.turns.call_queries import (
    find_of_turn,
    find_open,
    lock_turn,
    note_told,
    put_back,
    set_delivery,
    withdraw_turn,
)
from botservice.turns.delivery_queries import owe, owe_in_place
from botservice.turns.edits_and_deletions import PendingControl
from botservice.turns.expired_approvals import expire
from botservice.turns.grant_queries import is_named
from botservice.turns.run_options import RunOptions
from botservice.turns.stored_turns import find_turn
from botservice.turns.tool_question_message import ShownQuestion, show_tool_question
from botservice.turns.transport import Payload, Transport
from botservice.turns.turn import Turn
from botservice.turns.waiting_calls import WaitingCall

logger = logging.getLogger(__name__)


class SuspendedTurns:
    """Sees to the turns that wait of contexts that the caller has claimed."""

    def __init__(self, storage: Storage, options: RunOptions) -> None:
        self._storage = storage
        self._options = options

    async def attend(self, turn: Turn, context: AgentContext, claim: Claim, transport: Transport) -> bool:
        """Show what was decided where it was asked; return whether nothing is undecided any more."""
        is_welcome = await self._is_welcome(turn, context, is_group=transport.is_shared(context.context_keys))
        now = self._options.clock()

        def see_to(connection: Connection) -> bool:
            if not lock_turn(connection, turn.id):
                return False
            if not is_welcome:
                withdraw_turn(connection, turn.id, now)
            expire(connection, find_of_turn(connection, turn.id), now)
            calls = find_of_turn(connection, turn.id)
            self._tell(connection, turn, context, calls, transport, now)
            waiting = [each for each in calls if each.is_waiting]
            self._ask_on(connection, turn, context, calls, transport, now)
            if waiting:
                put_back(connection, [each for each in calls if each.is_open], now)
            return not waiting

        return await self._storage.write(see_to, fence=claim)

    async def find_stopped(
        self, context_id: int, stops: Sequence[PendingControl], transports: Mapping[str, Transport]
    ) -> list[int]:
        """Return the turns that wait and that stops are about: begun before, by who says stop or who alone is there."""
        if not stops:
            return []
        pending, keys = await self._storage.read(
            lambda connection: (find_open(connection, context_id), read_context_keys(connection, context_id))
        )
        if not pending:
            return []
        found: list[int] = []
        for turn_id in dict.fromkeys(each.turn_id for each in pending):
            turn = await self._storage.read(lambda connection, at=turn_id: find_turn(connection, context_id, at))  # type: ignore[misc]  # a default
            asker = next(each.author for each in pending if each.turn_id == turn_id)
            for stop in stops:
                transport = transports.get(stop.transport)
                if turn is None or transport is None or stop.order_key <= turn.order_key:
                    continue
                if await _is_of(stop, asker, transport, keys):
                    found.append(turn_id)
                    break
        return found

    def _tell(
        self,
        connection: Connection,
        turn: Turn,
        context: AgentContext,
        calls: Sequence[WaitingCall],
        transport: Transport,
        now: datetime,
    ) -> None:
        """Update the messages that asked with what was decided since."""
        calls = [each for each in calls if each.kind is not PendingKind.QUESTION]
        changed = {each.delivery_id for each in calls if each.decided_at is not None and not each.is_told}
        names = _read_names(connection, calls)
        step = None if context.open_step is None else context.open_step.item
        made: Sequence[ToolCall] = () if step is None else step.get_value("tool_calls") or ()
        for delivery_id in changed - {None}:
            about = [each for each in calls if each.delivery_id == delivery_id and each.is_open]
            if not about:
                continue
            asked, has_buttons = [_asked(each, made, names) for each in about], bool(transport.capabilities.buttons)
            zone = known_zone(find_time_zone(connection, context.id, asked[0].author))
            shown = show_question(asked, context.language, now, has_buttons=has_buttons, zone=zone)
            payloads = _plan(transport, shown, turn)
            if payloads and delivery_id is not None:
                owe_in_place(connection, turn, delivery_id, payloads[-1], now)
        told = [each.id for each in calls if each.decided_at is not None and not each.is_told]
        note_told(connection, told, now)

    def _ask_on(
        self,
        connection: Connection,
        turn: Turn,
        context: AgentContext,
        calls: Sequence[WaitingCall],
        transport: Transport,
        now: datetime,
    ) -> None:
        """Ask the next of what tools want to know, and say in the message that asked what has become of it."""
        changed = [each for each in calls if each.exchange is not None and each.is_open and not each.is_told]
        for call in changed:
            assert call.exchange is not None, "it was looked for"  # noqa: S101 - an invariant
            shown = show_tool_question(
                ShownQuestion(
                    call.id,
                    call.tool,
                    call.exchange,
                    call.author,
                    call.expires_at,
                    read_is_shared(connection, context.id),
                    call.status,
                ),
                context.language,
                now,
                has_room_for_buttons=bool(transport.capabilities.buttons),
                zone=known_zone(find_time_zone(connection, context.id, call.author)),
            )
            payloads = _plan(transport, shown, turn)
            if call.is_waiting and payloads:
                set_delivery(connection, [call.id], owe(connection, turn, payloads, now)[-1].id)
            elif call.status is not PendingStatus.HANDED_IN and call.delivery_id is not None and payloads:
                owe_in_place(connection, turn, call.delivery_id, payloads[-1], now)  # an answer is seen by itself
        note_told(connection, [each.id for each in changed], now)

    async def _is_welcome(self, turn: Turn, context: AgentContext, *, is_group: bool) -> bool:
        """Return whether who asked may still ask."""
        access = self._options.access
        if await access.is_idle(self._storage):
            return True
        calls = await self._storage.read(lambda connection: find_of_turn(connection, turn.id))
        author = next((each.author for each in calls), None)
        if author is None or author.id is None:
            return True
        message = InboundMessage("", author, is_private=not is_group)
        ruling = await access.judge(self._storage, message, context.context_keys, self._options.clock())
        return ruling.is_admitted


def _asked(call: WaitingCall, made: Sequence[ToolCall], names: Mapping[int, str | None]) -> ApprovalRequest:
    is_known = call.call_index < len(made)
    asker = None if call.author is None else call.author.name
    decider = None if call.decided_by is None else names.get(call.decided_by)
    return ApprovalRequest(
        call.id,
        call.tool,
        made[call.call_index].arguments if is_known else {},
        call.status,
        call.author,
        call.expires_at,
        is_named(call.author),
        decider if decider != asker else None,
    )


def _read_names(connection: Connection, calls: Sequence[WaitingCall]) -> dict[int, str | None]:
    ids = [each.decided_by for each in calls if each.decided_by is not None]
    return list_names(connection, ids)


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
