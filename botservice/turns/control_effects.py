"""The effects of controls (stops, edits, deletions, moves), if they may take effect at the moment at which they would.

Between the moment at which one was accepted and this one, an owner may have taken its author out.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context, read_context_keys, rename_context
from botservice.core.errors import ClaimLost, StorageUnavailable
from botservice.core.messages import InboundMessage
from botservice.core.states import EventKind
from botservice.history.edit_queries import change_message, delete_message
from botservice.history.rows import NewWords
from botservice.people.usage import Payer
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.turns.call_queries import withdraw_question, withdraw_turn
from botservice.turns.delivery_queries import drop_stopped
from botservice.turns.edits_and_deletions import Controls, DueChanges, PendingControl, find_controls, read_words
from botservice.turns.event_queries import find_newest_change, mark_handled
from botservice.turns.merge_queries import forget_places, merge_contexts
from botservice.turns.message_parts import find_earlier, read_meant
from botservice.turns.resuming import SuspendedTurns
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Transport
from botservice.turns.turn import StoredEvent

logger = logging.getLogger(__name__)


class ControlEffects:
    """Judges and applies what takes effect in claimed contexts without a turn of its own."""

    def __init__(
        self, storage: Storage, options: RunOptions, transports: Mapping[str, Transport], attending: SuspendedTurns
    ) -> None:
        self._storage = storage
        self._access = options.access
        self._clock = options.clock
        self._transports = transports
        self._attending = attending
        self._budgets = options.budgets

    async def find(self, context_id: int) -> tuple[Controls, Mapping[str, str]]:
        """Return the controls of a context that have not taken effect, and its keys."""
        return await self._storage.read(
            lambda connection: (
                find_controls(connection, context_id, self._transports),
                read_context_keys(connection, context_id),
            )
        )

    async def find_newest(
        self, changes: Sequence[PendingControl], context_keys: Mapping[str, str]
    ) -> PendingControl | None:
        """Return the newest of some changes that may take effect."""
        for change in reversed(changes):
            if await self._may(change.event, change.transport, context_keys):
                return change
        return None

    async def stop_all(self, claim: Claim, stops: Sequence[PendingControl]) -> None:
        """Apply stops where no turn runs: the rest of answers that have begun to go out is dropped."""
        now, context_id = self._clock(), claim.context_id
        keys = await self._storage.read(lambda connection: read_context_keys(connection, context_id))
        stop = await self.find_newest(stops, keys)
        waiting = await self._attending.find_stopped(context_id, [each for each in stops if stop], self._transports)

        def write(connection: Connection) -> None:
            mark_handled(connection, [each.event.id for each in stops], now)
            if stop is not None:
                drop_stopped(connection, context_id, stop.order_key, now)
            for turn_id in waiting:
                withdraw_turn(connection, turn_id, now)

        await self._storage.write(write, fence=claim)
        logger.info("context.stopped", extra={"context": context_id})

    async def move(self, claim: Claim, change: PendingControl) -> bool:
        """Move a conversation to the keys that a control names; return whether it was moved.

        Where a person has spoken under them already, that becomes its end, as soon as no process works on it.

        Args:
            claim: On the conversation that moves.
        """
        keys = ContextKeys.of(json.loads(change.event.raw))
        newer = await self._storage.read(lambda connection: find_context(connection, keys))
        write = partial(_move, claim=claim, keys=keys, event_id=change.event.id, now=self._clock())
        if newer is None or newer == claim.context_id:
            await self._storage.write(partial(write, other=None), fence=claim)
            return True
        other = await self._storage.claims.try_claim(newer)
        if other is None:
            return False
        try:
            await self._storage.write(partial(write, other=other), fence=claim)
        finally:
            await asyncio.shield(self._storage.claims.release(other))
        logger.info("context.merged", extra={"context": claim.context_id})
        return True

    async def apply(self, due: DueChanges, claim: Claim) -> None:
        """Apply edits and deletions to the history. What cannot be read changes nothing, and is logged."""
        now, context_id = self._clock(), claim.context_id
        keys = await self._storage.read(lambda connection: read_context_keys(connection, context_id))
        by_message: dict[str, list[PendingControl]] = {}
        for change in due.changes:
            by_message.setdefault(change.external_id, []).append(change)
        for changes in by_message.values():
            words = await self._read_words(changes[-1], claim, keys)
            write = partial(_change, context_id=context_id, changes=changes, words=words, now=now)
            await self._storage.write(write, fence=claim, sort_key=(context_id,))
        if due.stale:
            # Of messages that are not kept: of a person who was not let in, perhaps.
            await self._storage.write(lambda connection: mark_handled(connection, due.stale, now), fence=claim)

    async def _read_words(
        self, change: PendingControl, claim: Claim, context_keys: Mapping[str, str]
    ) -> NewWords | None:
        """Return what an edited message says, if its author still has access."""
        if change.kind is EventKind.DELETE or not await self._may(change.event, change.transport, context_keys):
            return None
        transport = self._transports[change.transport]
        try:
            message = await self._read_change(change.event, claim, context_keys, transport)
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception:
            logger.exception("change.unreadable", extra={"event": change.event.id})
            return None
        return None if message is None else await read_words(message)

    async def _read_change(
        self, event: StoredEvent, claim: Claim, context_keys: Mapping[str, str], transport: Transport
    ) -> InboundMessage | None:
        """Return what a message says after a change: with its files, unless its author has sent too much for now."""
        message = await transport.peek(event)
        if message is not None and event.group_key is not None and not message.is_addressed:
            event, message = await self._as_part(event, message, claim, transport)
        if message is None or message.is_whole:
            return message
        if self._budgets.has_rates and message.is_addressed:
            payer = Payer.of(claim.context_id, context_keys, message.author)
            if await self._budgets.count_message(self._storage, payer, self._clock()) is not None:
                return message
        return await transport.read(event)

    async def _as_part(
        self, event: StoredEvent, message: InboundMessage, claim: Claim, transport: Transport
    ) -> tuple[StoredEvent, InboundMessage]:
        """Return a change of a part of a message, as one that means the bot where another part does."""
        earlier = await find_earlier(self._storage, claim.context_id, [event.group_key or ""], transport)
        parts = [*((each.event, each.message) for each in earlier), (event, message)]
        ((event, message),) = await read_meant([(event, message)], transport.peek, parts)
        return event, message

    async def turn_away_changes(self, claim: Claim) -> bool:
        """Drop the edits of people who have no access, while they wait for their message; return whether any do."""
        if await self._storage.read(self._access.is_idle):
            return False
        controls, keys = await self.find(claim.context_id)
        refused: list[int] = []
        for change in controls.changes:
            message = await self._transports[change.transport].peek(change.event) if change.event.raw else None
            if message is None or change.kind is EventKind.DELETE:
                continue
            ruling = await self._access.judge(self._storage, message, keys, self._clock())
            if not ruling.is_admitted:
                refused.append(change.event.id)
        if refused:
            now = self._clock()
            await self._storage.write(lambda connection: mark_handled(connection, refused, now), fence=claim)
            self._storage.scrub_soon()
        return bool(refused)

    async def _may(self, event: StoredEvent, transport: str, context_keys: Mapping[str, str]) -> bool:
        """Return whether an event may take effect now. One without an author may: the platform itself sent it.

        What cannot be read has no effect.
        """
        reader = self._transports.get(transport)
        if reader is None or await self._storage.read(self._access.is_idle):
            return True
        try:
            message = await reader.peek(event) if event.raw else None
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception:  # it must not keep what comes after it in this conversation
            logger.exception("turn.effect_unreadable", extra={"event": event.id})
            return False
        if message is None:
            return True
        ruling = await self._access.judge(self._storage, message, context_keys, self._clock())
        if not ruling.is_admitted:
            logger.info("turn.without_effect", extra={"event": event.id})
        return ruling.is_admitted


def _move(
    connection: Connection, claim: Claim, other: Claim | None, keys: ContextKeys, event_id: int, now: datetime
) -> None:
    mark_handled(connection, [event_id], now)
    forget_places(connection, claim.context_id)
    if other is not None:
        other.check()
        merge_contexts(connection, claim.context_id, other.context_id)
    rename_context(connection, ContextKeys.of(read_context_keys(connection, claim.context_id)), keys)


def _change(
    connection: Connection, context_id: int, changes: Sequence[PendingControl], words: NewWords | None, now: datetime
) -> None:
    """Give a message in the history its newest words, or delete it: also without access, its author may."""
    newest = changes[-1]
    mark_handled(connection, [each.event.id for each in changes], now)
    known = find_newest_change(connection, context_id, newest.external_id)
    if known is not None and known > newest.order_key:
        return  # a newer one took effect before this one had come
    if newest.kind is EventKind.DELETE:
        withdraw_question(connection, context_id, newest.external_id, now)
        delete_message(connection, context_id, newest.external_id)
    elif words is not None:
        change_message(connection, context_id, newest.external_id, words, now)
