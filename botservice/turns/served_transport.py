"""What a process needs of a transport that it serves."""

from collections.abc import Sequence
from typing import Protocol

from starlette.routing import BaseRoute

from botservice.storage import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Transport


class ServedTransport(Transport, Protocol):
    """A transport that a process serves. `start` may raise SettingsError: then the process says so and ends."""

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """What it answers on the web server."""

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Begin to take in events."""

    async def stop(self) -> None:
        """Take in no more; answers may still go out."""

    async def close(self) -> None:
        """Let go of every connection: nothing goes out any more."""

    def describe(self) -> str:
        """Return how it is reached, in a few words."""
