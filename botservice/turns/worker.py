"""The worker: claims contexts that have work, and does it in lanes, one turn at a time in each context."""

import asyncio
import itertools
import logging
from collections.abc import Collection, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from botservice.core.argument_checks import adopt
from botservice.core.errors import BotServiceError, ClaimLost, StorageUnavailable
from botservice.core.messages import InboundMessage
from botservice.core.states import EventKind
from botservice.storage.activity import in_background
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.turns.backlog_queries import DueContext, What, find_due_contexts, find_stops
from botservice.turns.commands import Commands, NoCommands
from botservice.turns.context_work import ContextWork
from botservice.turns.hook_events import HookEvents
from botservice.turns.lanes import Lane, Lanes
from botservice.turns.next_work import PendingDelivery, StartedTurn, Work
from botservice.turns.program_queue import EVERY_SECONDS, ProgramLine, is_of_program
from botservice.turns.retry_policies import SUSPICIOUS_BEGINNINGS
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import NoTransport, Transport
from botservice.turns.turn import Share, StoredEvent
from botservice.turns.wakeups import Wakeup

logger = logging.getLogger(__name__)

MAX_TURNS_AT_ONCE = 256
SWEEP_SECONDS = 0.5
_STORAGE_PAUSE_SECONDS = 1.0
_LONGEST_REST_SECONDS = 60.0
_THOROUGH_EVERY = 10  # looks: a clock is seldom wrong


