"""The worker: claims contexts that have something to do, and does it, one turn at a time in each."""

import asyncio
import logging
from collections.abc import Iterable

from sqlalchemy import Connection

from botservice.errors import (
    BotServiceError,
    ClaimLost,
    StorageUnavailable,
)
from botservice.storage import Claim, Storage
from botservice.turns.changes import (
    find_changed_contexts,
)
from botservice.turns.commands import Commands, NoCommands
from botservice.turns.context_work import ContextWork
from botservice.turns.outbox import find_owing_contexts
from botservice.turns.records import (
    find_busy_contexts,
    find_stops,
)
from botservice.turns.reminders import Reminding
from botservice.turns.run import RunOptions
from botservice.turns.transport import NoTransport, Transport
from botservice.turns.turn import EventKind
from botservice.turns.wakeups import Wakeup

logger = logging.getLogger(__name__)

MAX_TURNS_AT_ONCE = 256
SWEEP_SECONDS = 0.5
_STORAGE_PAUSE_SECONDS = 1.0
_WAITING_PER_SLOT = 8  # contexts that the sweep lines up for each turn that may run; the others are found later


class Worker:
    """Works on every context of a storage that nobody else works on.

    Args:
        transports: Who reads the events and makes the answers visible; turns of others are left alone.
        commands: What people may ask of the service itself.
        max_turns: How many turns may run at once.
        sweep_seconds: How often it looks for what it was not woken for.
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
    ) -> None:
        self._storage = storage
        self._clock = options.clock
        self._transports: dict[str, Transport] = {"api": NoTransport()}
        self._transports.update({transport.name: transport for transport in transports})
        self._context_work = ContextWork(storage, options, self._transports, commands)
        self._reminding = Reminding(storage, options, self._transports)
        self._slots = asyncio.Semaphore(max_turns)
        self._sweep_seconds = sweep_seconds
        self._max_busy = max_turns * _WAITING_PER_SLOT
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._again: set[int] = set()
        self._claims: dict[int, Claim] = {}
        self._let_go_at: dict[int, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._is_stopping = False

    @property
    def is_running(self) -> bool:
        """Whether it looks for work."""
        return self._sweeping is not None and not self._sweeping.done()

    async def start(self) -> None:
        """Begin to work; what was left behind by an earlier process is taken up at once."""
        self._is_stopping = self._context_work.is_closing = False
        self._sweeping = asyncio.create_task(self._sweep(), name="botservice-sweep")
        self._listening = asyncio.create_task(self._listen(), name="botservice-listen")

    async def stop(self, *, grace_seconds: float = 0.0) -> None:
        """Take nothing new, let what runs go on for grace_seconds, then cut it off; another process goes on with it."""
        self._is_stopping = self._context_work.is_closing = True
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
        """Take note that a context has something to do."""
        if self._is_stopping or self._sweeping is None:
            return
        if kind is EventKind.STOP:
            self._spawn(self._stop_turn(context_id))
        elif context_id in self._busy:
            self._again.add(context_id)
        else:
            self._busy[context_id] = asyncio.create_task(self._work(context_id), name=f"context-{context_id}")

    def hear(self, wakeup: Wakeup) -> None:
        """Take note of what another replica has accepted.

        It works on that itself, unless it says otherwise, or tried in vain because this replica has the context, or had
        it until a moment ago.
        """
        context_id = wakeup.context_id
        if wakeup.kind is EventKind.STOP and context_id in self._context_work.runs:
            self._spawn(self._stop_turn(context_id))
        elif wakeup.is_open or context_id in self._busy or context_id in self._let_go_at:
            self.wake(context_id, wakeup.kind)

    async def _listen(self) -> None:
        def hear(payload: str) -> None:
            wakeup = Wakeup.decode(payload)
            if wakeup is not None:
                self.hear(wakeup)

        try:
            await self._storage.listen(hear)
        except Exception:
            logger.exception("worker.listening_failed")  # whatever it was: the sweep finds everything, only later

    async def _sweep(self) -> None:
        """Find what nobody was woken for: work of a process that died, what has become due, and stops not heard of."""
        while True:
            try:
                self._drop_what_is_lost()
                found, stops = await self._storage.read(self._look)
                for context_id in found:
                    if context_id not in self._busy and len(self._busy) < self._max_busy:
                        self.wake(context_id)
                for context_id, order_key in stops.items():
                    running = self._context_work.runs.get(context_id)
                    if running is not None and order_key > running.order_key:
                        self._spawn(self._stop_turn(context_id))
            except StorageUnavailable as error:
                logger.warning("worker.storage_unavailable", extra={"reason": str(error)})
            except Exception:
                logger.exception("worker.sweep_failed")  # whatever it was: without a sweep, nothing is taken up again
            await asyncio.sleep(self._sweep_seconds)

    def _drop_what_is_lost(self) -> None:
        """Cut off what can store nothing more: its claim went with a connection. Then it is claimed afresh."""
        for context_id, claim in list(self._claims.items()):
            if not claim.is_held:
                self._again.add(context_id)
                self._busy[context_id].cancel()
        a_while_ago = asyncio.get_running_loop().time() - SWEEP_SECONDS
        for context_id, let_go_at in list(self._let_go_at.items()):
            if let_go_at < a_while_ago:
                del self._let_go_at[context_id]

    def _look(self, connection: Connection) -> tuple[list[int], dict[int, int]]:
        """Return the contexts that nobody works on and that have something to do, and the stops of what runs here."""
        now = self._clock()
        due = [
            *find_busy_contexts(connection, now, self._transports),
            *find_owing_contexts(connection, now, self._transports),
            *find_changed_contexts(connection, now, self._transports),
            *self._reminding.look(connection),
        ]
        new = [context_id for context_id in dict.fromkeys(due) if context_id not in self._busy]
        free = self._storage.claims.find_free(connection, new) if new else []
        return free, find_stops(connection, list(self._context_work.runs))

    async def _work(self, context_id: int) -> None:
        try:
            async with self._slots:
                claim = await self._storage.claims.try_claim(context_id)
                if claim is None:
                    return
                self._claims[context_id] = claim
                try:
                    await self._reminding.fire_due(claim)
                    await self._context_work.do(claim, on_look=lambda: self._again.discard(context_id))
                finally:
                    del self._claims[context_id]
                    self._let_go_at[context_id] = asyncio.get_running_loop().time()
                    await asyncio.shield(self._storage.claims.release(claim))
        except ClaimLost:
            logger.info("worker.claim_lost", extra={"context": context_id})
        except StorageUnavailable as error:
            logger.warning("worker.storage_unavailable", extra={"context": context_id, "reason": str(error)})
            await asyncio.sleep(_STORAGE_PAUSE_SECONDS)
        except BotServiceError as error:
            logger.warning("worker.context_failed", extra={"context": context_id, "reason": str(error)})
        except Exception:
            logger.exception("worker.context_failed", extra={"context": context_id})
            await asyncio.sleep(_STORAGE_PAUSE_SECONDS)
        finally:
            del self._busy[context_id]
            if context_id in self._again:
                self._again.discard(context_id)
                self.wake(context_id)

    async def _stop_turn(self, context_id: int) -> None:
        """Stop the turn that runs in a context. One that is about to begin sees the control when it does."""
        if not await self._context_work.stop(context_id) and context_id not in self._busy:
            self._context_work.stop_next(context_id)  # it takes effect where the context is worked on, if it is
            self.wake(context_id)

    def _spawn(self, work: "asyncio.Future[None] | object") -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[arg-type]  # a coroutine of this class
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
