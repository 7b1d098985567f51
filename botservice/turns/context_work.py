"""Finding and doing the next work of a claimed context: sending messages, applying edits, running turns.

`due_contexts` finds the contexts that have something to do, and uses the same order.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from botservice.agent.isolation import may_be_one_message
from botservice.conversation.context import AgentContext
from botservice.conversation.queries import read_context_keys
from botservice.conversation.reminder import Reminder
from botservice.core.adapters import adopt
from botservice.core.errors import (
    BudgetExceeded,
    ClaimLost,
    CommandFailed,
    LLMError,
    RunInterrupted,
    StorageUnavailable,
    TurnGrew,
    TurnWaiting,
)
from botservice.core.states import TurnStatus
from botservice.people.budgets import used_up_text
from botservice.privacy.cleaning import clean_chat
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.telemetry.measuring import in_turn
from botservice.turns.agent_run import AgentRun
from botservice.turns.call_queries import find_due_turn
from botservice.turns.command_parsing import Commands
from botservice.turns.delivery_queries import find_fairest_delivery, find_next_delivery
from botservice.turns.due_contexts import put_off
from botservice.turns.edits_and_deletions import (
    Controls,
    DueChanges,
    PendingControl,
    find_controls,
    find_due,
    find_stale,
)
from botservice.turns.event_queries import GATHERING
from botservice.turns.listening import QUIET
from botservice.turns.merging_contexts import move_here
from botservice.turns.outbox import Outbox, SendResult, StoredStream
from botservice.turns.queries import find_kinds_of_work, find_next_turn, find_turn
from botservice.turns.question_parts import NewParts, QuestionParts
from botservice.turns.reminder_scheduler import ReminderScheduler
from botservice.turns.retry_policies import MAX_CUT_OFF_BEGINNINGS, SUSPICIOUS_BEGINNINGS, beginnings_not_yet
from botservice.turns.run_options import RunOptions
from botservice.turns.stops_and_edits import ControlEffects
from botservice.turns.suspended_turns import SuspendedTurns
from botservice.turns.transport import Live, NoTransport, Transport
from botservice.turns.turn import Delivery, Turn, is_due
from botservice.turns.turn_starter import TurnStarter
from botservice.turns.unanswered_turns import FailedTurns, end_refused

logger = logging.getLogger(__name__)

_CUT_OFF: Final = "it was cut off too often, or what it had done was forgotten"
_A_WHILE = timedelta(seconds=1)
_LONGEST_WAIT: Final = max(GATHERING, QUIET)

_NO_CONTROLS: Final = Controls()


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A message to send."""

    delivery: Delivery
    context_keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Stops, oldest first, in a context in which no turn runs."""

    stops: Sequence[PendingControl]


@dataclass(frozen=True, slots=True)
class Moved:
    """A conversation that goes on at the end of another one."""

    change: PendingControl


@dataclass(frozen=True, slots=True)
class QueuedCleaning:
    """Something that is forgotten and has to go from the records of a conversation."""


@dataclass(frozen=True, slots=True)
class StartedTurn:
    """A turn to begin, to begin again, or to attend to because it waits.

    Attributes:
        controls: What has not taken effect: the wish that it stop, and changes of messages that it may begin with.
        is_all: Whether its context has nothing else to do.
    """

    turn: Turn
    context: AgentContext
    controls: Controls
    is_all: bool = False

    def teller(self, transport: Transport) -> Transport:
        """Return what tells people why there is no answer: nobody, where nobody asked."""
        return NoTransport() if self.context.is_unasked else transport


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A turn whose conversation cannot be loaded.

    Attributes:
        reason: The name of the error.
    """

    turn: Turn
    reason: str


@dataclass(frozen=True, slots=True)
class NotDueYet:
    """Nothing may be done before a moment: the first task is not due, and the others come after it."""

    until: datetime


Controlled = Stopped | Moved | QueuedCleaning | DueChanges
Work = Controlled | PendingDelivery | Reminder | NewParts | StartedTurn | Unreadable | NotDueYet


@dataclass(slots=True)
class Running:
    """A turn that runs.

    Attributes:
        heard: The order key of the newest stop that was judged; at first the question's own.
    """

    run: AgentRun
    turn: Turn
    heard: int


