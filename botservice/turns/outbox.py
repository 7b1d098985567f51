"""The outbox: deliveries in order, once if the platform confirms them, again if it did not take them."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import partial
from typing import Any, Final

from cachetools import LRUCache
from sqlalchemy import CursorResult, bindparam, case, exists, func, insert, literal, null, select, update

from botservice.core.errors import ClaimLost, DeliveryError, DeliveryInstead, StorageUnavailable
from botservice.history.queries import find_message
from botservice.privacy.export_queries import release_export
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.storage.orphaned_files import sweep_files
from botservice.storage.ranges import is_of
from botservice.storage.statements import execute_each
from botservice.storage.tables.conditions import DELIVERY_IS_MESSAGE, DELIVERY_IS_OWED
from botservice.storage.tables.conversations import deliveries, turns
from botservice.telemetry.measuring import Sending, TurnIdentity, in_turn, measured, turn_now
from botservice.turns.buttons import read_buttons
from botservice.turns.due_contexts import put_off
from botservice.turns.queries import when_due_was_set
from botservice.turns.retry_policies import DELIVERY_RETRIES, RetryPolicy, delivery_delay
from botservice.turns.transport import BUTTONS, OF_MESSAGE, OFFERED, THEN, Payload, Transport
from botservice.turns.turn import API, Delivery, DeliveryKind, DeliveryStatus, Turn, set_due

logger = logging.getLogger(__name__)

_TO_BE_SENT: Final = (DeliveryKind.MESSAGE, DeliveryKind.UNPLANNED)
Clock = Callable[[], datetime]
_MOST_REMEMBERED = 10_000  # messages of which it could not be stored that they were sent

_UPDATE = update(deliveries).where(deliveries.c.id == bindparam("row"))
# Whoever lost the conversation may have noted meanwhile that its message was sent.
_BEGIN = _UPDATE.where(DELIVERY_IS_OWED).values(status=DeliveryStatus.ATTEMPTING.value).returning(deliveries.c.id)
# What was forgotten while it was owed is not kept once it is sent.
_IS_FORGOTTEN = exists().where(turns.c.id == deliveries.c.turn_id, turns.c.compacted_at.is_not(None))
_FINISH = _UPDATE.values(
    payload=case((_IS_FORGOTTEN, literal({}, deliveries.c.payload.type)), else_=deliveries.c.payload),
    buttons=case((_IS_FORGOTTEN, null()), else_=deliveries.c.buttons),
)
# Without the right to a conversation: nobody has tried to send it since.
_FINISH_OWN_TRY = _FINISH.where(
    deliveries.c.status == DeliveryStatus.ATTEMPTING.value, deliveries.c.attempts == bindparam("tries")
)
_NAME_STREAM = _UPDATE.where(deliveries.c.external_id.is_(None))
_INSERT = insert(deliveries).returning(deliveries.c.id, sort_by_parameter_order=True)
_replaced = deliveries.alias("replaced")
# What stands in the place of another message goes out after that one: by then its id is known.
_REPLACED = select(_replaced.c.external_id).where(_replaced.c.id == deliveries.c.replaces).scalar_subquery()
_ACCEPTED = select(turns.c.created_at).where(turns.c.id == deliveries.c.turn_id).scalar_subquery()
NEXT: Final = (
    select(
        deliveries.c.id,
        deliveries.c.turn_id,
        deliveries.c.transport,
        deliveries.c.kind,
        deliveries.c.payload,
        deliveries.c.attempts,
        deliveries.c.due_at,
        func.coalesce(deliveries.c.external_id, _REPLACED).label("external_id"),
        deliveries.c.replaces,
        deliveries.c.created_at,
        _ACCEPTED.label("turn_created_at"),
        when_due_was_set(deliveries),
    )
    .where(
        DELIVERY_IS_OWED,
        is_of(deliveries, bindparam("context")),
        deliveries.c.transport.in_(bindparam("transports", expanding=True)),
        DELIVERY_IS_MESSAGE,
    )
    .order_by(deliveries.c.id)
    .limit(1)
)
_OWED = (
    select(*deliveries.c["id", "context_id", "turn_id", "kind", "status", "external_id"])
    .where(DELIVERY_IS_OWED, deliveries.c.context_id.in_(bindparam("contexts", expanding=True)))
    .order_by(deliveries.c.id)
)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message that a platform has taken, with its id there."""

    payload: Payload
    external_id: str | None

    def is_of(self, delivery: Delivery) -> bool:
        """Return whether a delivery owes this very message; behind it there may be others in the same row."""
        return json.dumps(self.payload, sort_keys=True) == json.dumps(delivery.payload, sort_keys=True)


