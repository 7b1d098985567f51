"""Accepting events from platforms: each is stored once, with its turn, before the platform is told so.

A message has a turn of its own, or joins one that waits because it came soon after; without room, none is taken.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.errors import InboxFull, StorageUnavailable
from botservice.core.messages import Author, InboundMessage
from botservice.core.states import EventKind
from botservice.people.access import Access
from botservice.people.access_values import AccessRole
from botservice.people.names import HOOKS
from botservice.storage.activity import in_background
from botservice.storage.database import Connection, Storage
from botservice.texts.formatted import say
from botservice.turns.backlog_queries import count_waiting
from botservice.turns.call_decisions import Decider, Decision, decide_now, order_of
from botservice.turns.event_queries import insert_event
from botservice.turns.run_options import Clock
from botservice.turns.turn import InboundEvent, Share
from botservice.turns.wakeups import Wakeup, notify_replicas

logger = logging.getLogger(__name__)

MAX_WAITING = 10_000
MAX_STORING = 1_000
MAX_STORING_BYTES = 64 * 1024 * 1024
_LOOK_SECONDS = 1.0

Wake = Callable[[int, EventKind], None]
"""Called with the context and the kind of each new event, after its commit."""


class Pressure:
    """Counts waiting turns and messages.

    One query a second looks; on the accepting path nothing is asked, only counted. So the limit is kept as closely as
    what other replicas take in during that second.

    Attributes:
        waiting: How many turns of all contexts were not done when it last looked, and how many messages came since.
        storing: How many messages wait for their commit.
        storing_bytes: How long these are in all.
    """

    def __init__(
        self,
        *,
        max_waiting: int = MAX_WAITING,
        max_storing: int = MAX_STORING,
        max_storing_bytes: int = MAX_STORING_BYTES,
    ) -> None:
        self._max_waiting = max_waiting
        self._max_storing = max_storing
        self._max_storing_bytes = max_storing_bytes
        self.waiting = 0
        self.storing = 0
        self.storing_bytes = 0

    @contextlib.contextmanager
    def taking(self, count: int, size: int = 0) -> Iterator[None]:
        """Count messages that are stored within the block, and their bytes.

        Raises:
            InboxFull: there is no room for them (when it is entered).
        """
        self._check(count, size)
        self.storing += count
        self.storing_bytes += size
        try:
            yield
        finally:
            self.storing -= count
            self.storing_bytes -= size
        self.waiting += count

    def _check(self, count: int, size: int) -> None:
        if count and self.waiting + self.storing + count > self._max_waiting:
            raise InboxFull(f"{self.waiting} turns are waiting, and MAX_WAITING is {self._max_waiting}")
        is_much = self.storing + count > self._max_storing or self.storing_bytes + size > self._max_storing_bytes
        if count and self.storing and is_much:
            raise InboxFull(f"{self.storing} messages wait to be stored: the database cannot keep up")

    @contextlib.asynccontextmanager
    async def watching(self, storage: Storage) -> AsyncIterator[None]:
        """Keep count within the block."""
        watching = asyncio.create_task(self.watch(storage), name="botservice-pressure")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def watch(self, storage: Storage) -> NoReturn:
        """Count the open turns again and again, until cancelled."""
        in_background.set(True)
        while True:
            try:
                self.waiting = await storage.read(count_waiting)
            except StorageUnavailable:
                logger.debug("pressure.not_known")  # whoever accepts meanwhile fails by itself
            await storage.activity.pause(_LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class LocalWork:
    """What of all that is new this process works on; the other processes are told of the rest.

    Attributes:
        share: Which conversations; None if this process has no worker.
        shown_here: Transports that show what this process does while it does it: it works on all of theirs.
        holds: Returns whether it works on a conversation at the moment, whosever share that is.
    """

    share: Share | None = field(default_factory=Share)
    shown_here: Collection[str] = ()
    holds: Callable[[int], bool] = lambda _: False

    def has(self, transport: str, context_id: int) -> bool:
        """Return whether a conversation of a transport is worked on here."""
        return self.share is not None and (transport in self.shown_here or self.share.has(context_id))


class Inbox:
    """Stores the events that transports hand in."""

    def __init__(
        self,
        storage: Storage,
        wake: Wake,
        clock: Clock | None = None,
        *,
        pressure: Pressure | None = None,
        work: LocalWork = LocalWork(),
        access: Access | None = None,
    ) -> None:
        """Make an inbox.

        Args:
            clock: What time it is; by default what the storage says.
            wake: Has this process work on what is new.
            pressure: Says when nothing more is taken; by default everything is.
            work: What of that this process works on; by default all.
            access: Who has access, and who owns the service; by default everybody, and nobody.
        """
        self._storage = storage
        self._wake = wake
        self._clock = clock or storage.now
        self._pressure = pressure or Pressure()
        self._work = work
        self._access = access or Access()

    @property
    def access(self) -> Access:
        """Decides who has access."""
        return self._access

    async def accept(self, transport: str, inbound: Sequence[InboundEvent]) -> int:
        """Store events in one commit and return how many of them were new.

        Only when this returns may the platform be told that they have arrived.

        Raises:
            InvalidContextKeys: an event does not say where it belongs.
            StorageUnavailable: they are not stored: the platform has to deliver them again.
            InboxFull: nor are they, because too much is waiting. Controls are taken all the same.
        """
        if not inbound:
            return 0
        keyed = [(event, ContextKeys.of(event.context_keys)) for event in inbound]
        keyed.sort(key=lambda pair: (pair[1].digest, pair[0].order_key))
        inbound_together = _Inbound(transport, keyed, self._clock(), self._work)
        messages = sum(event.kind is EventKind.MESSAGE for event in inbound)
        with self._pressure.taking(messages, sum(len(event.raw) for event in inbound)):
            accepted = await self._storage.issue_for(
                inbound_together, _store_all, sort_key=(keyed[0][1].digest, keyed[0][0].key)
            )
        for context_id, kind in accepted:
            self._wake_here(transport, context_id, kind)
        return len(accepted)

    async def decide(
        self,
        context_keys: Mapping[str, str],
        says: str,
        presser: Author,
        *,
        language: str | None = None,
        is_private: bool = True,
    ) -> Decision | None:
        """Store a person's decision about calls of tools; return None if the button says something else.

        What it decided is stored when this returns. Only then may the platform be told; pressed twice, it counts once.

        Args:
            says: What the pressed button says, such as "/allow 3".
            is_private: Whether no other person is in that conversation.

        Raises:
            StorageUnavailable: it is not stored: the platform has to deliver it again.
        """
        order = order_of(says)
        if order is None or order.is_showing:
            return None
        storage, keys = self._storage, ContextKeys.of(context_keys)
        context_id = await storage.read(lambda connection: find_context(connection, keys))
        message = InboundMessage("", presser, is_private=is_private)
        ruling = await self._access.judge(storage, message, context_keys, self._clock())
        if context_id is None or not ruling.is_admitted:
            return Decision(say("buttons.gone", language))
        decider = Decider(presser, is_owner=ruling.role is AccessRole.OWNER, is_private=is_private)
        transport = context_keys.get("transport", "")
        wakeup = Wakeup(context_id, EventKind.DECISION, not self._work.has(transport, context_id))

        def store(connection: Connection) -> Decision:
            made = decide_now(connection, context_id, order, decider, language, self._clock())
            if made.is_taken:
                notify_replicas(connection, [wakeup])
            return made

        decision = await storage.write(store, sort_key=(keys.digest,))
        if decision.is_taken:
            self._wake_here(transport, context_id, EventKind.DECISION)
        return decision

    def _wake_here(self, transport: str, context_id: int, kind: EventKind) -> None:
        if self._work.has(transport, context_id) or self._work.holds(context_id):
            self._wake(context_id, kind)


@dataclass(frozen=True, slots=True)
class _Inbound:
    """Events that a transport hands in together, with the keys of their contexts."""

    transport: str
    keyed: Sequence[tuple[InboundEvent, ContextKeys]]
    now: datetime
    work: LocalWork


def _store_all(connection: Connection, given: Sequence[_Inbound]) -> list[list[tuple[int, EventKind]]]:
    """Store events, and tell the other processes; return the contexts and kinds of those that were new."""
    accepted: list[list[tuple[int, EventKind]]] = []
    for each in given:
        found = [(insert_event(connection, each.transport, keys, event, each.now), event) for event, keys in each.keyed]
        of_program = EventKind.PROGRAM if each.transport.startswith(HOOKS) else None
        accepted.append(
            [(context_id, of_program or event.kind) for context_id, event in found if context_id is not None]
        )
    if connection.dialect.name == "postgresql":
        notify_replicas(
            connection,
            (
                Wakeup(context_id, kind, not each.work.has(each.transport, context_id))
                for each, new in zip(given, accepted, strict=True)
                for context_id, kind in new
            ),
        )
    return accepted
