"""The outbox: deliveries in order, once if the platform confirms them, again if it did not take them.

A message that a platform refuses for now, such as with a 429, is stored with the time of its next try, which
`retry_policies.py` tells. How fast a process sends is up to its transports.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import partial
from typing import Any

from cachetools import LRUCache

from botservice.core.errors import ClaimLost, DeliveryError, DeliveryInstead, StorageUnavailable
from botservice.core.states import DeliveryKind, DeliveryStatus
from botservice.history.queries import find_message
from botservice.privacy.right_queries import release_export
from botservice.storage.blobs import sweep_files
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.telemetry.instrumentation import Sending, TurnIdentity, in_turn, measured, turn_now
from botservice.turns.backlog_queries import put_off
from botservice.turns.buttons import read_buttons
from botservice.turns.delivery_queries import (
    begin_delivery,
    change_delivery,
    content_columns,
    find_or_insert_stream,
    name_stream,
    note_delivered,
    note_own_try_delivered,
)
from botservice.turns.retry_policies import DELIVERY_RETRIES, RetryPolicy, delivery_delay
from botservice.turns.transport import BUTTONS, OF_MESSAGE, OFFERED, THEN, Payload, Transport
from botservice.turns.turn import Delivery, Turn, set_due

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]
_MOST_REMEMBERED = 10_000  # messages of which it could not be stored that they were sent


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
            content: Mapping[str, Any] | None = {}
            if delivery.kind is DeliveryKind.UNPLANNED:
                content = await self._plan(delivery, claim)
                delivery = replace(delivery, kind=DeliveryKind.MESSAGE, payload=content["payload"] if content else {})
            if content is None or not (has_begun or await self._begin(delivery, claim, content)):
                return SendResult.OVER
            return await self._go_on(context_keys, delivery, claim)
        finally:
            self._under_way[delivery.transport] -= 1

    async def _begin(self, delivery: Delivery, claim: Claim, content: Mapping[str, Any]) -> bool:
        """Mark a delivery as on its way; return whether it is still owed: it may be forgotten or delivered by now."""
        return await self._storage.write(
            lambda connection: begin_delivery(connection, delivery.id, delivery.attempts + 1, content),
            fence=claim,
            sort_key=(claim.context_id,),
        )

    async def _go_on(self, context_keys: Mapping[str, str], delivery: Delivery, claim: Claim) -> SendResult:
        """Send a delivery that is stored as on its way; return what became of it."""
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
                await self._store_next_try(delivery, claim, timedelta(seconds=wait), str(error))
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

    async def _plan(self, delivery: Delivery, claim: Claim) -> Mapping[str, Any] | None:
        """Return the columns with the messages of a program's own words; None where nothing is to be sent."""
        find = partial(find_message, context_id=claim.context_id, message_id=_message_of(delivery.payload))
        message = await self._storage.read(find)
        reason = "its message was deleted"
        payloads: Sequence[Payload] = ()
        if message is not None:
            buttons = read_buttons(delivery.payload.get(OFFERED))
            try:
                payloads = self._transports[delivery.transport].plan(replace(message, buttons=buttons), ())
                reason = ""
            except Exception as error:  # transports are foreign code
                logger.exception("delivery.failed", extra={"delivery": delivery.id, "turn": delivery.turn_id})
                reason = type(error).__name__
        if payloads:
            return {"kind": DeliveryKind.MESSAGE.value, **content_columns(_in_one(payloads))}
        status = DeliveryStatus.FAILED if reason else DeliveryStatus.DELIVERED
        await self._set(delivery, claim, status=status, finished_at=self._clock(), error=reason or None)
        return None

    async def _note_sent(self, delivery: Delivery, claim: Claim, sent: _Sent) -> SendResult:
        """Store that a message was sent; where that fails, it is known and not sent again."""
        rest = _behind(delivery.payload)
        if rest:
            await self._go_on_with(delivery, claim, rest, external_id=None, replaces=None)
        else:
            done = {"external_id": sent.external_id or delivery.external_id, "finished_at": self._clock()}
            row = {"row": delivery.id, "status": DeliveryStatus.DELIVERED.value, **done}
            try:
                await self._storage.issue_for(row, note_delivered, fence=claim, sort_key=(claim.context_id,))
            except (ClaimLost, StorageUnavailable):  # before another process has the conversation
                own = {**row, "tries": delivery.attempts + 1}
                await self._storage.write(lambda connection: note_own_try_delivered(connection, own))
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
        payload = _in_one(payloads)
        content = content_columns(payload) if BUTTONS in payload else {"payload": payload}
        now = self._clock()
        again = {**content, "attempts": 0, **set_due(now, now), **also}
        await self._set(delivery, claim, status=DeliveryStatus.PENDING, **again)

    async def _store_next_try(self, delivery: Delivery, claim: Claim, wait: timedelta, error: str) -> None:
        """Store when a refused message is sent again, and put off what its context has to do after it."""
        now = self._clock()
        again = {"row": delivery.id, "status": DeliveryStatus.PENDING.value, "error": error, **set_due(now + wait, now)}

        def write(connection: Connection) -> None:
            change_delivery(connection, again)
            put_off(connection, claim.context_id, now + wait, now)

        await self._storage.write(write, fence=claim, sort_key=(claim.context_id,))

    async def _set(self, delivery: Delivery, claim: Claim, *, status: DeliveryStatus, **values: Any) -> None:
        change = {"row": delivery.id, "status": status.value, **values}
        await self._storage.write(
            lambda connection: change_delivery(connection, change), fence=claim, sort_key=(claim.context_id,)
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

        def write(connection: Connection) -> tuple[int, str | None]:
            return find_or_insert_stream(connection, self._turn, now)

        self._row_id, external_id = await self._storage.write(write, fence=self._claim)
        return external_id

    async def opened(self, external_id: str) -> None:
        """Commit the platform's id of the message."""
        change = {"row": self._row_id, "external_id": external_id}
        try:
            await self._storage.write(lambda connection: change_delivery(connection, change), fence=self._claim)
        except (ClaimLost, StorageUnavailable):  # whoever goes on with the turn replaces it
            await self._storage.write(lambda connection: name_stream(connection, change))
            raise


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


def _in_one(payloads: Sequence[Payload]) -> Payload:
    """Return messages as the payload of one delivery: the first one, and behind it the others."""
    first, *behind = payloads
    return {**first, THEN: behind} if behind else dict(first)


def _behind(payload: Payload) -> Sequence[Payload]:
    """Return the payloads to send right after a message."""
    behind = payload.get(THEN)
    return behind if isinstance(behind, list) else ()
