"""Taking in what Telegram delivers, whichever way it comes: stored when `accept` returns."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from telegram.error import TelegramError

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.errors import InboxFull
from botservice.core.messages import Author
from botservice.core.states import EventKind
from botservice.people.names import chat_name, person_name
from botservice.storage.database import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent
from transports.common.connected_transport import Intake
from transports.common.json_fields import integer
from transports.telegram.button_presses import acknowledge, read_press
from transports.telegram.context import TelegramContext
from transports.telegram.inbound_events import Membership, is_press, membership_of, migration_of, place_of, read_event
from transports.telegram.queries import move_group
from transports.telegram.reactions import keep_reaction, reaction_of

logger = logging.getLogger(__name__)

_TRANSPORT = "telegram"
_HEARD = "👌"


class TelegramIntake(Intake):
    """Hands updates to the inbox, and does what cannot wait for a turn."""

    def __init__(self, telegram: TelegramContext) -> None:
        super().__init__()
        self._telegram = telegram

    async def accept(self, updates: Sequence[object]) -> None:
        """Store what updates bring.

        Raises:
            StorageUnavailable: it is not stored; InboxFull: nor will it be for now, save for stops and other controls.
        """
        inbox, storage = self.opened()
        try:
            stops = await self._take_in(updates, inbox, storage)
        except InboxFull:
            found = [read_event(update, self._telegram.bot) for update in updates]
            await inbox.accept(_TRANSPORT, [each for each in found if each and each.kind is not EventKind.MESSAGE])
            raise
        for place in stops:
            self._background.start(self._react(*place), name="telegram-reaction")

    async def _take_in(self, updates: Sequence[object], inbox: Inbox, storage: Storage) -> list[tuple[int, int]]:
        """Store what updates bring, and return which messages were stops."""
        events: list[InboundEvent] = []
        stops: list[tuple[int, int]] = []
        for update in updates:
            event = read_event(update, self._telegram.bot)
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
                await move_to_supergroup(update, inbox, storage, *migration, bot_id=self._telegram.bot.id)
            elif (membership := membership_of(update)) is not None:
                await self._note(membership)
            elif (reaction := reaction_of(update)) is not None:
                await keep_reaction(reaction, inbox, storage)
        await inbox.accept(_TRANSPORT, events)
        return stops

    async def _press(self, update: Mapping[str, Any], inbox: Inbox, storage: Storage) -> None:
        """Store what a pressed button says, once for each keyboard, and have the presser see it.

        What it decides about calls of tools is carried out at once; the message that asked will say so itself.
        """
        press = await read_press(update, self._telegram.bot, storage)
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
        self._background.start(acknowledge(self._telegram, press, is_new=is_new), name="telegram-press")

    async def _note(self, membership: Membership) -> None:
        """Take note of who has brought the bot into a group, or that it is gone."""
        chat = chat_name(membership.keys)
        logger.info("telegram.membership", extra={"chat": chat, "status": membership.status})
        if not membership.is_private:
            is_new = not membership.was_there and membership.by is not None
            inviter = person_name(Author(_TRANSPORT, str(membership.by))) if is_new else None
            await self.note_membership(chat, inviter, is_there=membership.is_there)

    async def _react(self, chat_id: int, message_id: int) -> None:
        """Show the sender of /stop that it was received: where nothing runs, nothing else would."""
        try:
            await self._telegram.client.call(
                "setMessageReaction",
                chat_id=chat_id,
                message_id=message_id,
                reaction=[{"type": "emoji", "emoji": _HEARD}],
            )
        except TelegramError as error:
            logger.debug("telegram.reaction_failed", extra={"reason": type(error).__name__})


async def move_to_supergroup(
    update: object, inbox: Inbox, storage: Storage, old: Mapping[str, str], new: Mapping[str, str], *, bot_id: int
) -> None:
    """Have a group's conversation go on in the supergroup that it has become.

    Where people have spoken there already, that waits for the turns of both, and nothing else waits for it.
    """
    before, after = ContextKeys.of(old), ContextKeys.of(new)

    if await storage.write(lambda connection: move_group(connection, old, new)):
        logger.info("telegram.group_moved")
    elif await storage.read(lambda connection: find_context(connection, before)) is not None:
        order = integer(update, "update_id") or 0
        raw = json.dumps(dict(after.values)).encode()
        await inbox.accept(_TRANSPORT, [InboundEvent(f"telegram:{bot_id}:{order}", old, order, raw, EventKind.MOVE)])
