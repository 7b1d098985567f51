"""The suspension of a turn: its calls, the messages about them and its new state, all in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botservice.agent.tool import Later, Tool
from botservice.agent.tool_questions import Paused, QuestionsAsked
from botservice.conversation.context import AgentContext
from botservice.conversation.queries import read_is_shared
from botservice.conversation.reminder_queries import find_time_zone
from botservice.conversation.time_zones import known_zone
from botservice.core.errors import ApprovalPending, ResultPending, TurnWaiting
from botservice.core.messages import Author, Message, Role, ToolCall, storable
from botservice.core.states import PendingKind, PendingStatus
from botservice.people.queries import list_names
from botservice.storage.database import Connection
from botservice.texts.formatted import code, say
from botservice.turns.approval_message import MOST_MESSAGES, ApprovalRequest, show_requests
from botservice.turns.call_queries import delete_pauses, find_of_turn, insert_pending, note_told, set_delivery
from botservice.turns.delivery_queries import owe_in_place, write_deliveries
from botservice.turns.queries import suspend_turn
from botservice.turns.tool_question_message import show_tool_question
from botservice.turns.transport import DeliveryPlan
from botservice.turns.turn import Turn, set_due
from botservice.turns.waiting_calls import PendingCall, WaitingCall


@dataclass(frozen=True, slots=True)
class Suspension:
    """The suspension of a turn that has to wait.

    Attributes:
        plan: Makes messages visible.
        has_buttons: Whether people see buttons there.
    """

    turn: Turn
    context: AgentContext
    plan: DeliveryPlan
    has_buttons: bool = True

    def begin(
        self,
        connection: Connection,
        step_id: int,
        made: Sequence[ToolCall],
        waiting: Mapping[int, Later | None],
        tools: Mapping[str, Tool],
        now: datetime,
        lasts: timedelta,
    ) -> TurnWaiting:
        """Suspend the turn with calls of a step, and ask the person about them, or tell them that results come later.

        Args:
            made: All calls of the step.
            waiting: What calls wait for, by their index: a result, answers of the person, or None for an approval.
            lasts: How long a person has to decide or to answer.
        """
        for index, later in waiting.items():
            if isinstance(later, Paused):
                delete_pauses(connection, step_id, index)
            values = self._describe(made[index], later, tools.get(made[index].name), now, lasts)
            insert_pending(connection, {"step_id": step_id, "call_index": index, **values})
        pending = [each for each in find_of_turn(connection, self.turn.id) if each.is_open]
        asked = [each for each in pending if each.kind is not PendingKind.LATER]
        are_together = len(asked) > MOST_MESSAGES and all(each.kind is PendingKind.APPROVAL for each in asked)
        for about in [asked] if are_together else [[each] for each in asked]:
            self._ask(connection, about, made, now)
        for index, later in waiting.items():
            if later is not None and later.is_told:
                write_deliveries(connection, self.turn, self.plan(self._write_note(made[index], later, now)), now)
        question = self.context.chat_history.last_user_message
        suspend_turn(connection, self.turn.id, None if question is None else question.id)
        return waiting_for(self.turn.id, pending, made)

    def update_messages(
        self, connection: Connection, calls: Sequence[WaitingCall], made: Sequence[ToolCall], now: datetime
    ) -> None:
        """Say what was decided since in the messages that asked, and ask the next of what tools want to know."""
        changed = [each for each in calls if not each.is_told]
        for each in changed:
            if each.is_waiting:
                self._ask(connection, [each], made, now)
        # An answer is seen by itself.
        over = [each for each in changed if not each.is_waiting and each.status is not PendingStatus.HANDED_IN]
        for delivery_id in {each.delivery_id for each in over if each.is_open and each.delivery_id is not None}:
            about = [each for each in calls if each.is_open and each.delivery_id == delivery_id]
            if payloads := self.plan(self._write(connection, about, made, now)):
                owe_in_place(connection, self.turn, delivery_id, payloads[-1], now)
        note_told(connection, [each.id for each in changed], now)

    def _describe(
        self, call: ToolCall, later: Later | None, tool: Tool | None, now: datetime, lasts: timedelta
    ) -> dict[str, Any]:
        """Return the columns of a call that waits."""
        asks = later if isinstance(later, QuestionsAsked) else None
        result = later if asks is None else None
        until = now + (lasts if result is None else timedelta(hours=result.hours))
        author = self.context.asker or Author()
        return {
            "context_id": self.turn.context_id,
            "turn_id": self.turn.id,
            "transport": self.turn.transport,
            "call_id": storable(call.id),
            "tool": storable(call.name),
            "tool_digest": tool.digest if result is None and tool is not None else None,
            "name": None if result is None else storable(result.name),
            "kind": (PendingKind.APPROVAL if later is None else PendingKind.LATER).value,
            "question": None if asks is None else asks.exchange.to_json(),
            "status": PendingStatus.WAITING.value,
            "is_open": True,
            "author_platform": author.platform,
            "author_id": author.id,
            "author_name": author.name,
            "created_at": now,
            "expires_at": until,
            "told_at": None if asks is None else now,
            **set_due(until, now),
        }

    def _ask(
        self, connection: Connection, about: Sequence[WaitingCall], made: Sequence[ToolCall], now: datetime
    ) -> None:
        """Ask the person about calls in one message."""
        if sent := write_deliveries(connection, self.turn, self.plan(self._write(connection, about, made, now)), now):
            set_delivery(connection, [each.id for each in about], sent[-1].id)

    def _write(
        self, connection: Connection, about: Sequence[WaitingCall], made: Sequence[ToolCall], now: datetime
    ) -> Message:
        """Write the message about calls as they are now."""
        first, language = about[0], self.context.language
        zone = known_zone(find_time_zone(connection, self.context.id, first.author))
        if first.exchange is not None:
            return show_tool_question(
                first,
                first.exchange,
                language,
                now,
                is_shared=read_is_shared(connection, self.context.id),
                has_room_for_buttons=self.has_buttons,
                zone=zone,
            )
        names = list_names(connection, [each.decided_by for each in about if each.decided_by is not None])
        requests = [ApprovalRequest(each, each.arguments_in(made), names.get(each.decided_by or 0)) for each in about]
        return show_requests(requests, language, now, has_buttons=self.has_buttons, zone=zone)

    def _write_note(self, call: ToolCall, later: Later, now: datetime) -> Message:
        """Write the message that a result comes later."""
        waits = None if later.note else say("later.waits", self.context.language, tool=code(call.name))
        note = storable(later.note or "") if waits is None else waits.plain
        return Message(None, Role.ASSISTANT, note, created_at=now, language=self.context.language, formatted=waits)


def waiting_for(turn_id: int, waiting: Sequence[WaitingCall], made: Sequence[ToolCall]) -> TurnWaiting:
    """Return the error that tells a program what a turn waits for."""
    calls = [PendingCall(each.name or each.call_id, each.tool, each.arguments_in(made), each.id) for each in waiting]
    if waiting[0].kind is PendingKind.APPROVAL:
        named = ", ".join(f"{each.name} ({each.number})" for each in calls)
        how = "service.decide(context, call.number, allow=True or False)"
        return ApprovalPending(f"turn {turn_id} awaits approval of {named}: {how}", turn_id=turn_id, calls=calls)
    named = ", ".join(f"{each.name} ({each.id})" for each in calls)
    message = f"turn {turn_id} waits for the result of {named}: service.hand_in(context, call.id, result)"
    return ResultPending(message, turn_id=turn_id, calls=calls)