class SendResult(Enum):
    """What became of a delivery: it is over, others are to be sent in its place, or it is tried again later."""

    OVER = auto()
    MORE = auto()
    LATER = auto()


class Outbox:
    """Sends the deliveries of contexts that the caller has claimed."""

    def __init__(
        self,
        storage: Storage,
        transports: Mapping[str, Transport],
        clock: Clock,
        retries: RetryPolicy = DELIVERY_RETRIES,
        *,
        most_at_once: int | None = None,
    ) -> None:
        """Make an outbox.

        Args:
            most_at_once: How many messages may be on their way to one platform; None for any number.
        """
        self._under_way: Counter[str] = Counter()
        self._sent: LRUCache[int, _Sent] = LRUCache(_MOST_REMEMBERED)
        self._most_at_once = most_at_once
        self._storage = storage
        self._transports = transports
        self._clock = clock
        self._retries = retries

    def may_send(self, transport: str) -> bool:
        """Return whether a platform takes messages so quickly that more may be on their way to it."""
        return self._most_at_once is None or self._under_way[transport] < self._most_at_once

    async def send(
        self, context_keys: Mapping[str, str], delivery: Delivery, claim: Claim, *, has_begun: bool = False
    ) -> SendResult:
        """Send the first delivery that a context owes; return what became of it.

        Args:
            has_begun: Whether it is stored as on its way already.
        """
        self._under_way[delivery.transport] += 1
        try:
            is_owed = has_begun or await self._begin(delivery, claim)
            return await self._go_on(context_keys, delivery, claim) if is_owed else SendResult.OVER
        finally:
            self._under_way[delivery.transport] -= 1

    async def _begin(self, delivery: Delivery, claim: Claim) -> bool:
        """Mark a delivery as on its way; return whether it is still owed: it may be forgotten or delivered by now."""
        values = {"row": delivery.id, "attempts": delivery.attempts + 1}
        return await self._storage.write(
            lambda connection: connection.execute(_BEGIN, values).one_or_none() is not None,
            fence=claim,
            sort_key=(claim.context_id,),
        )

    async def _go_on(self, context_keys: Mapping[str, str], delivery: Delivery, claim: Claim) -> SendResult:
        """Send a delivery that is stored as on its way; return what became of it."""
        if delivery.kind is DeliveryKind.UNPLANNED:
            return await self._plan(delivery, claim)
        now = self._clock
        sent = self._sent.get(delivery.id)
        if sent is not None and sent.is_of(delivery):
            return await self._note_sent(delivery, claim, sent)
        confirm = partial(self._storage.confirm, claim)
        await confirm()
        await self._storage.note_done(claim, "delivery", str(delivery.id), "sent")
        try:
            with _measuring(delivery, claim):
                external_id = await self._transports[delivery.transport].send(
                    context_keys, replace(delivery, confirm=confirm)
                )
        except (ClaimLost, StorageUnavailable):
            raise  # it was not sent
        except DeliveryInstead as other:
            await self._go_on_with(delivery, claim, other.payloads)
            return SendResult.MORE
        except DeliveryError as error:
            age = (now() - (delivery.created_at or now())).total_seconds()
            wait = delivery_delay(self._retries, error, delivery.attempts + 1, age)
            logger.warning(
                "delivery.postponed" if wait is not None else "delivery.failed",
                extra={"delivery": delivery.id, "turn": delivery.turn_id, "reason": str(error), "wait_seconds": wait},
            )
            if wait is not None:
                await self._put_off(delivery, claim, timedelta(seconds=wait), str(error))
                return SendResult.LATER
            await self._set(delivery, claim, status=DeliveryStatus.FAILED, finished_at=now(), error=str(error))
        except Exception as error:
            logger.exception("delivery.failed", extra={"delivery": delivery.id, "turn": delivery.turn_id})
            await self._set(
                delivery, claim, status=DeliveryStatus.FAILED, finished_at=now(), error=type(error).__name__
            )
        else:
            sent = self._sent[delivery.id] = _Sent(delivery.payload, external_id)
            return await self._note_sent(delivery, claim, sent)
        return SendResult.OVER

    async def _plan(self, delivery: Delivery, claim: Claim) -> SendResult:
        """Have the platform's messages made of a program's own words, for the next look to send."""
        find = partial(find_message, context_id=claim.context_id, message_id=_message_of(delivery.payload))
        message = await self._storage.read(find)
        now = self._clock()
        if message is None:
            reason = "its message was deleted"
            await self._set(delivery, claim, status=DeliveryStatus.FAILED, finished_at=now, error=reason)
            return SendResult.OVER
        buttons = read_buttons(delivery.payload.get(OFFERED))
        try:
            payloads = self._transports[delivery.transport].plan(replace(message, buttons=buttons), ())
        except Exception as error:  # transports are foreign code
            logger.exception("delivery.failed", extra={"delivery": delivery.id, "turn": delivery.turn_id})
            reason = type(error).__name__
            await self._set(delivery, claim, status=DeliveryStatus.FAILED, finished_at=now, error=reason)
            return SendResult.OVER
        if payloads:
            await self._go_on_with(delivery, claim, payloads, kind=DeliveryKind.MESSAGE.value)
        else:
            await self._set(delivery, claim, status=DeliveryStatus.DELIVERED, finished_at=now)
        return SendResult.MORE

    async def _note_sent(self, delivery: Delivery, claim: Claim, sent: _Sent) -> SendResult:
        """Store that a message was sent; where that fails, it is known and not sent again."""
        rest = _behind(delivery.payload)
        if rest:
            await self._go_on_with(delivery, claim, rest, external_id=None, replaces=None)
        else:
            done = {"external_id": sent.external_id or delivery.external_id, "finished_at": self._clock()}
            row = {"row": delivery.id, "status": DeliveryStatus.DELIVERED.value, **done}
            try:
                await self._storage.issue_for(row, _note_delivered, fence=claim, sort_key=(claim.context_id,))
            except (ClaimLost, StorageUnavailable):  # before another process has the conversation
                own = {**row, "tries": delivery.attempts + 1}
                await self._storage.write(lambda connection: connection.execute(_FINISH_OWN_TRY, own))
        if "file" in delivery.payload:  # a browser fetches its files later, by their address
            await self._release_archive(delivery.turn_id)
        self._sent.pop(delivery.id, None)
        return SendResult.MORE if rest else SendResult.OVER

    async def _release_archive(self, turn_id: int) -> None:
        """Delete an archive that a person has asked for once their platform has it."""
        if await self._storage.write(lambda connection: release_export(connection, turn_id)):
            await sweep_files(self._storage)

    async def _go_on_with(self, delivery: Delivery, claim: Claim, payloads: Sequence[Payload], **also: Any) -> None:
        """Replace a delivery by other messages: each is stored as sent before the next one is."""
        first, *behind = payloads
        payload = {**first, THEN: behind} if behind else dict(first)
        content = content_columns(payload) if BUTTONS in payload else {"payload": payload}
        now = self._clock()
        again = {**content, "attempts": 0, **set_due(now, now), **also}
        await self._set(delivery, claim, status=DeliveryStatus.PENDING, **again)

    async def _put_off(self, delivery: Delivery, claim: Claim, wait: timedelta, error: str) -> None:
        """Put a delivery off until its next try, and with it everything that its context has to do after it."""
        now = self._clock()
        again = {"row": delivery.id, "status": DeliveryStatus.PENDING.value, "error": error, **set_due(now + wait, now)}

        def write(connection: Connection) -> None:
            connection.execute(_UPDATE, again)
            put_off(connection, claim.context_id, now + wait, now)

        await self._storage.write(write, fence=claim, sort_key=(claim.context_id,))

    async def _set(self, delivery: Delivery, claim: Claim, *, status: DeliveryStatus, **values: Any) -> None:
        statement = _FINISH if "finished_at" in values else _UPDATE
        await self._storage.write(
            lambda connection: connection.execute(statement, {"row": delivery.id, "status": status.value, **values}),
            fence=claim,
            sort_key=(claim.context_id,),
        )


