"""Reminders that are due: each becomes a turn, once, whatever is killed in between."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from botservice.agent.agent import FinishAction
from botservice.conversation.context import AgentContext
from botservice.conversation.pausing import read_pause
from botservice.conversation.queries import note_untrusted, read_context_keys, read_is_shared
from botservice.conversation.reminder import Reminder, announce, ask, explain, say_late
from botservice.conversation.reminder_queries import find_due, give_up_reminder, take_reminder
from botservice.conversation.step_records import apply_all
from botservice.conversation.steps import FinalAnswerStep, TaskStep
from botservice.core.errors import BotServiceError, ClaimLost, StorageUnavailable
from botservice.core.messages import InboundMessage, Message, Role
from botservice.core.states import Outcome, TurnStatus
from botservice.history.queries import insert_message
from botservice.people.budgets import Standing
from botservice.people.usage import Payer
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.turns.answer_message import new_answer, preview
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.queries import finish_turn, insert_turn
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Transport
from botservice.turns.turn import Turn
from botservice.turns.turn_messages import begin_task

logger = logging.getLogger(__name__)

_LOOK_AGAIN: Final = timedelta(seconds=15)  # so long after a pause a reminder may come


class _NotDueError(BotServiceError):
    """A reminder was cancelled or sent since it was read."""


class ReminderScheduler:
    """Sends what is due in contexts that the caller has claimed.

    Attributes:
        due: The contexts in which something is due, with the moment since which it may be taken up.
    """

    def __init__(self, storage: Storage, options: RunOptions, transports: Mapping[str, Transport]) -> None:
        self._storage = storage
        self._options = options
        self._transports = transports
        self.due: dict[int, datetime] = {}

    def expect(self, context_ids: Iterable[int]) -> list[int]:
        """Remember contexts with due reminders, and return those that need not wait for a rate limit."""
        now = self._options.clock()
        self.due = {context_id: self.due.get(context_id, now) for context_id in context_ids}
        return [context_id for context_id, since in self.due.items() if since <= now]

    def find(self, connection: Connection, context_id: int) -> Reminder | None:
        """Return the reminder of a context that has been due for longest. One query, only where one is expected."""
        now, since = self._options.clock(), self.due.get(context_id)
        return None if since is None or since > now else find_due(connection, context_id, now, self._transports)

    async def fire(self, reminder: Reminder, claim: Claim) -> None:
        """Make a turn of a due reminder; it waits for the end of a pause, and of its author's rate limit."""
        try:
            if await self._is_paused(reminder):
                self.due[claim.context_id] = self._options.clock() + _LOOK_AGAIN
                return
            if not await self._is_welcome(reminder):
                await self._give_up(reminder, claim)
                return
            beyond = await self._find_limit(reminder) if reminder.is_task else None
            if beyond is not None:
                self.due[claim.context_id] = beyond.ends_at
                return
            await (self._ask if reminder.is_task else self._tell)(reminder, claim)
            logger.info("reminder.fired", extra={"reminder": reminder.id, "context": claim.context_id})
        except _NotDueError:
            logger.info("reminder.gone", extra={"reminder": reminder.id})
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception:
            # Transports are foreign code: what one of them cannot show must not hold the chat up for ever.
            logger.exception("reminder.failed", extra={"reminder": reminder.id})
            await self._give_up(reminder, claim)

    async def _is_paused(self, reminder: Reminder) -> bool:
        now = self._options.clock()
        return await self._storage.read(lambda connection: read_pause(connection, reminder.context_id, now)) is not None

    async def _is_welcome(self, reminder: Reminder) -> bool:
        """Return whether who asked for a reminder still has access, there where it would be said."""

        def read(connection: Connection) -> tuple[Mapping[str, str], bool]:
            return read_context_keys(connection, reminder.context_id), read_is_shared(connection, reminder.context_id)

        keys, has_others = await self._storage.read(read)
        message = InboundMessage(reminder.text, reminder.author, is_private=not has_others)
        ruling = await self._options.access.judge(self._storage, message, keys, self._options.clock())
        return ruling.is_admitted

    async def _find_limit(self, reminder: Reminder) -> Standing | None:
        """Count a task as a message of its author; return the rate limit that it exceeds, or None."""
        storage, budgets = self._storage, self._options.budgets
        if not budgets.has_rates:
            return None
        keys = await storage.read(lambda connection: read_context_keys(connection, reminder.context_id))
        payer = Payer.of(reminder.context_id, keys, reminder.author)
        return await budgets.count_message(storage, payer, self._options.clock())

    async def _give_up(self, reminder: Reminder, claim: Claim) -> None:
        now = self._options.clock()
        await self._storage.write(lambda connection: give_up_reminder(connection, reminder, now), fence=claim)

    async def _ask(self, reminder: Reminder, claim: Claim) -> None:
        """Begin a turn in which the agent is asked what the reminder says; a schedule that is late says so first."""
        now = self._options.clock()
        context = await self._load(reminder)
        message = InboundMessage(ask(reminder, now), reminder.author, own_text="")  # a model wrote it
        plan = self._transports[reminder.transport].plan
        remarks = _remarks(reminder, now) if reminder.rule is not None else []
        late = [each for remark in remarks for each in plan(remark, ())]
        take, transport = _taking(reminder, now), reminder.transport
        await begin_task(context, claim, message, self._options, transport=transport, also=take, told_first=late)

    async def _tell(self, reminder: Reminder, claim: Claim) -> None:
        """Store the whole turn of a reminder: its message, the reason, and the delivery."""
        now = self._options.clock()
        context = await self._load(reminder)
        said = announce(reminder)
        new = await new_answer(0, FinishAction(said), now)
        plan = self._transports[reminder.transport].plan
        shown = preview(new, language=reminder.language)
        payloads = [each for message in (shown, *_remarks(reminder, now)) for each in plan(message, ())]
        context.begin_turn("", TaskStep(explain(reminder)), keeps_steps=False)
        context.memory.steps.append(FinalAnswerStep(said))
        changes = context.records.changes(context.memory.steps)
        take = _taking(reminder, now)

        def write(connection: Connection) -> None:
            take(connection)
            turn_id = insert_turn(connection, context.id, reminder.transport, now, status=TurnStatus.RUNNING)
            turn = Turn(turn_id, context.id, TurnStatus.RUNNING, reminder.transport, 1, now)
            insert_message(connection, context.id, replace(new, answers_turn_id=turn_id))
            note_untrusted(connection, context.id)  # a model wrote it earlier, of whatever it had read
            apply_all(connection, [(context.records, changes, turn_id)])
            write_deliveries(connection, turn, payloads, now)
            finish_turn(connection, turn_id, now, Outcome.ANSWERED)

        await self._storage.write(write, fence=claim, sort_key=(context.id,))

    async def _load(self, reminder: Reminder) -> AgentContext:
        return await self._storage.read(
            lambda connection: AgentContext.read(self._storage, connection, reminder.context_id, with_steps=False)
        )


def _remarks(reminder: Reminder, now: datetime) -> list[Message]:
    """Return what stands below a reminder: of one that comes late, the time for which it was meant."""
    if not reminder.is_late(now):
        return []
    said, due = say_late(reminder, now)
    note = Message(None, Role.SYSTEM, said.plain, created_at=now, language=reminder.language, moments=(due,))
    return [replace(note, formatted=said)]


def _taking(reminder: Reminder, now: datetime) -> Callable[[Connection], None]:
    """Return the write that takes a reminder in the transaction of its turn, or fails if it is not due any more."""

    def take(connection: Connection) -> None:
        if not take_reminder(connection, reminder, now):
            raise _NotDueError(f"reminder {reminder.id} is not due any more")

    return take
