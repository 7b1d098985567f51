"""The Discord transport: what botservice needs to hear people there, and to answer them once."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from answers import plan_answer, token_of
from client import DiscordClient, TokenExpired
from growing import GrowingAnswer
from interactions import BUTTON, COMMAND, COMMANDS, PING, Signature, as_event, as_message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from botservice import (
    Capabilities,
    Delivery,
    DeliveryError,
    EventKind,
    InboundMessage,
    Inbox,
    InboxFull,
    Live,
    Message,
    Storage,
    StorageUnavailable,
    StoredEvent,
    StreamRecord,
    Transport,
)

logger = logging.getLogger(__name__)

API_URL: Final = "https://discord.com/api/v10"
PATH: Final = "/discord/interactions"
_PONG: Final = {"type": 1}
_THINKING: Final = {"type": 5}  # a message that says so, and becomes the answer
_ONLY_FOR_THEM: Final = 64


class DiscordTransport(Transport):
    """A bot in Discord that is reached by interactions over HTTP.

    Attributes:
        routes: Where Discord delivers.
    """

    name = "discord"
    capabilities = Capabilities(
        label="Discord", streaming="a message that is edited", buttons="below the message", approval="buttons"
    )

    def __init__(
        self,
        *,
        application_id: str,
        public_key: str,
        token: str,
        api_url: str = API_URL,
        edit_pause_seconds: float = 1.5,
    ) -> None:
        self._client = DiscordClient(application_id, token, api_url)
        self._signature = Signature(public_key)
        self._edit_pause_seconds = edit_pause_seconds
        self._inbox: Inbox | None = None
        self.routes: Sequence[BaseRoute] = [Route(PATH, self._take, methods=["POST"])]

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Begin to take in."""
        self._inbox = inbox
        try:
            await self._client.set_commands(COMMANDS)
        except DeliveryError as error:
            logger.warning("discord.commands_not_set", extra={"reason": str(error)})

    async def stop(self) -> None:
        """Take in no more; answers may still go out."""
        self._inbox = None

    async def close(self) -> None:
        """Let go of every connection."""
        await self._client.close()

    def describe(self) -> str:
        """Return how it is reached, in a few words."""
        return f"by interactions at {PATH}"

    async def _take(self, request: Request) -> Response:
        """Store what Discord delivers, and only then say that it arrived."""
        body = await request.body()
        signature = request.headers.get("x-signature-ed25519", "")
        if not self._signature.is_good(body, signature, request.headers.get("x-signature-timestamp", "")):
            return Response("not signed by Discord", 401)
        interaction = json.loads(body)
        if interaction["type"] == PING:
            return JSONResponse(_PONG)
        if interaction["type"] not in (COMMAND, BUTTON):
            return Response("neither a command nor a button", 400)
        return JSONResponse(await self._accept(body))

    async def _accept(self, body: bytes) -> dict[str, Any]:
        """Return what Discord shows for now. It does not deliver again, so where nothing can be stored, it says so."""
        event = as_event(body)
        try:
            if self._inbox is None:
                return _aside("I am being restarted: say that again in a moment, please.")
            await self._inbox.accept(self.name, [event])
        except (StorageUnavailable, InboxFull):
            return _aside("I cannot take anything in just now: say that again in a moment, please.")
        return _aside("Stopped.") if event.kind is EventKind.STOP else _THINKING

    async def read(self, event: StoredEvent) -> InboundMessage | None:
        """Return what an event says."""
        return as_message(event.raw)

    def is_shared(self, context_keys: Mapping[str, str]) -> bool:
        """Return that several people may read a conversation."""
        return True

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Mapping[str, Any]]:
        """Return the messages that make answer visible, in order."""
        return plan_answer(answer, events)

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make one message visible and return its id. Done twice, it is visible once.

        Raises:
            DeliveryError: it was not taken; DeliveryRefused: it never will be.
        """
        message = {**delivery.payload, "allowed_mentions": {"parse": []}}  # a model pings nobody
        token = message.pop("token", None)
        if delivery.external_id is not None:
            await self._client.edit(context_keys["channel_id"], delivery.external_id, {"components": [], **message})
            return delivery.external_id
        if isinstance(token, str):
            try:
                return await self._client.edit_first(token, message)
            except TokenExpired:
                pass  # it took longer than 15 minutes: the channel takes it as a message of its own
        return await self._client.send(context_keys["channel_id"], message, nonce=f"botservice-{delivery.id}")

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows an answer while it is written; None where nobody waits for it."""
        return GrowingAnswer(self._client, token_of(events[-1]), self._edit_pause_seconds) if events else None


def _aside(text: str) -> dict[str, Any]:
    return {"type": 4, "data": {"content": text, "flags": _ONLY_FOR_THEM}}
