"""What is done in one claimed context, until it has nothing more to do: messages sent, edits applied, turns run."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from botservice.contexts import AgentContext, read_context_keys
from botservice.errors import (
    BudgetExceeded,
    ClaimLost,
    LLMError,
    RunInterrupted,
    StorageUnavailable,
    TurnGrew,
)
from botservice.messages import InboundMessage
from botservice.people.budgets_texts import used_up_text
from botservice.storage import Claim, Storage
from botservice.storage.interleaving import interleave
from botservice.telemetry import turn_logging
from botservice.turns.admission import Admission
from botservice.turns.beginning import Beginning
from botservice.turns.changes import (
    Change,
    Controls,
    DueChanges,
    apply_changes,
    find_controls,
    find_due,
    find_stale,
    mark_handled,
)
from botservice.turns.commands import Commands
from botservice.turns.due import is_due
from botservice.turns.effects import Effects
from botservice.turns.outbox import Outbox, StoredStream, find_next_delivery
from botservice.turns.owing import drop_stopped, find_fairest_delivery, has_stopped
from botservice.turns.records import (
    find_next_turn,
    handle_stops,
)
from botservice.turns.refusing import end_refused
from botservice.turns.retry import SUSPECTS_AT_ONCE, is_cut_off_too_often, is_suspicious, seconds_alive_first
from botservice.turns.run import AgentRun, RunOptions
from botservice.turns.setbacks import Setbacks
from botservice.turns.transport import Transport, is_shared
from botservice.turns.turn import Delivery, Turn

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Owed:
    """A message that a context owes to somebody."""

    delivery: Delivery
    context_keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unwanted:
    """What is left of answers that somebody has stopped.

    Attributes:
        stops: Those wishes, oldest first.
    """

    stops: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn to begin, or to begin again.

    Attributes:
        controls: What has not taken effect: the wish that it stop, and changes of messages that it may begin with.
    """

    turn: Turn
    context: AgentContext
    controls: Controls


Work = Owed | Unwanted | DueChanges | Begun


@dataclass(frozen=True, slots=True)
class Running:
    """A turn that runs."""

    run: AgentRun
    order_key: int