class StoredStream:
    """A visible stream of a turn, kept as a delivery from before it opens."""

    def __init__(self, storage: Storage, turn: Turn, claim: Claim, clock: Clock) -> None:
        self._storage = storage
        self._turn = turn
        self._claim = claim
        self._clock = clock
        self._row_id: int | None = None

    async def confirm(self) -> None:
        """Return if this process still has the turn, and may show something of it."""
        await self._storage.confirm(self._claim)

    async def opening(self) -> str | None:
        """Commit the intent; return the id of the message that an earlier process opened for this turn, if it did."""
        now = self._clock()
        new = _INSERT.values(
            context_id=self._turn.context_id,
            turn_id=self._turn.id,
            transport=self._turn.platform,
            kind=DeliveryKind.STREAM.value,
            status=DeliveryStatus.ATTEMPTING.value,
            payload={},
            attempts=1,
            due_at=now,
            created_at=now,
        )

        def write(connection: Connection) -> tuple[int, str | None]:
            known = _find_stream(_find_owed(connection, [self._turn.context_id]), self._turn.id)
            if known is not None:
                return known.id, known.external_id
            return connection.execute(new).scalar_one(), None

        self._row_id, external_id = await self._storage.write(write, fence=self._claim)
        return external_id

    async def opened(self, external_id: str) -> None:
        """Commit the platform's id of the message."""
        change = {"row": self._row_id, "external_id": external_id}
        try:
            await self._storage.write(lambda connection: connection.execute(_UPDATE, change), fence=self._claim)
        except (ClaimLost, StorageUnavailable):  # whoever goes on with the turn replaces it
            await self._storage.write(lambda connection: connection.execute(_NAME_STREAM, change))
            raise


