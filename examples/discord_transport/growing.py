"""Shows an answer while it is written, by editing the message that will hold it."""

import asyncio
import contextlib

from answers import MOST_CHARACTERS
from client import DiscordClient

from botservice import DeliveryError, Live, ToolCall


class GrowingAnswer(Live):
    """Edits the first answer to an interaction, at most once in a while. Nothing of it needs to last."""

    def __init__(self, client: DiscordClient, interaction_token: str, pause_seconds: float) -> None:
        self._client, self._token, self._pause_seconds = client, interaction_token, pause_seconds
        self._text = ""
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._show())

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""
        self._say(self._text + piece)

    def on_activity(self, activity: str) -> None:
        """Take what the bot does now."""
        self._say(f"*{activity}…*\n")

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Take what a tool says of its work."""
        self._say(f"*{call.name}: {text}*\n")

    def on_restart(self) -> None:
        """Begin again."""
        self._say("")

    async def close(self) -> None:
        """End it; the answer itself follows as a delivery, so no edit may be on its way any more."""
        self._task.cancel()
        await asyncio.wait([self._task])

    def _say(self, text: str) -> None:
        self._text = text
        self._news.set()

    async def _show(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            if self._text.strip():
                with contextlib.suppress(DeliveryError):  # the answer itself comes in any case
                    await self._client.edit_first(self._token, {"content": self._text[:MOST_CHARACTERS]})
            await asyncio.sleep(self._pause_seconds)
