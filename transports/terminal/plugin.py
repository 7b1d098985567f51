"""The terminal: the chat of `botservice chat`, and what takes such chats in where the service is served."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from botservice.transport_plugins import TransportPlugin, TransportSetup

if TYPE_CHECKING:
    from botservice.config.settings import Settings
    from botservice.service import AgentService
    from botservice.turns.transport import Transport


class TerminalPlugin(TransportPlugin):
    """On where the service works on an SQLite file, which other processes cannot open next to it."""

    name = "terminal"

    def build(self, setup: TransportSetup) -> "Iterable[Transport]":
        """Return what `botservice chat` of other processes joins, if the database is that of the settings."""
        if setup.service is None or setup.service.storage is not None:
            return []
        from transports.terminal.joining_server import joined_terminals

        return joined_terminals(setup.settings.database_url, setup.bot_name)

    async def chat(
        self, settings: "Settings", make_service: "Callable[[], AgentService]", session: str, *, has_history: bool
    ) -> bool:
        """Chat until the input ends, and return whether it was interrupted."""
        from transports.terminal.chatting import chat

        return await chat(settings, make_service, session, has_history=has_history)


PLUGIN: Final = TerminalPlugin()
