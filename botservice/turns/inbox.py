"""Accepting events from platforms: each is stored once, with its turn, before the platform is told so.

A message has a turn of its own, or joins one that waits because it came soon after; without room, none is taken.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NoReturn

from sqlalchemy import bindparam, delete, func, insert, select, update

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context, find_or_insert_context
from botservice.core.errors import InboxFull, StorageUnavailable
from botservice.core.messages import Author, InboundMessage
from botservice.people.access import Access
from botservice.people.access_values import AccessRole
from botservice.storage.activity import in_background
from botservice.storage.database import Connection, Storage
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conditions import TURN_IS_OPEN, TURN_IS_QUEUED
from botservice.storage.tables.conversations import contexts, events, turns
from botservice.texts.formatted import say
from botservice.turns.deciding import Decider, Decision, decide_now
from botservice.turns.parsing_decisions import order_of
from botservice.turns.queries import count_waiting, insert_turn
from botservice.turns.run_options import Clock
from botservice.turns.turn import EventKind, InboundEvent, Share, TurnStatus, set_due
from botservice.turns.wakeups import Wakeup, notify_replicas

logger = logging.getLogger(__name__)

MAX_WAITING = 10_000
MAX_STORING = 1_000
MAX_STORING_BYTES = 64 * 1024 * 1024
_LOOK_SECONDS = 1.0
GATHERING = timedelta(seconds=1.5)  # how long the rest of a message is waited for that looks incomplete
MAX_OWN_TURNS = 10  # beyond so many that wait in a context, messages share turns
MAX_JOINED = 50  # and no turn is shared by more than so many, or no prompt could hold it

_COUNT_WAITING = (
    select(func.count()).select_from(turns).where(TURN_IS_OPEN, turns.c.context_id == contexts.c.id, TURN_IS_QUEUED)
)
_NEW_TURN = ("transport", "status", "order_key", "due_at", "created_at")
# One statement on the accepting path: a turn of its own, where its context is there and does not have enough of them.
_INSERT_OWN_TURN = (
    insert(turns)
    .from_select(
        ["context_id", *_NEW_TURN],
        select(contexts.c.id, *(bindparam(name, type_=turns.c[name].type) for name in _NEW_TURN)).where(
            contexts.c.key_hash == bindparam("key_hash"), _COUNT_WAITING.scalar_subquery() < MAX_OWN_TURNS
        ),
    )
    .returning(turns.c.id, turns.c.context_id)
)
_LAST_WAITING = (
    select(turns.c.id)
    .where(
        TURN_IS_OPEN,
        turns.c.context_id == bindparam("context"),
        TURN_IS_QUEUED,
        turns.c.transport == bindparam("transport"),
        turns.c.order_key <= bindparam("order_key"),
    )
    .order_by(turns.c.order_key.desc(), turns.c.id.desc())
    .limit(1)
)
# While a process begins the turn, this waits for the outcome: what joins is read with it, or does not join.
_JOIN_TURN = (
    update(turns)
    .where(turns.c.id == bindparam("turn"), TURN_IS_QUEUED, turns.c.joined_events < MAX_JOINED)
    .values(joined_events=turns.c.joined_events + 1)
    .returning(turns.c.id)
)
_UPDATE_TURN = update(turns).where(turns.c.id == bindparam("turn"))
_LEAVE_TURN = _UPDATE_TURN.values(joined_events=turns.c.joined_events - 1)
_insert_event = of_each_database(
    lambda insert: insert(events).on_conflict_do_nothing(index_elements=["key"]).returning(events.c.id)
)
_GATHERING_TURN = (
    select(turns.c.id)
    .join(events, events.c.turn_id == turns.c.id)
    .where(
        TURN_IS_OPEN,
        turns.c.context_id == bindparam("context"),
        TURN_IS_QUEUED,
        events.c.group_key == bindparam("group"),
    )
    .limit(1)
)

_BY_KEY = select(events.c.id, events.c.received_at).where(events.c.key == bindparam("key"))
_LET_GO = update(events).where(events.c.id == bindparam("row")).values(key=bindparam("as_key"))

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
            access: Who is let in, and who owns the service; by default everybody is, and nobody does.
        """
        self._storage = storage
        self._wake = wake
        self._clock = clock or storage.now
        self._pressure = pressure or Pressure()
        self._work = work
        self._access = access or Access()

    @property
    def access(self) -> Access:
        """Decides who is let in."""
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
            is_private: Whether nobody else is in that conversation.

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
        accepted.append([(context_id, event.kind) for context_id, event in found if context_id is not None])
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