def write_deliveries(connection: Connection, turn: Turn, payloads: Sequence[Payload], now: datetime) -> None:
    """Store the deliveries of an answer. An open stream of the turn becomes its first message."""
    owe(connection, turn, payloads, now)


def owe(connection: Connection, turn: Turn, payloads: Sequence[Payload], now: datetime) -> list[Delivery]:
    """Store the deliveries of a message, and return them in order."""
    return _write(connection, [_New(turn, payloads, now, _find_owed(connection, [turn.context_id]))])[0]


def begin_deliveries(
    connection: Connection, answers: Sequence[tuple[Turn, Sequence[Payload], datetime]]
) -> list[Delivery | None]:
    """Store the deliveries of answers, and return for each the first one, for the caller to send at once.

    It counts as on its way from this commit on. None if the context owes something older, which comes first.
    """
    context_ids = {turn.context_id for turn, payloads, _ in answers if turn.transport != API or payloads}
    owed = _find_owed(connection, list(context_ids)) if context_ids else ()
    new: list[_New] = []
    for turn, payloads, now in answers:
        of_context = [row for row in owed if row.context_id == turn.context_id]
        is_next = not any(row.kind in _TO_BE_SENT for row in of_context)
        new.append(_New(turn, payloads, now, of_context, has_begun=is_next))
    written = _write(connection, new)
    return [rows[0] if rows and each.has_begun else None for each, rows in zip(new, written, strict=True)]


@dataclass(frozen=True, slots=True)
class _New:
    """Messages of a turn that are about to be stored.

    Attributes:
        owed: What its context owes until now.
        has_begun: Whether the first of them is on its way.
    """

    turn: Turn
    payloads: Sequence[Payload]
    now: datetime
    owed: Sequence[Any]
    has_begun: bool = False


