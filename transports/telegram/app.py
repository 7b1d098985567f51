"""The Telegram transport: its parts, put together."""

import asyncio
import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from starlette.routing import BaseRoute, Route
from telegram.error import InvalidToken, TelegramError

from botservice.commands.command import Command
from botservice.commands.standard import standard_commands
from botservice.core.errors import BotServiceError
from botservice.core.messages import Author, InboundMessage, Message
from botservice.core.platform_capabilities import Capabilities
from botservice.people.names import is_direct_topic, is_guest
from botservice.storage.database import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Live, Payload, StreamRecord
from botservice.turns.turn import Delivery, StoredEvent
from transports.common.connected_transport import ConnectedTransport, FailedCall
from transports.common.documents import DocumentReaders
from transports.common.json_fields import field
from transports.common.pacing import Pace
from transports.telegram.answer_messages import plan_answer
from transports.telegram.client import BotClient
from transports.telegram.commands import set_menus
from transports.telegram.context import TelegramContext, TelegramTempo
from transports.telegram.failures import as_delivery_error, reason_of
from transports.telegram.grouped_messages import belong_together
from transports.telegram.guests import Guests, plan_guest
from transports.telegram.inbound_events import BotIdentity, allowed_updates, asked_as_guest, was_spoken
from transports.telegram.inbound_messages import TelegramReader
from transports.telegram.intake import TelegramIntake
from transports.telegram.live import show_turn
from transports.telegram.sending import TelegramSender, Topics
from transports.telegram.updates import PATH, Poller, WebhookEndpoint, WebhookKeeper, derive_secret, keep_from_polling

logger = logging.getLogger(__name__)

_ADMINISTRATORS: Final = ("creator", "administrator")  # Source: core.telegram.org/bots/api#chatmember

CAPABILITIES: Final = Capabilities(
    label="Telegram",
    streaming="a draft; in groups an edited message",
    thinking='"Thinking…" in the draft',
    tools="name and progress, in the draft",
    approval="buttons, or commands",
    buttons="below the message",
    files_in="up to 20 MB: pictures, texts, PDFs, office documents, audio",
    files_out="pictures, albums, voice, documents",
    tables="a table, or text",
    edits="change the memory and queued questions",
    stops="/stop, and the draft's button",
    errors="a message in your language",
    personal="seen by one member, if the bot may",
    voice="transcribed; answered by voice if you set it",
    feedback="👍 or 👎 as a reaction",
    conversations="each chat, each topic",
)


