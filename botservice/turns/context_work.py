"""Doing the next work of a claimed context: sending messages, applying edits, running turns."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from botservice.agent.refused_content import may_be_one_message
from botservice.conversation.reminder import Reminder
from botservice.core.argument_checks import adopt
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
from botservice.storage.database import Storage
from botservice.telemetry.instrumentation import in_turn
from botservice.turns.agent_run import AgentRun
from botservice.turns.backlog_queries import put_off
from botservice.turns.commands import Commands
from botservice.turns.control_effects import ControlEffects
from botservice.turns.edits_and_deletions import DueChanges
from botservice.turns.grouped_messages import NewParts, QuestionParts
from botservice.turns.next_work import (
    Moved,
    NextWork,
    NotDueYet,
    PendingDelivery,
    QueuedCleaning,
    StartedTurn,
    Stopped,
    Unreadable,
    Work,
)
from botservice.turns.outbox import Outbox, SendResult, StoredStream
from botservice.turns.reminder_scheduler import ReminderScheduler
from botservice.turns.resuming import SuspendedTurns
from botservice.turns.retry_policies import MAX_CUT_OFF_BEGINNINGS
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Live, Transport
from botservice.turns.turn import Turn
from botservice.turns.turn_starter import TurnStarter
from botservice.turns.unanswered_turns import FailedTurns, end_refused

logger = logging.getLogger(__name__)

_CUT_OFF: Final = "it was cut off too often, or what it had done was forgotten"


@dataclass(slots=True)
class Running:
    """A turn that runs.

    Attributes:
        received: The order key of the newest stop that was judged; at first the question's own.
    """

    run: AgentRun
    turn: Turn
    received: int


class ContextWork:
    """Finds and does the work of contexts that the caller has claimed, one thing at a time in each.

    Attributes:
        runs: The turns that run, by context.
        outbox: Sends pending deliveries.
        reminding: What of reminders is due.
        next: Finds what a context has to do next.
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
        self._commands = commands
        self.outbox = Outbox(storage, transports, options.clock, most_at_once=most_sends)
        self._failed_turns = FailedTurns(storage, options.clock)
        self._suspended = SuspendedTurns(storage, options)
        self._parts = QuestionParts(storage, options, transports, self._failed_turns)
        self._controls = ControlEffects(storage, options, transports, self._suspended)
        self.reminding = ReminderScheduler(storage, options, transports)
        self.next = NextWork(storage, options, transports, self._parts, self.reminding)
        self.runs: dict[int, Running] = {}

    async def find(self, claim: Claim, *, gives_way: bool) -> Work | None:
        """Return what a context has to do next; None if there is nothing, or all of it has to wait.

        Args:
            gives_way: Whether a turn may begin first where other people wait behind a long answer.
        """
        find = partial(self.next.find, context_id=claim.context_id, gives_way=gives_way)
        while True:
            work = await self._storage.read(find)
            if work is not None and not isinstance(work, NotDueYet):
                return work
            if await self._controls.turn_away_changes(claim):
                continue
            if work is not None and not self.next.is_closing:
                await self._put_off(work.until, claim)
            return None

    async def do(self, work: Work, claim: Claim) -> bool:
        """Do one thing; return whether something else may be there to be done now."""
        match work:
            case PendingDelivery(delivery, context_keys):
                return await self.outbox.send(context_keys, delivery, claim) is not SendResult.LATER
            case Stopped(stops):
                await self._controls.stop_all(claim, stops)
                self.next.expect(claim.context_id)
            case Moved(change):
                return await self._controls.move(claim, change)
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
                    is_over = await self._work_on(work, claim)
                return not (is_over and work.is_all)
            case Unreadable(turn, reason):
                with in_turn(turn.identity):
                    await self._failed_turns.try_later(turn, claim, self._transports[turn.transport], reason, None)
        return True

    async def _put_off(self, until: datetime, claim: Claim) -> None:
        """Put a context off until a moment, unless something new arrives."""
        now, context_id = self._clock(), claim.context_id
        await self._storage.write(lambda connection: put_off(connection, context_id, until, now), fence=claim)

    async def _work_on(self, work: StartedTurn, claim: Claim) -> bool:
        """Work on a turn; return whether it is answered, and all of its answer sent."""
        turn, transport = work.turn, self._transports[work.turn.transport]
        starter = TurnStarter(self._options, self._commands, work, claim, transport)
        if turn.has_begun:
            await starter.recall()
        try:
            if await self._is_ready(work, claim, transport, starter):
                return await self._run(work, claim, transport)
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

    async def _is_ready(self, work: StartedTurn, claim: Claim, transport: Transport, starter: TurnStarter) -> bool:
        """Begin a turn, or attend to it if it waits; return whether the agent is to work on it now."""
        turn = work.turn
        if turn.status is TurnStatus.WAITING:
            return await self._suspended.attend(turn, work.context, claim, transport)
        if turn.attempts >= MAX_CUT_OFF_BEGINNINGS:
            await self._failed_turns.give_up(turn, claim, transport, _CUT_OFF, work.context.language)
            return False
        if await starter.prepare():
            return True
        self.next.expect(claim.context_id)  # a command may have decided what another turn waits with
        return False

    async def _run(self, work: StartedTurn, claim: Claim, transport: Transport) -> bool:
        """Answer a turn and send the first message of its answer; return whether that was all of it."""
        turn = work.turn
        record = StoredStream(self._storage, turn, claim, self._clock)
        shown = None if work.context.is_unasked else transport.live(work.context.context_keys, turn.events, record)
        live = None if shown is None else adopt(Live, shown)
        run = AgentRun(self._options, work.context, turn, claim, transport=transport, live=live)
        self.runs[claim.context_id] = Running(run, turn, turn.order_key)
        try:
            if self._has_news(claim.context_id):
                await self.look_for_parts(claim.context_id)
                await self.stop(claim.context_id)  # while the turn began, nobody could stop it
            if work.controls.stops and await self._is_stopped(work):
                run.interrupt()  # it came before this process worked on the turn
            await run.finish()
            logger.info("turn.answered")
        finally:
            del self.runs[claim.context_id]
            if live is not None:
                await live.close()
        begun = run.begun
        if begun is None or not self.outbox.may_send(turn.platform):
            return False
        result = await self.outbox.send(work.context.context_keys, begun, claim, has_begun=True)
        return result is SendResult.OVER and begun.is_all

    async def _is_stopped(self, work: StartedTurn) -> bool:
        """Return whether a person who may has stopped a turn since its question was asked."""
        stops = work.controls.stops_after(work.turn.order_key)
        return await self._controls.find_newest(stops, work.context.context_keys) is not None

    async def stop(self, context_id: int) -> bool:
        """Stop the turn that runs in a context, if a person who may has said so; return whether one runs."""
        running = self.runs.get(context_id)
        if running is None:
            return False
        controls, keys = await self._controls.find(context_id)
        stops = controls.stops_after(running.received)
        is_meant = await self._controls.find_newest(stops, keys) is not None
        if self.runs.get(context_id) is not running:
            return False  # it has ended meanwhile: the stop is about what is owed of its answer
        running.received = max([running.received, *(each.order_key for each in stops)])
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