def _write(connection: Connection, given: Sequence[_New]) -> list[list[Delivery]]:
    """Store the messages of turns and return them."""
    rows: list[dict[str, Any]] = []
    written: list[list[tuple[int | None, str | None, Payload]]] = []
    for new in given:
        stream = _find_stream(new.owed, new.turn.id)
        of_turn = {"context_id": new.turn.context_id, "turn_id": new.turn.id, "transport": new.turn.platform}
        shown: list[tuple[int | None, str | None, Payload]] = []
        for payload in new.payloads:
            values = _values(payload, new.now, is_sent=new.has_begun and not shown)
            if stream is not None and stream.external_id is not None and not shown:
                connection.execute(_UPDATE, {"row": stream.id, **values})
                shown.append((stream.id, stream.external_id, values["payload"]))
            else:
                rows.append({**values, **of_turn, "created_at": new.now})
                shown.append((None, None, values["payload"]))
        if stream is not None and (stream.external_id is None or not shown):
            cut_off = {"status": DeliveryStatus.FAILED.value, "error": "cut off", "finished_at": new.now}
            connection.execute(_UPDATE, {"row": stream.id, **cut_off})
        written.append(shown)
    ids = iter(connection.execute(_INSERT, rows).scalars().all() if rows else ())
    return [
        [
            _pending(new, next(ids) if row_id is None else row_id, external_id, payload)
            for row_id, external_id, payload in shown
        ]
        for new, shown in zip(given, written, strict=True)
    ]


def _pending(new: _New, row_id: int, external_id: str | None, payload: Payload) -> Delivery:
    turn, kind, is_all = new.turn, DeliveryKind.MESSAGE, len(new.payloads) == 1
    of_row = (row_id, turn.id, turn.platform, kind, payload, 0, new.now, external_id)
    return Delivery(*of_row, created_at=new.now, is_all=is_all)


def _note_delivered(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Sequence[None]:
    """Store that messages were sent."""
    execute_each(connection, _FINISH, rows)
    return [None] * len(rows)


def _values(payload: Payload, now: datetime, *, is_sent: bool) -> dict[str, Any]:
    """Return the columns of a message that is to be sent, or is on its way."""
    return {
        "kind": DeliveryKind.MESSAGE.value,
        "status": DeliveryStatus.ATTEMPTING.value if is_sent else DeliveryStatus.PENDING.value,
        **content_columns(payload),
        "attempts": int(is_sent),
        **set_due(now, now),
    }


def content_columns(payload: Payload) -> dict[str, Any]:
    """Return the columns with the payload and its buttons, by which a press is understood."""
    content = dict(payload)
    buttons = content.pop(BUTTONS, None)
    return {"payload": content, "buttons": buttons}


def find_next_delivery(connection: Connection, context_id: int, transports: Collection[str]) -> Delivery | None:
    """Return the first delivery of a context that is still owed; a stream that is open is its turn's."""
    return read_delivery(connection.execute(NEXT, {"context": context_id, "transports": list(transports)}))


def read_delivery(found: CursorResult[Any]) -> Delivery | None:
    """Return the delivery that a query as `NEXT` has found."""
    row = found.one_or_none()
    if row is None:
        return None
    return Delivery(
        row.id,
        row.turn_id,
        row.transport,
        DeliveryKind(row.kind),
        row.payload,
        row.attempts,
        row.due_at,
        row.external_id,
        row.due_set_at,
        row.replaces is not None,
        row.created_at,
        row.turn_created_at,
    )


def _message_of(payload: Mapping[str, object]) -> int:
    """Return the number of the message that an unplanned delivery is about; 0 for one that is no number."""
    number = payload.get(OF_MESSAGE)
    return number if isinstance(number, int) else 0


@contextmanager
def _measuring(delivery: Delivery, claim: Claim) -> Iterator[None]:
    """Measure an attempt to send, as a part of the turn whose message it is."""
    accepted_at = delivery.turn_created_at
    turn = TurnIdentity(delivery.turn_id, claim.context_id, delivery.transport, accepted_at) if accepted_at else None
    with (
        nullcontext() if turn is None or turn_now() is not None else in_turn(turn),
        measured(Sending(delivery.transport, delivery.attempts + 1)),
    ):
        yield


def _behind(payload: Payload) -> Sequence[Payload]:
    """Return the payloads to send right after a message."""
    behind = payload.get(THEN)
    return behind if isinstance(behind, list) else ()


def _find_owed(connection: Connection, context_ids: Sequence[int]) -> Sequence[Any]:
    return connection.execute(_OWED, {"contexts": context_ids}).all()


def _find_stream(owed: Sequence[Any], turn_id: int) -> Any | None:
    """Return the newest open stream of a turn."""
    streams = (row for row in reversed(owed) if row.turn_id == turn_id and row.kind == DeliveryKind.STREAM.value)
    return next((row for row in streams if row.status == DeliveryStatus.ATTEMPTING.value), None)