class Worker:
    """Works on every context of a storage that no other process has claimed.

    Args:
        transports: Who reads the events and makes the answers visible; turns of others are left alone.
        commands: What people may ask of the service itself.
        max_turns: How many turns may run at once.
        sweep_seconds: How often it looks for what it was not woken for.
        share: Which conversations it begins at once when another process leaves them to the others.
        program_seconds: How long after each conversation in which only a program wants something the next one begins.
    """

    def __init__(
        self,
        storage: Storage,
        options: RunOptions,
        transports: Iterable[Transport],
        *,
        commands: Commands = NoCommands(),  # noqa: B008 - it has no state
        max_turns: int = MAX_TURNS_AT_ONCE,
        sweep_seconds: float = SWEEP_SECONDS,
        share: Share = Share(),  # noqa: B008 - frozen
        program_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._storage = storage
        self._clock = options.clock
        self._transports: dict[str, Transport] = {}
        for transport in (NoTransport(), *transports):
            self.take_on(transport)
        most_sends = max(1, max_turns // 2)
        self._context_work = ContextWork(
            storage, options, self._transports, commands, most_sends, has_news=lambda context: context in self._again
        )
        self._lanes = Lanes(max_turns, self._context_work.outbox.may_send)
        self._line = ProgramLine(self._begin_next_in_line, every_seconds=program_seconds)
        self._sweep_seconds = sweep_seconds
        self._share = share
        self._looks = itertools.count()
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._again: set[int] = set()
        self._claims: dict[int, Claim] = {}
        self._let_go_at: dict[int, float] = {}
        self._resting: dict[int, tuple[int, float]] = {}  # how often they failed in a row, and until when they rest
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._is_stopping = False

    @property
    def is_running(self) -> bool:
        """Whether it looks for work."""
        return self._sweeping is not None and not self._sweeping.done()

    def holds(self, context_id: int) -> bool:
        """Return whether it works on a context at the moment."""
        return context_id in self._busy

    def take_on(self, transport: Transport) -> None:
        """Work for one more transport from now on, and for the events of hooks in its chats."""
        adopted = adopt(Transport, transport)
        for each in (adopted, HookEvents(adopted)):
            self._transports[each.name] = each

    async def peek(self, transport: str, event: StoredEvent) -> InboundMessage | None:
        """Read an event without its files; None where it says nothing, or its transport is not there."""
        found = self._transports.get(transport)
        return None if found is None else await found.peek(event)

    async def start(self) -> None:
        """Begin to work, first on what an earlier process left behind."""
        self._is_stopping = self._context_work.next.is_closing = False
        self._sweeping = asyncio.create_task(self._sweep(), name="botservice-sweep")
        self._listening = asyncio.create_task(self._listen(), name="botservice-listen")

    async def stop(self, *, grace_seconds: float = 0.0) -> None:
        """Take nothing new, let what runs go on for grace_seconds, then cut it off; another process goes on with it."""
        self._is_stopping = self._context_work.next.is_closing = True
        self._line.clear()
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])
        tasks = [*self._busy.values(), *self._tasks]
        if tasks and grace_seconds > 0:
            _, tasks_left = await asyncio.wait(tasks, timeout=grace_seconds)
            tasks = list(tasks_left)
        for task in tasks:
            task.cancel()
        if self._listening is not None:
            tasks.append(self._listening)
            self._listening.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def wake(self, context_id: int, kind: EventKind = EventKind.MESSAGE) -> None:
        """Begin work on a context, or look at it once more after what is under way there.

        What only a program wants done waits in line; a person's message has its context begin at once.
        """
        if self._is_stopping or self._sweeping is None:
            return
        if kind is EventKind.DECISION:
            self._context_work.next.expect(context_id)
        if kind is EventKind.STOP:
            self._spawn(self._stop_turn(context_id))
        elif kind is EventKind.PROGRAM:
            self._line.put(context_id)
        elif context_id in self._busy:
            self._again.add(context_id)
            if kind is EventKind.MESSAGE and context_id in self._context_work.runs:
                self._spawn(self._context_work.look_for_parts(context_id))
        elif not self._is_resting(context_id):
            self._begin(context_id, self._lanes.usual)

    def _begin(self, context_id: int, lane: Lane, *, is_next_in_line: bool = False) -> None:
        work = self._work(context_id, lane, is_next_in_line=is_next_in_line)
        self._busy[context_id] = asyncio.create_task(work, name=f"context-{context_id}")

    def _begin_next_in_line(self, context_id: int) -> None:
        if context_id in self._busy:
            self._line.put(context_id)
        elif not self._is_resting(context_id):
            self._begin(context_id, self._lanes.usual, is_next_in_line=True)

    def on_wakeup(self, wakeup: Wakeup) -> None:
        """Take note of what another replica has accepted.

        It works on that itself, unless it says otherwise, or failed because this replica has the context, or had
        it until a moment ago.
        """
        context_id = wakeup.context_id
        is_left_to_this = wakeup.is_open and self._share.has(context_id)
        if wakeup.kind is EventKind.STOP and context_id in self._context_work.runs:
            self._spawn(self._stop_turn(context_id))
        elif is_left_to_this or context_id in self._busy or context_id in self._let_go_at:
            self.wake(context_id, wakeup.kind)

    async def _listen(self) -> None:
        def on_notify(payload: str) -> None:
            wakeup = Wakeup.decode(payload)
            if wakeup is not None:
                self.on_wakeup(wakeup)

        try:
            await self._storage.listen(on_notify)
        except Exception:
            logger.exception("worker.listening_failed")  # whatever it was: the sweep finds everything, only later

    async def _sweep(self) -> None:
        """Find work that no wakeup announced: of a process that died, newly due, and stops that were missed."""
        in_background.set(True)
        while True:
            try:
                self._drop_what_is_lost()
                self._drop_old_rests()
                resting = {each for each in self._resting if self._is_resting(each)}
                found, stops = await self._storage.read(partial(self._look, resting=resting))
                self._take_up(found)
                for context_id, order_key in stops.items():
                    running = self._context_work.runs.get(context_id)
                    if running is not None and order_key > running.received:
                        self._spawn(self._stop_turn(context_id))
            except StorageUnavailable as error:
                logger.warning("worker.storage_unavailable", extra={"reason": str(error)})
            except Exception:
                logger.exception("worker.sweep_failed")  # whatever it was: without a sweep, nothing is taken up again
            await self._storage.activity.pause(self._sweep_seconds)

    def _drop_what_is_lost(self) -> None:
        """Cancel work that can store nothing more, because its claim went with a connection; it is claimed afresh."""
        for context_id, claim in list(self._claims.items()):
            if not claim.is_held:
                self._again.add(context_id)
                self._busy[context_id].cancel()
        a_while_ago = asyncio.get_running_loop().time() - SWEEP_SECONDS
        for context_id, let_go_at in list(self._let_go_at.items()):
            if let_go_at < a_while_ago:
                del self._let_go_at[context_id]

    def _drop_old_rests(self) -> None:
        """Forget failed contexts that were not tried again for long after their rest: another process did the work."""
        long_ago = asyncio.get_running_loop().time() - _LONGEST_REST_SECONDS
        self._resting = {context_id: rest for context_id, rest in self._resting.items() if rest[1] > long_ago}

    def _look(self, connection: Connection, resting: Collection[int]) -> tuple[list[DueContext], dict[int, int]]:
        """Return the unclaimed contexts that have work, and the stops of turns that run here."""
        due = find_due_contexts(
            connection,
            self._clock(),
            self._transports,
            beginnings=SUSPICIOUS_BEGINNINGS
            if self._lanes.suspects.is_full
            else self._context_work.next.beginnings_not_yet,
            resending=[name for name in list(self._transports) if not self._lanes.of_delivery(name, 1).is_full],
            is_thorough=next(self._looks) % _THOROUGH_EVERY == 0,
        )
        new = [each for each in due if each.context_id not in self._busy and each.context_id not in resting]
        ids = list(dict.fromkeys(each.context_id for each in new))
        free = set(self._storage.claims.find_free(connection, ids) if ids else ())
        return [each for each in new if each.context_id in free], find_stops(connection, list(self._context_work.runs))

    def _take_up(self, found: Sequence[DueContext]) -> None:
        """Begin work on the found contexts, as far as their lanes have room: the rest is found again."""
        reminded = self._context_work.reminding.expect(each.context_id for each in found if each.what is What.REMINDER)
        for each in found:
            if each.what is What.WAITING:
                self._context_work.next.expect(each.context_id)
            is_held_up = each.what is What.REMINDER and each.context_id not in reminded
            lane = self._lanes.of_due(each)
            if each.what is What.PROGRAM:
                self._line.put(each.context_id)
            elif each.context_id not in self._busy and not lane.is_full and not is_held_up:
                self._begin(each.context_id, lane)

    async def _work(self, context_id: int, lane: Lane, *, is_next_in_line: bool) -> None:
        """Do what a context has to do: in one lane after the other, as long as there is anything for it there."""
        in_background.set(False)  # the sweep may have begun it
        place: Lane | None = lane
        try:
            while place is not None:
                async with place:
                    place = await self._work_in(place, context_id, is_next_in_line=is_next_in_line)
        except ClaimLost:
            logger.info("worker.claim_lost", extra={"context": context_id})
        except StorageUnavailable as error:
            logger.warning("worker.storage_unavailable", extra={"context": context_id, "reason": str(error)})
            await asyncio.sleep(_STORAGE_PAUSE_SECONDS)
        except BotServiceError as error:
            logger.warning("worker.context_failed", extra={"context": context_id, "reason": str(error)})
            self._rest(context_id)
        except Exception:
            logger.exception("worker.context_failed", extra={"context": context_id})
            self._rest(context_id)
        else:
            self._resting.pop(context_id, None)
        finally:
            del self._busy[context_id]
            if context_id in self._again:
                self._again.discard(context_id)
                self.wake(context_id)

    def _rest(self, context_id: int) -> None:
        """Leave a context alone for a while whose work fails; for longer, the more often it has failed in a row."""
        failures, _ = self._resting.get(context_id, (0, 0.0))
        delay = min(_LONGEST_REST_SECONDS, _STORAGE_PAUSE_SECONDS * 2**failures)
        self._resting[context_id] = (failures + 1, asyncio.get_running_loop().time() + delay)

    def _is_resting(self, context_id: int) -> bool:
        rest = self._resting.get(context_id)
        return rest is not None and asyncio.get_running_loop().time() < rest[1]

    async def _work_in(self, lane: Lane, context_id: int, *, is_next_in_line: bool) -> Lane | None:
        """Do the work that belongs in a lane; return the lane in which to go on. The claim is not kept until then."""
        claim = await self._storage.claims.try_claim(context_id)
        if claim is None:
            return None
        self._claims[context_id] = claim
        try:
            return await self._do_all(claim, lane, is_next_in_line=is_next_in_line)
        finally:
            del self._claims[context_id]
            self._let_go_at[context_id] = asyncio.get_running_loop().time()
            await asyncio.shield(self._storage.claims.release(claim))

    async def _do_all(self, claim: Claim, lane: Lane, *, is_next_in_line: bool) -> Lane | None:
        """Do what a context has to do, as far as it belongs in a lane and others do not wait for the place in it.

        Returns:
            The lane in which to go on; None if there is nothing more, or all of it has to wait.
        """
        done: Work | None = None
        while True:
            is_next_in_line = is_next_in_line and claim.context_id not in self._again  # a person has written
            self._again.discard(claim.context_id)  # what was known until now is about to be seen
            gives_way = not isinstance(done, StartedTurn)
            work = await self._context_work.find(claim, gives_way=gives_way)
            if work is None:
                return None
            if done is not None and is_next_in_line and is_of_program(work):
                self._line.put(claim.context_id)
                return None
            place = self._lanes.of_work(work)
            # After a turn, a message comes before the next: however many ask, a long answer comes to its end.
            is_enough = done is not None and (gives_way or not isinstance(work, PendingDelivery))
            if place is not lane or (is_enough and lane.waiting):
                return place
            if not await self._context_work.do(work, claim) and claim.context_id not in self._again:
                return None
            done = work

    async def _stop_turn(self, context_id: int) -> None:
        """Stop the turn that runs in a context. If none runs, the next look at the context handles the control."""
        if not await self._context_work.stop(context_id):
            self.wake(context_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._collect)

    def _collect(self, task: asyncio.Task[None]) -> None:
        """Log why a spawned task failed; the sweep finds again what it was about."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StorageUnavailable):
            logger.warning("worker.storage_unavailable", extra={"reason": str(error)})
        elif error is not None:
            logger.error("worker.task_failed", exc_info=error)
