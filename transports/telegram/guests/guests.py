"""Making a guest's answer visible: in the place of its stub, or for whoever asked where that is too late."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from telegram.error import RetryAfter, TelegramError

from botservice.people.names import GUEST
from botservice.turns.transport import Live, StreamRecord
from botservice.turns.turn import Delivery, StoredEvent
from transports.pacing import Pace
from transports.telegram.client import BotClient
from transports.telegram.failures import as_delivery_error, is_about_entities, is_not_modified, wait_of
from transports.telegram.guests.calls import change, is_closed, post
from transports.telegram.guests.planning import language_of
from transports.telegram.guests.stub import GuestStub
from transports.telegram.inbound import asked_as_guest
from transports.telegram.outgoing.canvases import Tempo

logger = logging.getLogger(__name__)


class Guests:
    """Shows that questions in chats that the bot is no member of are worked on, and sends their deliveries."""

    def __init__(self, client: BotClient, pace: Pace, tempo: Tempo) -> None:
        self._client = client
        self._pace = pace
        self._tempo = tempo

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live:
        """Return what answers at once where the answer takes longer."""
        language, soon = language_of(asked_as_guest(events)), self._tempo.first_sign
        return GuestStub(self._client, context_keys, language, record, after_seconds=soon)

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make a delivery visible and return its message's id.

        Raises:
            DeliveryError: it was not taken, or it is not known whether it was.
        """
        said: dict[str, Any] = dict(delivery.payload)
        try:
            return await self._show(context_keys[GUEST], said, delivery)
        except TelegramError as error:
            if is_not_modified(error):
                return delivery.external_id
            if isinstance(error, RetryAfter):
                self._pace.refused(context_keys[GUEST], wait_of(error))
            if not is_closed(error) or "asker" not in said:
                raise as_delivery_error(error) from error
            logger.warning("telegram.guest_too_late", extra={"delivery": delivery.id, "reason": error.message})
        await self._tell_asker(said)
        return None

    async def _show(self, query_id: str, said: Mapping[str, Any], delivery: Delivery) -> str:
        """Show what is said; without its formatting where only that is refused."""
        await self._pace.turn(query_id, delivery.turn_id)
        await delivery.confirm()
        try:
            return await self._put(query_id, said, delivery.external_id)
        except TelegramError as error:
            if not said.get("entities") or not is_about_entities(error):
                raise
            return await self._put(query_id, {"text": said["text"]}, delivery.external_id)

    async def _put(self, query_id: str, said: Mapping[str, Any], inline_message_id: str | None) -> str:
        if inline_message_id is None:
            return await post(self._client, query_id, said)
        await change(self._client, inline_message_id, said)
        return inline_message_id

    async def _tell_asker(self, said: Mapping[str, Any]) -> None:
        """Tell whoever asked in their own chat with the bot, where they have one; nobody else reads that.

        Raises:
            DeliveryError: they have none, or it was not taken.
        """
        await self._pace.turn(str(said["asker"]))
        try:
            await self._client.call("sendMessage", chat_id=said["asker"], text=f"{said['late']}\n\n{said['text']}")
        except TelegramError as error:
            raise as_delivery_error(error) from error