class TelegramTransport(ConnectedTransport):
    """A Telegram bot."""

    name = "telegram"
    errors = TelegramError
    token_name = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - a setting's name
    token_source = "@BotFather (/mybots, API Token)"  # noqa: S105 - where it is found
    has_parts = True
    has_topics = True
    capabilities = CAPABILITIES
    routes: Sequence[BaseRoute]

    def __init__(  # noqa: PLR0913 - each with a default
        self,
        *,
        token: str,
        api_url: str = "https://api.telegram.org",
        webhook_secret: str | None = None,
        public_url: str | None = None,
        pace: Pace | None = None,
        tempo: TelegramTempo | None = None,
        reading: DocumentReaders | None = None,
        commands: Iterable[Command] | None = None,
        previews: bool = False,
        guests: bool = False,
        rich_messages: bool = True,
        plain_chats: Container[str] = frozenset(),
    ) -> None:
        """Make a bot; nothing is asked of Telegram before `start`.

        Args:
            public_url: Where Telegram reaches this service; None has the bot poll.
            webhook_secret: By default one is derived from the token.
            reading: What can be read besides text; by default PDFs.
            commands: What the menu lists; by default what every service knows.
            previews: Whether Telegram may fetch what lies behind links, to show it.
            guests: Whether the bot answers in chats that it is no member of.
            rich_messages: Whether tables, formulas and long answers may come as rich messages.
            plain_chats: The numbers of chats in which they never do.
        """
        secret = webhook_secret or derive_secret(token)
        self._commands = tuple(standard_commands() if commands is None else commands)
        known = frozenset(each.name for each in self._commands)
        self._telegram = TelegramContext(
            BotClient(token, api_url, previews=previews),
            BotIdentity(int(token.partition(":")[0]), takes_guests=guests, commands=known),
            pace=pace,
            tempo=tempo,
            reading=reading,
            rich_messages=rich_messages,
            plain_chats=plain_chats,
        )
        self._public_url = public_url
        self._rich_messages = rich_messages
        self._intake = TelegramIntake(self._telegram)
        self._topics = Topics(self._telegram)
        self._guests = Guests(self._telegram)
        self._sender = TelegramSender(self._telegram)
        self._reader = TelegramReader(self._telegram)
        client, asked_for = self._telegram.client, allowed_updates(takes_guests=guests)
        self._keeper = WebhookKeeper(client, public_url, secret, asked_for) if public_url else None
        self._poller = None if public_url else Poller(client, self._intake.accept, asked_for)
        self.routes = [Route(PATH, WebhookEndpoint(secret, self._intake.accept).answer, methods=["POST"])]

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Begin to take in updates."""
        self._telegram.storage = storage
        await super().start(inbox, storage)

    async def close(self) -> None:
        """Let go of every connection."""
        await self._telegram.client.close_connections()

    def describe(self) -> str:
        """Return who the bot is and how it is reached."""
        name = f"@{self._telegram.bot.username}" if self._telegram.bot.username else "not reached yet, tried again"
        return f"{name}, by webhook at {self._public_url}{PATH}" if self._public_url else f"{name}, by polling"

    async def read(self, event: StoredEvent) -> InboundMessage | None:
        """Return what an event says, or None if it says nothing to anybody."""
        return await self._reader.read(event)

    async def peek(self, event: StoredEvent) -> InboundMessage | None:
        """Return what an event says, without its files."""
        return await self._reader.read(event, with_files=False)

    def is_shared(self, context_keys: Mapping[str, str]) -> bool:
        """Return whether a chat is a group."""
        return context_keys.get("chat_id", "").startswith("-")

    def belong_together(self, known: Sequence[StoredEvent], event: StoredEvent) -> bool:
        """Return whether a message is a part of the question that others ask. Pure."""
        return belong_together(known, event)

    def was_spoken(self, events: Sequence[StoredEvent]) -> bool:
        """Return whether events hold a voice message; what is only quoted or forwarded asks nothing."""
        return was_spoken(events)

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:
        """Return the messages that make answer visible, in order. Pure."""
        asked = asked_as_guest(events)
        is_rich = self._rich_messages
        return plan_answer(answer, events, is_rich=is_rich) if asked is None else plan_guest(answer, asked)

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make one message visible and return its message id."""
        if is_guest(context_keys):
            return await self._guests.send(context_keys, delivery)
        return await self._sender.send(context_keys, delivery)

    async def is_administrator(self, context_keys: Mapping[str, str], author: Author | None) -> bool | None:
        """Return whether Telegram names a person among the administrators of a group.

        Only administrators write in the name of the group itself; channels, also a linked one, are none of it.
        """
        chat_id = context_keys.get("chat_id", "")
        if not self.is_shared(context_keys) or is_direct_topic(context_keys):
            return None
        if author is None or author.id == chat_id:
            return author is not None
        try:
            found = await self._telegram.client.call("getChatAdministrators", chat_id=chat_id)
        except TelegramError as error:
            raise as_delivery_error(error) from error
        named = [each for each in found if field(each, "status") in _ADMINISTRATORS] if isinstance(found, list) else []
        return author.id in {str(field(each, "user", "id")) for each in named}

    async def open_topic(self, context_keys: Mapping[str, str], name: str) -> bool:
        """Return whether a new topic is there to go on in, where a chat has topics."""
        return await self._topics.open(context_keys, name)

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows that the bot is at work, or None if nobody is answered."""
        if is_guest(context_keys):
            return self._guests.live(context_keys, events, record)
        return show_turn(self._telegram, context_keys, events, record)

    async def _identify(self) -> BotIdentity:
        """Return who the bot is; Telegram is asked once."""
        bot = await self._telegram.identify()
        self.withheld_in_groups = "" if bot.hears_groups else "listen.privacy"
        return bot

    async def _receive(self) -> None:
        _, storage = self._intake.opened()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._set_menus(storage))
            if self._keeper is not None:
                group.create_task(self._keeper.run())
            if self._poller is None:
                group.create_task(keep_from_polling(storage, self._telegram.bot.id))
            else:
                storage.activity.keep_awake()  # it holds the right to poll
                group.create_task(self._poller.run_alone(storage.claims, self._telegram.bot.id))

    def _explain(self, error: Exception) -> FailedCall:
        return FailedCall(reason_of(error), is_token_refused=isinstance(error, InvalidToken))

    async def _set_menus(self, storage: Storage) -> None:
        """Tell Telegram the commands, in every language there is a text in. Without them, everything else works."""
        try:
            await set_menus(self._telegram.client, storage, self._telegram.bot.id, self._commands)
        except (TelegramError, BotServiceError) as error:
            logger.warning("telegram.menu_not_set", extra={"reason": str(error)})
