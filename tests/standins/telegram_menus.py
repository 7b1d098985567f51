"""Menus of commands that Telegram was told before a test: thirty calls, which few tests are about."""

from typing import Any

from botservice import Storage
from botservice.commands.standard import standard_commands
from transports.telegram.commands import set_menus


class _Accepting:
    """A client whose calls all succeed, and go nowhere."""

    async def call(self, *_: Any, **__: Any) -> bool:
        return True


async def note_menus_as_set(storage: Storage, token: str) -> None:
    """Have a database say that the menus of a bot are what every service has."""
    client: Any = _Accepting()
    await set_menus(client, storage, int(token.partition(":")[0]), standard_commands())
