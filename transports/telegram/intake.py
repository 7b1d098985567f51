"""Taking in what Telegram delivers, whichever way it comes: stored when `accept` returns."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from telegram.error import TelegramError

from botservice.core.errors import InboxFull, StorageUnavailable
from botservice.core.messages import Author
from botservice.core.states import EventKind
from botservice.people.access_queries import note_departure, note_invitation
from botservice.people.names import chat_name, person_name
from botservice.storage.database import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent
from transports.common.background_tasks import Errands
from transports.telegram.button_presses import TelegramChoices, acknowledge, read_press
from transports.telegram.client import BotClient
from transports.telegram.inbound_events import (
    BotIdentity,
    Membership,
    is_press,
    membership_of,
    migration_of,
    place_of,
    read_event,
)
from transports.telegram.reactions import keep_reaction, reaction_of
from transports.telegram.supergroups import move_to_supergroup

logger = logging.getLogger(__name__)

_TRANSPORT = "telegram"
_HEARD = "👌"


class TelegramIntake:
    """Hands updates to the inbox, and does what cannot wait for a turn."""

    def __init__(self, client: BotClient, identity: Callable[[], BotIdentity], choices: TelegramChoices) -> None:
        self._client = client
        self._choices = choices
        self._identity = identity
        self._inbox: Inbox | None = None
        self._storage: Storage | None = None
        self._errands = Errands()

    def open(self, inbox: Inbox, storage: Storage) -> None:
        """Begin to take in."""
        self._inbox, self._storage = inbox, storage

    async def close(self) -> None:
        """Take in no more."""
        self._inbox = None
        await self._errands.close()

    async def accept(self, updates: Sequence[object]) -> None:
        """Store what updates bring.

        Raises:
            StorageUnavailable: it is not stored; InboxFull: nor will it be for now, save for stops and other controls.
        """
        inbox, storage = self._inbox, self._storage
        if inbox is None or storage is None:
            raise StorageUnavailable("this process takes in nothing at the moment")
        try:
            stops = await self._take_in(updates, inbox, storage)
        except InboxFull:
            found = [read_event(update, self._identity()) for update in updates]
            await inbox.accept(_TRANSPORT, [each for each in found if each and each.kind is not EventKind.MESSAGE])
            raise
        for place in stops:
            self._errands.send(self._react(*place), name="telegram-reaction")

    async def _take_in(self, updates: Sequence[object], inbox: Inbox, storage: Storage) -> list[tuple[int, int]]:
        """Store what updates bring, and return which messages were stops."""
        events: list[InboundEvent] = []
        stops: list[tuple[int, int]] = []
        for update in updates:
            event = read_event(update, self._identity())
            if event is not None:
                events.append(event)
                if event.kind is EventKind.STOP and (place := place_of(update)) is not None:
                    stops.append(place)
            elif isinstance(update, Mapping) and is_press(update):
                await inbox.accept(_TRANSPORT, events)
                events.clear()
                await self._press(update, inbox, storage)
            elif (migration := migration_of(update)) is not None:
                await inbox.accept(_TRANSPORT, events)  # what was said before belongs to the conversation that moves
                events.clear()
                await move_to_supergroup(update, inbox, storage, *migration, bot_id=self._identity().id)
            elif (membership := membership_of(update)) is not None:
                await self._note(storage, membership)
            elif (reaction := reaction_of(update)) is not None:
                await keep_reaction(storage, reaction)
        await inbox.accept(_TRANSPORT, events)
        return stops

    async def _press(self, update: Mapping[str, Any], inbox: Inbox, storage: Storage) -> None:
        """Store what a pressed button says, once for each keyboard, and have the presser see it.

        What it decides about calls of tools is carried out at once; the message that asked will say so itself.
        """
        press = await read_press(update, self._identity(), storage)
        if press is None:
            return
        is_new, decision = False, None
        if press.event is not None and press.presser is not None:
            decision = await inbox.decide(
                press.event.context_keys,
                press.says,
                press.presser,
                language=press.language,
                is_private=int(press.event.context_keys["chat_id"]) > 0,
            )
        if decision is not None:
            press = replace(press, told=decision.text.plain)
            is_new = decision.is_taken and press.is_on_copy
        elif press.event is not None:
            is_new = await inbox.accept(_TRANSPORT, [press.event]) > 0
        self._errands.send(
            acknowledge(self._client, press, is_new=is_new, choices=self._choices), name="telegram-press"
        )

    async def _note(self, storage: Storage, membership: Membership) -> None:
        """Take note of who has brought the bot into a group, or that it is gone: access may depend on that."""
        chat = chat_name(membership.keys)
        logger.info("telegram.membership", extra={"chat": chat, "status": membership.status})
        if membership.is_private:
            return
        if not membership.is_there:
            await storage.write(lambda connection: note_departure(connection, chat))
        elif not membership.was_there and membership.by is not None:
            person = person_name(Author(_TRANSPORT, str(membership.by)))
            now = storage.now()
            await storage.write(lambda connection: note_invitation(connection, chat, person, now))

    async def _react(self, chat_id: int, message_id: int) -> None:
        """Show the sender of /stop that it was heard: where nothing runs, nothing else would."""
        try:
            await self._client.call(
                "setMessageReaction",
                chat_id=chat_id,
                message_id=message_id,
                reaction=[{"type": "emoji", "emoji": _HEARD}],
            )
        except TelegramError as error:
            logger.debug("telegram.reaction_failed", extra={"reason": type(error).__name__})
