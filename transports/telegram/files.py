"""The files that people send: fetched within limits, and what cannot be fetched is said in words."""

from telegram import Message

from botservice.messages import Attachment
from transports.telegram.client import BotClient


class Files:
    """Fetches what came with a message."""

    def __init__(self, client: BotClient) -> None:
        self._client = client

    async def fetch(self, message: Message, *, is_for_bot: bool) -> tuple[tuple[Attachment, ...], list[str]]:
        """Return a message's files, and remarks about those that are not there."""
        return (), []
