"""Suspending a turn: its calls, the messages that ask about them and its new state, all in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botservice.agent.tool import Later, Tool
from botservice.agent.tool_questions import QuestionsAsked, ToolQuestions
from botservice.conversation.context import AgentContext
from botservice.conversation.queries import read_is_shared
from botservice.conversation.reminder_queries import find_time_zone
from botservice.conversation.time_zones import known_zone
from botservice.core.errors import ApprovalPending, ResultPending, TurnWaiting
from botservice.core.messages import Author, Message, Role, ToolCall, storable
from botservice.core.states import PendingKind, PendingStatus
from botservice.storage.database import Connection
from botservice.texts.formatted import code, say
from botservice.turns.approval_message import ApprovalRequest, group, show_question
from botservice.turns.call_queries import insert_pending, set_delivery, suspend_turn
from botservice.turns.delivery_queries import owe
from botservice.turns.expired_approvals import expire_at
from botservice.turns.grant_queries import is_named
from botservice.turns.tool_question_message import ShownQuestion, show_tool_question
from botservice.turns.transport import Payload
from botservice.turns.turn import Turn
from botservice.turns.waiting_calls import PendingCall

Plan = Callable[[Message], Sequence[Payload]]


@dataclass(frozen=True, slots=True)
class Suspension:
    """The suspension of a turn that has to wait.

    Attributes:
        plan: Makes messages visible.
        has_buttons: Whether people see buttons there.
    """

    turn: Turn
    context: AgentContext
    plan: Plan
    has_buttons: bool = True

    def ask(
        self,
        connection: Connection,
        step_id: int,
        calls: Mapping[int, ToolCall],
        tools: Mapping[str, Tool],
        now: datetime,
        lasts: timedelta,
    ) -> ApprovalPending:
        """Suspend the turn with calls, by their index in the step, and ask for a decision about them."""
        values = {"kind": PendingKind.APPROVAL.value, **expire_at(now + lasts, now)}
        numbers = {
            index: self._insert(
                connection, step_id, index, call, {**values, "tool_digest": tools[call.name].digest}, now
            )
            for index, call in calls.items()
        }
        asked = [
            ApprovalRequest(
                numbers[index],
                call.name,
                call.arguments,
                PendingStatus.WAITING,
                self.context.asker,
                now + lasts,
                is_named(self.context.asker),
            )
            for index, call in calls.items()
        ]
        zone = known_zone(find_time_zone(connection, self.context.id, self.context.asker))
        for places in group(len(asked)):
            chosen = [asked[place] for place in places]
            shown = show_question(chosen, self.context.language, now, has_buttons=self.has_buttons, zone=zone)
            sent = owe(connection, self.turn, self.plan(shown), now)
            if sent:
                set_delivery(connection, [each.number for each in chosen], sent[-1].id)
        self._suspend(connection)
        pending = [PendingCall(call.id, call.name, call.arguments, numbers[index]) for index, call in calls.items()]
        return approval_pending(self.turn.id, pending)

    def expect(
        self,
        connection: Connection,
        step_id: int,
        calls: Mapping[int, tuple[ToolCall, Later]],
        digests: Mapping[int, str],
        now: datetime,
        lasts: timedelta,
    ) -> ResultPending:
        """Suspend the turn until results are handed in, and tell the person so; or ask them what tools want to know.

        Args:
            digests: Of the tools that ask, by the call's index.
            lasts: How long a person has to answer.
        """
        pending = []
        for index, (call, later) in calls.items():
            if isinstance(later, QuestionsAsked):
                number = self._ask_for(connection, step_id, index, call, later.exchange, digests.get(index), now, lasts)
                pending.append(PendingCall(call.id, call.name, call.arguments, number))
                continue
            until = now + timedelta(hours=later.hours)
            values = {"kind": PendingKind.LATER.value, **expire_at(until, now)}
            values["name"] = storable(later.name)
            number = self._insert(connection, step_id, index, call, values, now)
            pending.append(PendingCall(later.name, call.name, call.arguments, number))
            waits = None if later.note else say("later.waits", self.context.language, tool=code(call.name))
            note = storable(later.note or "") if waits is None else waits.plain
            told = Message(None, Role.ASSISTANT, note, created_at=now, language=self.context.language, formatted=waits)
            owe(connection, self.turn, self.plan(told), now)
        self._suspend(connection)
        return result_pending(self.turn.id, pending)

    def _ask_for(
        self,
        connection: Connection,
        step_id: int,
        index: int,
        call: ToolCall,
        exchange: ToolQuestions,
        digest: str | None,
        now: datetime,
        lasts: timedelta,
    ) -> int:
        """Store what a tool asks, and ask the person the first of it."""
        until, asker = now + lasts, self.context.asker
        values = {"kind": PendingKind.LATER.value, **expire_at(until, now)}
        values |= {"question": exchange.to_json(), "tool_digest": digest, "told_at": now}
        number = self._insert(connection, step_id, index, call, values, now)
        shown = show_tool_question(
            ShownQuestion(number, call.name, exchange, asker, until, read_is_shared(connection, self.context.id)),
            self.context.language,
            now,
            has_room_for_buttons=self.has_buttons,
            zone=known_zone(find_time_zone(connection, self.context.id, asker)),
        )
        if sent := owe(connection, self.turn, self.plan(shown), now):
            set_delivery(connection, [number], sent[-1].id)
        return number

    def _insert(
        self, connection: Connection, step_id: int, index: int, call: ToolCall, values: Mapping[str, Any], now: datetime
    ) -> int:
        author = self.context.asker or Author()
        of_call = {"step_id": step_id, "call_index": index, "call_id": storable(call.id), "tool": storable(call.name)}
        of_author = {"author_platform": author.platform, "author_id": author.id, "author_name": author.name}
        of_turn = {"context_id": self.turn.context_id, "turn_id": self.turn.id, "transport": self.turn.transport}
        state = {
            "name": None,
            "tool_digest": None,
            "status": PendingStatus.WAITING.value,
            "created_at": now,
            "is_open": True,
        }
        return insert_pending(connection, {**of_turn, **of_call, **of_author, **state, **values})

    def _suspend(self, connection: Connection) -> None:
        question = self.context.chat_history.last_user_message
        suspend_turn(connection, self.turn.id, None if question is None else question.id)


def approval_pending(turn_id: int, calls: Sequence[PendingCall]) -> ApprovalPending:
    """Return the text that says that calls wait for a decision."""
    named = ", ".join(f"{each.name} ({each.number})" for each in calls)
    how = "service.decide(context, call.number, allow=True or False)"
    message = f"turn {turn_id} awaits approval of {named}: {how}"
    return ApprovalPending(message, turn_id=turn_id, calls=calls)


def result_pending(turn_id: int, calls: Sequence[PendingCall]) -> ResultPending:
    """Return what says that results come later."""
    named = ", ".join(f"{each.name} ({each.id})" for each in calls)
    message = f"turn {turn_id} waits for the result of {named}: service.hand_in(context, call.id, result)"
    return ResultPending(message, turn_id=turn_id, calls=calls)


def waiting_of(turn_id: int, calls: Sequence[PendingCall], kind: PendingKind) -> TurnWaiting:
    """Return what says that a turn waits, for whichever of the two."""
    return (approval_pending if kind is PendingKind.APPROVAL else result_pending)(turn_id, calls)