class ContextWork:
    """Finds and does the work of contexts that the caller has claimed, one thing at a time in each.

    Attributes:
        runs: The turns that run, by context.
        outbox: Sends pending deliveries.
        reminding: What of reminders is due.
        is_closing: No turn begins any more; what runs goes on.
    """

    def __init__(
        self,
        storage: Storage,
        options: RunOptions,
        transports: Mapping[str, Transport],
        commands: Commands,
        most_sends: int,
        has_news: Callable[[int], bool] = lambda _: False,
    ) -> None:
        """Make one.

        Args:
            most_sends: How many messages may be on their way to one platform.
            has_news: Returns whether something has arrived for a context since its work was looked for.
        """
        self._has_news = has_news
        self._storage = storage
        self._options = options
        self._clock = options.clock
        self._transports = transports
        self._starter = TurnStarter(storage, options, commands)
        self.outbox = Outbox(storage, transports, options.clock, most_at_once=most_sends)
        self._failed_turns = FailedTurns(storage, options.clock)
        self._suspended = SuspendedTurns(storage, options)
        self._parts = QuestionParts(storage, options, transports, self._failed_turns)
        self._controls = ControlEffects(storage, options, transports, self._suspended)
        self.reminding = ReminderScheduler(storage, options, transports)
        self._decided: set[int] = set()
        self._born_at = time.monotonic()
        self.runs: dict[int, Running] = {}
        self.is_closing = False

    @property
    def beginnings_not_yet(self) -> int:
        """From how many beginnings on turns are left alone for now, because they may end a process that is so young."""
        return beginnings_not_yet(time.monotonic() - self._born_at)

    def expect(self, context_id: int) -> None:
        """Remember that calls of a waiting turn of a context may have been decided."""
        self._decided.add(context_id)

    async def find(self, claim: Claim, *, gives_way: bool) -> Work | None:
        """Return what a context has to do next; None if there is nothing, or all of it has to wait.

        Args:
            gives_way: Whether a turn may begin first where other people wait behind a long answer.
        """
        find = partial(self._find_next, context_id=claim.context_id, gives_way=gives_way)
        while True:
            work = await self._storage.read(find, is_short=True)
            if work is not None and not isinstance(work, NotDueYet):
                return work
            is_open = await self._options.access.is_idle(self._storage)
            if not is_open and await self._controls.turn_away_changes(claim):
                continue
            if work is not None and not self.is_closing:
                await self._put_off(work.until, claim)
            return None

    async def do(self, work: Work, claim: Claim) -> bool:
        """Do one thing; return whether something else may be there to be done now."""
        match work:
            case PendingDelivery(delivery, context_keys):
                return await self.outbox.send(context_keys, delivery, claim) is not SendResult.LATER
            case Stopped(stops):
                await self._controls.stop_all(claim, stops)
                self.expect(claim.context_id)
            case Moved(change):
                return await move_here(self._storage, claim, change, self._clock())
            case QueuedCleaning():
                await clean_chat(self._storage, claim.context_id, claim)
                self._storage.scrub_soon()
            case DueChanges():
                await self._controls.apply(work, claim)
            case Reminder():
                await self.reminding.fire(work, claim)
            case NewParts():
                await self._parts.join(work, claim)
            case StartedTurn(turn):
                with in_turn(turn.identity):
                    is_over = await self._work_on(turn, work, claim)
                return not (is_over and work.is_all)
            case Unreadable(turn, reason):
                with in_turn(turn.identity):
                    await self._failed_turns.try_later(turn, claim, self._transports[turn.transport], reason, None)
        return True

    async def _put_off(self, until: datetime, claim: Claim) -> None:
        """Put a context off until a moment, unless something new arrives."""
        now, context_id = self._clock(), claim.context_id
        await self._storage.write(lambda connection: put_off(connection, context_id, until, now), fence=claim)

    def _may_begin(self, turn: Turn) -> bool:
        may_end_processes = turn.attempts >= SUSPICIOUS_BEGINNINGS and turn.attempts >= self.beginnings_not_yet
        return not self.is_closing and not may_end_processes and turn.transport in self._transports

    async def _work_on(self, turn: Turn, work: StartedTurn, claim: Claim) -> bool:
        """Work on a turn; return whether it is answered, and all of its answer sent."""
        transport = self._transports[turn.transport]
        if turn.is_open:
            await self._starter.recall(turn, work.context, transport)
        try:
            if await self._is_ready(turn, work, claim, transport):
                return await self._run(turn, work, claim, transport)
        except TurnWaiting:
            logger.info("turn.waits")
        except TurnGrew:
            logger.info("turn.grew")  # it is read again, with what has come meanwhile
        except RunInterrupted:
            logger.info("turn.stopped")
        except BudgetExceeded as error:
            logger.info("turn.over_budget", extra={"scope": error.scope, "unit": error.unit})
            text = used_up_text(error.scope, error.ends_at, work.context.language, self._clock())
            await end_refused(self._storage, turn, claim, work.teller(transport), text, self._clock())
        except (LLMError, CommandFailed) as error:
            is_command = isinstance(error, CommandFailed)
            await self._failed_turns.give_up(
                turn,
                claim,
                work.teller(transport),
                str(error),
                work.context.language,
                is_command=is_command,
                is_refused=isinstance(error, LLMError) and may_be_one_message(error),
            )
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception as error:
            logger.exception("turn.failed")
            language, teller = work.context.language, work.teller(transport)
            await self._failed_turns.try_later(turn, claim, teller, type(error).__name__, language)
        return False

    async def _is_ready(self, turn: Turn, work: StartedTurn, claim: Claim, transport: Transport) -> bool:
        """Begin a turn, or attend to it if it waits; return whether the agent is to work on it now."""
        if turn.status is TurnStatus.WAITING:
            return await self._suspended.attend(turn, work.context, claim, transport)
        if turn.attempts >= MAX_CUT_OFF_BEGINNINGS:
            await self._failed_turns.give_up(turn, claim, transport, _CUT_OFF, work.context.language)
            return False
        if await self._starter.prepare(turn, work.context, work.controls, claim, transport):
            return True
        self.expect(claim.context_id)  # a command may have decided what another turn waits with
        return False

    async def _run(self, turn: Turn, work: StartedTurn, claim: Claim, transport: Transport) -> bool:
        """Answer a turn and send the first message of its answer; return whether that was all of it."""
        record = StoredStream(self._storage, turn, claim, self._clock)
        shown = None if work.context.is_unasked else transport.live(work.context.context_keys, turn.events, record)
        live = None if shown is None else adopt(Live, shown)
        run = AgentRun(
            self._options,
            work.context,
            turn,
            claim,
            plan_deliveries=lambda answer: transport.plan(answer, turn.events),
            has_buttons=lambda: bool(transport.capabilities.buttons),
            live=live,
            is_spoken=self._options.speaker is not None and transport.was_spoken(turn.events),
        )
        self.runs[claim.context_id] = Running(run, turn, turn.order_key)
        try:
            if self._has_news(claim.context_id):
                await self.look_for_parts(claim.context_id)
            if work.controls.stops and await self._is_stopped(turn, work):
                run.interrupt()  # it came before this process worked on the turn
            await run.finish()
            logger.info("turn.answered")
        finally:
            del self.runs[claim.context_id]
            if live is not None:
                await live.close()
        if run.begun is None or not self.outbox.may_send(turn.platform):
            return False
        result = await self.outbox.send(work.context.context_keys, run.begun, claim, has_begun=True)
        return result is SendResult.OVER and run.begun.is_all

    async def _is_stopped(self, turn: Turn, work: StartedTurn) -> bool:
        """Return whether a person who may has stopped a turn since its question was asked."""
        stops = work.controls.stops_after(turn.order_key)
        return await self._controls.find_newest(stops, work.context.context_keys) is not None

    async def stop(self, context_id: int) -> bool:
        """Stop the turn that runs in a context, if a person who may has said so; return whether one runs."""
        running = self.runs.get(context_id)
        if running is None:
            return False
        controls, keys = await self._controls.find(context_id)
        stops = controls.stops_after(running.heard)
        is_meant = await self._controls.find_newest(stops, keys) is not None
        if self.runs.get(context_id) is not running:
            return False  # it has ended meanwhile: the stop is about what is owed of its answer
        running.heard = max([running.heard, *(each.order_key for each in stops)])
        if is_meant:
            running.run.interrupt()
        return True

    async def look_for_parts(self, context_id: int) -> None:
        """Have the turn that runs in a context begin again if more of its question has come and nothing is shown."""
        running = self.runs.get(context_id)
        if running is None or not self._transports[running.turn.transport].has_parts:
            return
        if not running.run.may_begin_again or not await self._parts.have_come(running.turn):
            return
        if self.runs.get(context_id) is running:
            running.run.begin_again()

    def _find_next(self, connection: Connection, *, context_id: int, gives_way: bool) -> Work | None:
        """Return the next work: a stop first, then a message to send, a change, and a turn; None if there is none."""
        there = find_kinds_of_work(connection, context_id)
        delivery = find_next_delivery(connection, context_id, self._transports) if there.owes else None
        controls = find_controls(connection, context_id, self._transports) if there.control else _NO_CONTROLS
        turn = find_next_turn(connection, context_id, self._transports) if there.turn else None
        if controls.stops:
            return self._stop(connection, turn, controls)
        if controls.moves or controls.is_to_clean:
            return Moved(controls.moves[0]) if controls.moves else QueuedCleaning()
        is_ready = turn is not None and self._is_due(turn) and self._may_begin(turn)
        if delivery is not None:
            keys = read_context_keys(connection, context_id)
            is_for_many = not delivery.attempts and self._transports[delivery.transport].is_shared(keys)
            if not (is_for_many and gives_way and is_ready):
                return self._owe(connection, context_id, delivery, keys, is_for_many=is_for_many)
        found = self._find_due(connection, context_id, controls, turn, is_any_waiting=there.waiting is not None)
        if found is not None:
            return found
        is_all = (there.owes, there.control, there.waiting) == (None, None, None)
        if turn is None:
            return find_stale(controls, self._clock()) if controls.changes else None
        return self._find_turn(connection, turn, controls, is_all=is_all) if is_ready else self._wait_for(turn)

    def _find_due(
        self, connection: Connection, context_id: int, controls: Controls, turn: Turn | None, *, is_any_waiting: bool
    ) -> Work | None:
        """Return the work that goes before the next turn: a change, a turn that has waited, or a reminder."""
        changes = find_due(connection, context_id, controls) if controls.changes else None
        if changes is not None or (turn is not None and turn.status is not TurnStatus.QUEUED):
            return changes
        if is_any_waiting:
            waited = self._find_waited(connection, context_id, is_last=turn is None)
            if waited is not None:
                return self._claimed_turn(connection, waited, controls)
        elif self._decided:
            self._decided.discard(context_id)
        return self.reminding.find(connection, context_id) if context_id in self.reminding.due else None

    def _find_waited(self, connection: Connection, context_id: int, *, is_last: bool) -> Turn | None:
        """Return the waiting turn to attend to. It is looked for if a decision is expected, or last."""
        if not is_last and context_id not in self._decided:
            return None
        turn_id = find_due_turn(connection, context_id, self._transports, self._clock())
        turn = None if turn_id is None else find_turn(connection, context_id, turn_id)
        if turn is None or not self._may_begin(turn):
            self._decided.discard(context_id)
            return None
        return turn

    def _is_due(self, turn: Turn) -> bool:
        """Return whether a turn is due.

        One that has not begun gathers the parts of a message for a moment, or waits for what else is said. Where it is
        to wait longer, it was put off behind something that is gone.
        """
        now = self._clock()
        if turn.is_deferred and not turn.is_alone:
            return True
        return is_due(turn, now) or (turn.status is TurnStatus.QUEUED and turn.due_at > now + _LONGEST_WAIT)

    def _wait_for(self, turn: Turn) -> NotDueYet | None:
        """Return until when the work behind a running turn waits that may not go on here, or not yet."""
        if turn.status is TurnStatus.QUEUED:
            return None
        return NotDueYet(max(turn.due_at, self._clock() + _A_WHILE))

    def _stop(self, connection: Connection, turn: Turn | None, controls: Controls) -> Work | None:
        """Return the turn that a stop is about if it has begun, to be stopped as it goes on; else the stops."""
        if turn is None or turn.status is TurnStatus.QUEUED or not controls.stops_after(turn.order_key):
            return Stopped(controls.stops)
        return self._claimed_turn(connection, turn, controls) if self._may_begin(turn) else None

    def _owe(
        self, connection: Connection, context_id: int, first: Delivery, keys: Mapping[str, str], *, is_for_many: bool
    ) -> PendingDelivery | NotDueYet:
        """Return the message to send, as soon as it is due."""
        now = self._clock()
        fairest = find_fairest_delivery(connection, context_id, self._transports) if is_for_many else None
        delivery = fairest if fairest is not None and is_due(fairest, now) else first
        return PendingDelivery(delivery, keys) if is_due(delivery, now) else NotDueYet(delivery.due_at)

    def _find_turn(self, connection: Connection, turn: Turn, controls: Controls, *, is_all: bool) -> Work | None:
        """Return the next turn, or first what else its question has come as; None while more of that is to come."""
        begun = self._claimed_turn(connection, turn, controls)
        if not isinstance(begun, StartedTurn):
            return begun
        if turn.is_alone:
            return replace(begun, is_all=is_all)
        parts = self._parts.find(connection, turn, begun.context)
        if parts is None:
            return begun
        return parts if parts.context is not None or self._is_due(parts.parts[-1]) else None

    def _claimed_turn(self, connection: Connection, turn: Turn, controls: Controls) -> StartedTurn | Unreadable:
        try:
            context = AgentContext.read(self._storage, connection, turn.context_id, turn.id, with_steps=turn.is_open)
        except SQLAlchemyError:  # the database fails, not what is stored of this conversation
            raise
        except Exception as error:
            logger.exception("turn.unreadable_context", extra={"context": turn.context_id, "turn": turn.id})
            return Unreadable(turn, type(error).__name__)
        return StartedTurn(turn, context, controls)