class ContextWork:
    """Does what contexts have to do, one thing at a time in each, for whoever holds the claim.

    Attributes:
        runs: The turns that run, by context.
        is_closing: No turn begins any more; what runs goes on.
    """

    def __init__(
        self, storage: Storage, options: RunOptions, transports: Mapping[str, Transport], commands: Commands
    ) -> None:
        self._storage = storage
        self._options = options
        self._clock = options.clock
        self._transports = transports
        self._beginning = Beginning(storage, options, commands)
        self._admission = Admission(storage, options)
        self._outbox = Outbox(storage, transports, options.clock)
        self._effects = Effects(storage, options, transports)
        self._setbacks = Setbacks(storage, options.clock)
        self._suspects = asyncio.Semaphore(SUSPECTS_AT_ONCE)
        self._born_at = time.monotonic()
        self._stops: set[int] = set()
        self.runs: dict[int, Running] = {}
        self.is_closing = False

    async def do(self, claim: Claim, on_look: Callable[[], None]) -> None:
        """Do what a context has to do, until there is nothing more or something has to wait.

        Args:
            on_look: Called before each look at what there is: what was known until then is about to be seen.
        """
        has_given_way = False
        while True:
            on_look()
            find = partial(self._find_work, context_id=claim.context_id, gives_way=not has_given_way)
            work = await self._storage.read(find, is_short=True)
            has_given_way = isinstance(work, Begun)
            match work:
                case Owed(delivery, context_keys) if is_due(delivery, self._clock()):
                    await self._outbox.attempt(context_keys, delivery, claim)
                case Unwanted(stops):
                    await self._drop(claim, stops)
                case DueChanges():
                    await self._apply_changes(work, claim)
                case Begun(turn) if self._may_begin(turn):
                    with turn_logging(turn.id):
                        async with self._with_care(turn.attempts):
                            await self._work_on(turn, work, claim)
                case _ if claim.context_id in self._stops:
                    self._stops.discard(claim.context_id)
                    await self._handle_stops(claim.context_id)  # nothing runs that they could stop
                case _ if await self._turn_away_changes(claim):
                    continue
                case _:
                    return  # nothing, or nothing yet: the sweep comes back when it is due

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

    @contextlib.asynccontextmanager
    async def _with_care(self, beginnings: int) -> AsyncIterator[None]:
        """Begin what may have ended its process before a few at a time, and not at once."""
        if not is_suspicious(beginnings):
            yield
            return
        await asyncio.sleep(self._born_at + seconds_alive_first(beginnings) - time.monotonic())
        async with self._suspects:
            yield

    def _may_begin(self, turn: Turn) -> bool:
        return not self.is_closing and is_due(turn, self._clock()) and turn.transport in self._transports

    async def _drop(self, claim: Claim, stops: Sequence[Change]) -> None:
        """Drop what the newest of the stops that may take effect is about; those after it have none."""
        now, context_id = self._clock(), claim.context_id
        keys = await self._storage.read(lambda connection: read_context_keys(connection, context_id))
        stop = await self._effects.newest(stops, keys)
        void = [each.event.id for each in stops if stop is None or each.order_key > stop.order_key]

        def drop(connection: Connection) -> None:
            mark_handled(connection, void, now)
            if stop is not None:
                drop_stopped(connection, context_id, stop.order_key, now)

        await self._storage.write(drop, fence=claim)
        logger.info("delivery.stopped", extra={"context": context_id})

    def _find_work(self, connection: Connection, *, context_id: int, gives_way: bool) -> Work | None:
        """Return what a context has to do next: what it owes comes before what is changed, and that before a turn.

        Args:
            gives_way: Whether a turn may begin first where other people wait behind a long answer.
        """
        delivery, controls, turn = interleave(
            partial(find_next_delivery, connection, context_id, self._transports),
            partial(find_controls, connection, context_id, self._transports),
            partial(find_next_turn, connection, context_id, self._transports),
        )
        stops = controls.stops
        if stops and delivery is not None and has_stopped(connection, context_id, stops[-1].order_key):
            return Unwanted(stops)
        if delivery is not None:
            keys = read_context_keys(connection, context_id)
            is_for_many = not delivery.attempts and is_shared(self._transports[delivery.transport], keys)
            if is_for_many:
                delivery = find_fairest_delivery(connection, context_id, self._transports) or delivery
            if not (is_for_many and gives_way and turn is not None and self._may_begin(turn)):
                return Owed(delivery, keys)
        changes = find_due(connection, context_id, controls)
        if changes is not None:
            return changes
        if turn is None:
            return find_stale(controls, self._clock())
        context = AgentContext.read(self._storage, connection, context_id, turn.id, with_steps=turn.is_open)
        return Begun(turn, context, controls)

    async def _work_on(self, turn: Turn, work: Begun, claim: Claim) -> None:
        transport = self._transports[turn.transport]
        try:
            if is_cut_off_too_often(turn.attempts):
                await self._setbacks.give_up(turn, claim, transport, "it was cut off too often")
            elif await self._beginning.begin(turn, work.context, work.controls, claim, transport):
                await self._run(turn, work, claim, transport)
        except TurnGrew:
            logger.info("turn.grew")  # it is read again, with what has come meanwhile
        except RunInterrupted:
            logger.info("turn.stopped")
        except BudgetExceeded as error:
            logger.info("turn.over_budget", extra={"scope": error.scope, "unit": error.unit})
            text = used_up_text(error.scope, error.ends_at, work.context.language)
            await end_refused(self._storage, turn, claim, transport, text, self._clock())
        except LLMError as error:
            await self._setbacks.give_up(turn, claim, transport, str(error))
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception as error:
            logger.exception("turn.failed")
            await self._setbacks.try_later(turn, claim, transport, type(error).__name__)

    async def _run(self, turn: Turn, work: Begun, claim: Claim, transport: Transport) -> None:
        record = StoredStream(self._storage, turn, claim, self._clock)
        live = transport.live(work.context.context_keys, turn.events, record)
        run = AgentRun(
            self._options,
            work.context,
            turn,
            claim,
            plan_deliveries=lambda answer: transport.plan(answer, turn.events),
            live=live,
        )
        self.runs[claim.context_id] = Running(run, turn.order_key)
        try:
            stop = await self._effects.newest(work.controls.stops, work.context.context_keys)
            if stop is not None and stop.order_key > turn.order_key:
                run.interrupt()  # it came before this process worked on the turn
                await self._handle_stops(claim.context_id)
            await run.finish()
            logger.info("turn.answered")
        finally:
            del self.runs[claim.context_id]
            if live is not None:
                await live.close()
        if run.begun is not None:
            await self._outbox.go_on(work.context.context_keys, run.begun, claim)

    async def stop(self, context_id: int) -> bool:
        """Stop the turn that runs in a context; return whether one does."""
        running = self.runs.get(context_id)
        if running is None:
            return False
        controls, keys = await self._storage.read(
            lambda connection: (
                find_controls(connection, context_id, self._transports),
                read_context_keys(connection, context_id),
            )
        )
        is_meant = await self._effects.newest(controls.stops, keys) is not None
        if self.runs.get(context_id) is not running:
            return False  # it has ended meanwhile: the stop is about what is owed of its answer
        if is_meant:
            running.run.interrupt()
        await self._handle_stops(context_id)
        return True

    def stop_next(self, context_id: int) -> None:
        """Have the stops of a context take effect when it is looked at next, though nothing may run there."""
        self._stops.add(context_id)

    async def _handle_stops(self, context_id: int) -> None:
        await self._storage.write(lambda connection: handle_stops(connection, context_id, self._clock()))