def insert_event(
    connection: Connection, transport: str, keys: ContextKeys, event: InboundEvent, now: datetime
) -> int | None:
    """Store an event and the turn that will answer it; return its context, or None if it is known already."""
    turn_id, is_own_turn = None, False
    own = _insert_own_turn(connection, keys, transport, event, now) if event.kind is EventKind.MESSAGE else None
    if own is not None:
        (turn_id, context_id), is_own_turn = own, True
    else:
        context_id = find_or_insert_context(connection, keys, now)
        if event.kind is EventKind.MESSAGE:
            turn_id, is_own_turn = _find_or_insert_turn(connection, context_id, transport, event, now)
    values = {
        "key": event.key,
        "context_id": context_id,
        "turn_id": turn_id,
        "transport": transport,
        "kind": event.kind.value,
        "order_key": event.order_key,
        "group_key": event.group_key,
        "external_id": event.external_id,
        "raw": event.raw,
        "received_at": now,
    }
    event_id = connection.execute(_insert_event(connection), values).scalar_one_or_none()
    if event_id is not None:
        return context_id
    if is_own_turn:
        connection.execute(delete(turns).where(turns.c.id == turn_id))
    elif turn_id is not None:
        connection.execute(_LEAVE_TURN, {"turn": turn_id})
    return None


def find_event(connection: Connection, key: str) -> tuple[int, datetime] | None:
    """Return the id of the event with a key, and when it came."""
    row = connection.execute(_BY_KEY, {"key": key}).one_or_none()
    return None if row is None else (row.id, row.received_at)


def let_go_of_key(connection: Connection, event_id: int, key: str) -> None:
    """Have an event keep its key under another name, so that a new one may have it."""
    connection.execute(_LET_GO, {"row": event_id, "as_key": f"{key}#{event_id}"})


def _find_or_insert_turn(
    connection: Connection, context_id: int, transport: str, event: InboundEvent, now: datetime
) -> tuple[int, bool]:
    """Return the turn that a message belongs to, and whether it was made for it."""
    gathering = _gather(connection, context_id, event, now)
    if gathering is not None:
        return gathering, False
    sought = {"context": context_id, "transport": transport, "order_key": event.order_key}
    shared = connection.execute(_LAST_WAITING, sought).scalar_one_or_none()
    if shared is not None and _join(connection, shared):
        return int(shared), False
    due_at = _due_at(event, now)
    return insert_turn(connection, context_id, transport, now, order_key=event.order_key, due_at=due_at), True


def _insert_own_turn(
    connection: Connection, keys: ContextKeys, transport: str, event: InboundEvent, now: datetime
) -> tuple[int, int] | None:
    """Store a turn for a message and return it with its context.

    Returns:
        None where the context is not there, or has enough turns, or where the message is a part of another one.
    """
    if event.group_key is not None:
        return None
    values = {
        "key_hash": keys.digest,
        "transport": transport,
        "status": TurnStatus.QUEUED.value,
        "order_key": event.order_key,
        "due_at": _due_at(event, now),
        "created_at": now,
    }
    row = connection.execute(_INSERT_OWN_TURN, values).one_or_none()
    return None if row is None else (row.id, row.context_id)


def _due_at(event: InboundEvent, now: datetime) -> datetime:
    return now + GATHERING if event.is_incomplete or event.group_key is not None else now


def _join(connection: Connection, turn_id: int) -> bool:
    """Add one more event to a turn and return True; False if the turn has begun, or is full."""
    return connection.execute(_JOIN_TURN, {"turn": turn_id}).scalar_one_or_none() is not None


def _gather(connection: Connection, context_id: int, event: InboundEvent, now: datetime) -> int | None:
    """Return the queued turn with the other parts of the same message, and let it wait a little longer for more."""
    if event.group_key is None:
        return None
    sought = {"context": context_id, "group": event.group_key}
    turn_id = connection.execute(_GATHERING_TURN, sought).scalar_one_or_none()
    if turn_id is None or not _join(connection, turn_id):
        return None
    connection.execute(_UPDATE_TURN, {"turn": turn_id, **set_due(now + GATHERING, now)})
    return int(turn_id)
