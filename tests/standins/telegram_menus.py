"""Menus of commands that Telegram was told before a test: thirty calls, which few tests are about."""

from functools import cache

from sqlalchemy import Connection, delete, insert

from botservice import Storage
from botservice.commands.standard import standard_commands
from botservice.storage.tables.services import telegram_menus
from transports.telegram.commands import _digest, menus


async def note_menus_as_set(storage: Storage, token: str) -> None:
    """Have a database say that the menus of a bot are what every service has."""
    told = {"bot_id": int(token.partition(":")[0]), "digest": _told(), "set_at": storage.now()}

    def note(connection: Connection) -> None:
        connection.execute(delete(telegram_menus))
        connection.execute(insert(telegram_menus), told)

    await storage.write(note)


@cache
def _told() -> str:
    return _digest(menus(standard_commands()))
