"""What every part of the Telegram transport works with: the client, who the bot is, its pace, and the storage."""

from collections.abc import Container
from dataclasses import dataclass

from botservice.storage.database import Storage
from transports.common.documents import DocumentReaders
from transports.common.pacing import Pace
from transports.telegram.client import BotClient
from transports.telegram.inbound_events import BotIdentity, identified
from transports.telegram.refused_forms import Forms


@dataclass(frozen=True, slots=True)
class TelegramTempo:
    """How soon and how often progress is shown. All in seconds.

    Attributes:
        first_sign: An answer that comes sooner needs no sign of life; a person should see one within a second.
        typing: Telegram shows "typing…" for 5 seconds. Source: core.telegram.org/bots/api#sendchataction.
        draft: Between two states of a draft.
        later_activity: Between two of them that say what a tool does, once there were many.
        first_message: So long a group's answer has to grow before a message shows it.
        edit: Between two states of that message; flood control of groups allows about one in 3 seconds.
    """

    first_sign: float = 0.2
    typing: float = 4.5
    draft: float = 1.0
    later_activity: float = 10.0
    first_message: float = 2.0
    edit: float = 3.5


class TelegramContext:
    """What the parts of one transport share.

    Attributes:
        bot: Who the bot is, as far as is known.
        storage: None until the transport starts.
    """

    def __init__(
        self,
        client: BotClient,
        bot: BotIdentity,
        *,
        pace: Pace | None = None,
        tempo: TelegramTempo | None = None,
        reading: DocumentReaders | None = None,
        rich_messages: bool = True,
        plain_chats: Container[str] = frozenset(),
    ) -> None:
        self.client = client
        self.bot = bot
        self.pace = pace or Pace()
        self.tempo = tempo or TelegramTempo()
        self.reading = reading or DocumentReaders.of_installation()
        self.storage: Storage | None = None
        self.forms = Forms(lambda: self.storage, rich_messages=rich_messages, plain_chats=plain_chats)

    async def identify(self) -> BotIdentity:
        """Return who the bot is; Telegram is asked once."""
        if self.bot.username is None:
            self.bot = identified(self.bot, await self.client.call("getMe"))
        return self.bot
