"""What is done in one claimed context, until it has nothing more to do: messages sent, edits applied, turns run."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection

from botservice.budgets.texts import used_up_text
from botservice.capabilities import capabilities_of
from botservice.contexts.context import read_context_keys
from botservice.errors import (
    BudgetExceeded,
    ClaimLost,
    LLMError,
    RunInterrupted,
    StorageUnavailable,
    TurnGrew,
    TurnWaiting,
)
from botservice.messages import InboundMessage
from botservice.reminders.reminder import Reminder
from botservice.storage import Claim, Storage
from botservice.telemetry.measuring import in_turn
from botservice.turns.changes import Change, DueChanges, apply_changes, find_controls, mark_handled
from botservice.turns.due_contexts import put_off
from botservice.turns.outbox import Outbox, StoredStream
from botservice.turns.owed_deliveries import drop_stopped
from botservice.turns.retry import MAX_CUT_OFF_BEGINNINGS, SUSPICIOUS_BEGINNINGS, beginnings_not_yet
from botservice.turns.run.agent_run import AgentRun, RunOptions
from botservice.turns.start.admission import Admission
from botservice.turns.start.beginning import Beginning
from botservice.turns.start.commands import Commands
from botservice.turns.start.effects import Effects
from botservice.turns.start.refusing import end_refused
from botservice.turns.transport import Transport, was_spoken
from botservice.turns.turn import Turn, TurnStatus
from botservice.turns.waiting.records import withdraw_turn
from botservice.turns.work.failed_turns import FailedTurns
from botservice.turns.work.lanes import Lane, Lanes
from botservice.turns.work.merging import move_here
from botservice.turns.work.next_work import Begun, Moved, NextWork, Owed, Stopped, Waiting, Work
from botservice.turns.work.reminders import Reminding
from botservice.turns.work.waiting_turns import Attending

logger = logging.getLogger(__name__)

_CUT_OFF: Final = "it was cut off too often, or what it had done was forgotten"


@dataclass(slots=True)
class Running:
    """A turn that runs.

    Attributes:
        heard: The order key of the newest stop that was judged; at first the question's own.
    """

    run: AgentRun
    heard: int


class ContextWork:
    """Does what contexts have to do, one thing at a time in each, for whoever holds the claim.

    Attributes:
        runs: The turns that run, by context.
        reminding: What of reminders is due.
        is_closing: No turn begins any more; what runs goes on.
    """

    def __init__(
        self,
        storage: Storage,
        options: RunOptions,
        transports: Mapping[str, Transport],
        commands: Commands,
        lanes: Lanes,
    ) -> None:
        self._storage = storage
        self._options = options
        self._clock = options.clock
        self._transports = transports
        self._lanes = lanes
        self._beginning = Beginning(storage, options, commands)
        self._admission = Admission(storage, options)
        self._outbox = Outbox(storage, transports, options.clock)
        self._effects = Effects(storage, options, transports)
        self._failed_turns = FailedTurns(storage, options.clock)
        self._attending = Attending(storage, options)
        self.reminding = Reminding(storage, options, transports)
        self._next = NextWork(storage, transports, self.reminding, options.clock, self._may_begin)
        self._born_at = time.monotonic()
        self.runs: dict[int, Running] = {}
        self.is_closing = False

    @property
    def beginnings_not_yet(self) -> int:
        """From how many beginnings on turns are left alone for now, because they may end a process that is so young."""
        return beginnings_not_yet(time.monotonic() - self._born_at)

    def expect(self, context_id: int) -> None:
        """Take note that something may have become of what a turn of a context waits with."""
        self._next.expect(context_id)

    async def do(self, claim: Claim, lane: Lane, on_look: Callable[[], None]) -> Lane | None:
        """Do what a context has to do, as far as it belongs in a lane and others do not wait for the place in it.

        Args:
            on_look: Called before each look at what there is: what was known until then is about to be seen.

        Returns:
            The lane in which to go on; None where there is nothing more, or all of it has to wait.
        """
        done: Work | None = None
        while True:
            on_look()
            gives_way = not isinstance(done, Begun)
            find = partial(self._next.find, context_id=claim.context_id, gives_way=gives_way)
            work = await self._storage.read(find, is_short=True)
            if work is None or isinstance(work, Waiting):
                if await self._turn_away_changes(claim):
                    continue
                if work is not None and not self.is_closing:
                    await self._put_off(work.until, claim)
                return None
            place = self._lane_of(work)
            # After a turn, a message comes before the next: however many ask, a long answer comes to its end.
            is_enough = done is not None and (gives_way or not isinstance(work, Owed))
            if place is not lane or (is_enough and lane.waiting):
                return place
            if not await self._do(work, claim):
                return None
            done = work

    async def _do(self, work: Work, claim: Claim) -> bool:
        """Do one thing; return whether something else may be done now."""
        match work:
            case Owed(delivery, context_keys):
                with self._lanes.sending(delivery.transport):
                    return await self._outbox.attempt(context_keys, delivery, claim)
            case Stopped(stops):
                await self._stop_all(claim, stops)
            case Moved(change):
                return await move_here(self._storage, claim, change, self._clock())
            case DueChanges():
                await self._apply_changes(work, claim)
            case Reminder():
                await self.reminding.fire(work, claim)
            case Begun(turn):
                with in_turn(turn.identity):
                    await self._work_on(turn, work, claim)
        return True

    async def _put_off(self, until: datetime, claim: Claim) -> None:
        """Have a context not be looked at before a moment, unless something new comes."""
        now, context_id = self._clock(), claim.context_id
        await self._storage.write(lambda connection: put_off(connection, context_id, until, now), fence=claim)

    def _lane_of(self, work: Work) -> Lane:
        match work:
            case Owed(delivery):
                return self._lanes.of_delivery(delivery.transport, delivery.attempts)
            case Begun(turn):
                return self._lanes.of_turn(turn.attempts, sum(len(event.raw) for event in turn.events))
            case _:
                return self._lanes.usual

    async def _apply_changes(self, due: DueChanges, claim: Claim) -> None:
        keys = await self._storage.read(lambda connection: read_context_keys(connection, claim.context_id))

        async def read(change: Change) -> InboundMessage | None:
            return await self._admission.read_change(change.event, claim, keys, self._transports[change.transport])

        async def may(change: Change) -> bool:
            return await self._effects.may(change.event, change.transport, keys)

        await apply_changes(self._storage, read, due, claim, self._clock(), may)

    async def _turn_away_changes(self, claim: Claim) -> bool:
        """Drop the edits of people who are not let in, while they wait for their message; return whether any do."""
        if await self._options.access.is_idle(self._storage):
            return False
        context_id = claim.context_id
        controls, keys = await self._storage.read(
            lambda connection: (
                find_controls(connection, context_id, self._transports),
                read_context_keys(connection, context_id),
            )
        )
        refused = await self._admission.turn_away_changes(controls, keys, self._transports)
        if refused:
            now = self._clock()
            await self._storage.write(lambda connection: mark_handled(connection, refused, now), fence=claim)
            self._storage.scrub_soon()
        return bool(refused)

    def _may_begin(self, turn: Turn) -> bool:
        may_end_processes = turn.attempts >= SUSPICIOUS_BEGINNINGS and turn.attempts >= self.beginnings_not_yet
        return not self.is_closing and not may_end_processes and turn.transport in self._transports

    async def _stop_all(self, claim: Claim, stops: Sequence[Change]) -> None:
        """Have stops take effect where no turn runs: nothing more is sent of answers of which some has gone out."""
        now, context_id = self._clock(), claim.context_id
        keys = await self._storage.read(lambda connection: read_context_keys(connection, context_id))
        stop = await self._effects.newest(stops, keys)
        waiting = await self._attending.find_stopped(context_id, [each for each in stops if stop], self._transports)

        def write(connection: Connection) -> None:
            mark_handled(connection, [each.event.id for each in stops], now)
            if stop is not None:
                drop_stopped(connection, context_id, stop.order_key, now)
            for turn_id in waiting:
                withdraw_turn(connection, turn_id, now)

        await self._storage.write(write, fence=claim)
        self.expect(context_id)
        logger.info("context.stopped", extra={"context": context_id})

    async def _work_on(self, turn: Turn, work: Begun, claim: Claim) -> None:
        transport = self._transports[turn.transport]
        if turn.is_open:
            await self._beginning.recall(turn, work.context, transport)
        try:
            if await self._is_ready(turn, work, claim, transport):
                await self._run(turn, work, claim, transport)
        except TurnWaiting:
            logger.info("turn.waits")
        except TurnGrew:
            logger.info("turn.grew")  # it is read again, with what has come meanwhile
        except RunInterrupted:
            logger.info("turn.stopped")
        except BudgetExceeded as error:
            logger.info("turn.over_budget", extra={"scope": error.scope, "unit": error.unit})
            text = used_up_text(error.scope, error.ends_at, work.context.language)
            await end_refused(self._storage, turn, claim, transport, text, self._clock())
        except LLMError as error:
            await self._failed_turns.give_up(turn, claim, transport, str(error), work.context.language)
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception as error:
            logger.exception("turn.failed")
            await self._failed_turns.try_later(turn, claim, transport, type(error).__name__, work.context.language)

    async def _is_ready(self, turn: Turn, work: Begun, claim: Claim, transport: Transport) -> bool:
        """Have a turn begin, or be seen to where it waits; return whether the agent is to work on it now."""
        if turn.status is TurnStatus.WAITING:
            return await self._attending.attend(turn, work.context, claim, transport)
        if turn.attempts >= MAX_CUT_OFF_BEGINNINGS:
            await self._failed_turns.give_up(turn, claim, transport, _CUT_OFF, work.context.language)
            return False
        if await self._beginning.prepare(turn, work.context, work.controls, claim, transport):
            return True
        self.expect(claim.context_id)  # a command may have decided what another turn waits with
        return False

    async def _run(self, turn: Turn, work: Begun, claim: Claim, transport: Transport) -> None:
        record = StoredStream(self._storage, turn, claim, self._clock)
        live = transport.live(work.context.context_keys, turn.events, record)
        run = AgentRun(
            self._options,
            work.context,
            turn,
            claim,
            plan_deliveries=lambda answer: transport.plan(answer, turn.events),
            has_buttons=lambda: bool(capabilities_of(transport).buttons),
            live=live,
            is_spoken=self._options.speaker is not None and was_spoken(transport, turn.events),
        )
        self.runs[claim.context_id] = Running(run, turn.order_key)
        try:
            if work.controls.stops and await self._is_stopped(turn, work):
                run.interrupt()  # it came before this process worked on the turn
            await run.finish()
            logger.info("turn.answered")
        finally:
            del self.runs[claim.context_id]
            if live is not None:
                await live.close()
        if run.begun is not None and self._lanes.may_send(turn.transport):
            with self._lanes.sending(turn.transport):
                await self._outbox.go_on(work.context.context_keys, run.begun, claim)

    async def _is_stopped(self, turn: Turn, work: Begun) -> bool:
        """Return whether somebody who may has said stop since a question was asked."""
        stops = work.controls.stops_after(turn.order_key)
        return await self._effects.newest(stops, work.context.context_keys) is not None

    async def stop(self, context_id: int) -> bool:
        """Stop the turn that runs in a context, if somebody wants that who may; return whether one runs."""
        running = self.runs.get(context_id)
        if running is None:
            return False
        controls, keys = await self._storage.read(
            lambda connection: (
                find_controls(connection, context_id, self._transports),
                read_context_keys(connection, context_id),
            )
        )
        stops = controls.stops_after(running.heard)
        is_meant = await self._effects.newest(stops, keys) is not None
        if self.runs.get(context_id) is not running:
            return False  # it has ended meanwhile: the stop is about what is owed of its answer
        running.heard = max([running.heard, *(each.order_key for each in stops)])
        if is_meant:
            running.run.interrupt()
        return True
