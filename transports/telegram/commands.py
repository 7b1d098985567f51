"""The menus of commands that Telegram shows: in every language, for private chats, groups and who runs them."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select
from telegram.error import RetryAfter

from botservice.commands import Command
from botservice.storage import Storage
from botservice.storage.tables.telegram import telegram_menus
from botservice.texts import DEFAULT_LANGUAGE, LANGUAGES
from transports.telegram.client import BotClient
from transports.telegram.failures import wait_of

logger = logging.getLogger(__name__)

_LONGEST_WAIT_SECONDS: Final = 3600.0

# What concerns one person alone is no business of a group's menu, and how the bot is to be there is its owners'.
_NOT_IN_GROUPS: Final = frozenset({"start", "link", "unlink", "export", "persona"})
_NOT_FOR_ADMINISTRATORS: Final = _NOT_IN_GROUPS - {"persona"}
# Where no scope fits, Telegram falls back to the default. Source: core.telegram.org/bots/api#botcommandscope.
_SCOPES: Final = (
    (None, frozenset[str]()),
    ("all_group_chats", _NOT_IN_GROUPS),
    ("all_chat_administrators", _NOT_FOR_ADMINISTRATORS),
)


@dataclass(frozen=True, slots=True)
class Menu:
    """What one kind of chat shows to those who speak one language; None is for all others."""

    scope: str | None
    language: str | None
    commands: list[dict[str, Any]]

    def as_parameters(self) -> dict[str, Any]:
        """Return it as setMyCommands takes it."""
        scope = None if self.scope is None else {"type": self.scope}
        return {"commands": self.commands, "language_code": self.language, "scope": scope}


def menus(commands: Iterable[Command]) -> list[Menu]:
    """Return the menus of every kind of chat and language; of each kind first the one for all other languages."""
    known = [command for command in commands if command.is_listed]
    languages = [None, *(code for code in LANGUAGES if code != DEFAULT_LANGUAGE)]
    entries = {language: [_entry(each, language) for each in known] for language in languages}
    return [
        Menu(scope, language, [each for each in entries[language] if each["command"] not in left_out])
        for scope, left_out in _SCOPES
        for language in languages
    ]


async def set_menus(client: BotClient, storage: Storage, bot_id: int, commands: Iterable[Command]) -> None:
    """Tell Telegram the menus, unless it was told the same before; a flood limit is waited out.

    Raises:
        telegram.error.TelegramError: they are not all set; the next start goes on with that.
    """
    wanted = menus(commands)
    digest = _digest(wanted)
    if await storage.read(lambda connection: _read(connection, bot_id)) == digest:
        return
    for menu in wanted:
        await _insist(client, menu)
    now = storage.now()

    def keep(connection: Connection) -> None:
        connection.execute(delete(telegram_menus).where(telegram_menus.c.bot_id == bot_id))
        connection.execute(insert(telegram_menus), {"bot_id": bot_id, "digest": digest, "set_at": now})

    await storage.write(keep)
    logger.info("telegram.menus_set", extra={"menus": len(wanted)})


async def _insist(client: BotClient, menu: Menu) -> None:
    while True:
        try:
            await client.call("setMyCommands", **menu.as_parameters())
        except RetryAfter as error:
            if wait_of(error) > _LONGEST_WAIT_SECONDS:
                raise
            await asyncio.sleep(wait_of(error))
        else:
            return


def _read(connection: Connection, bot_id: int) -> str | None:
    query = select(telegram_menus.c.digest).where(telegram_menus.c.bot_id == bot_id)
    return connection.execute(query).scalar_one_or_none()


def _digest(wanted: Iterable[Menu]) -> str:
    known = json.dumps([each.as_parameters() for each in wanted], sort_keys=True)
    return hashlib.sha256(known.encode()).hexdigest()


def _entry(command: Command, language: str | None) -> dict[str, Any]:
    return {"command": command.name, "description": command.description(language)}
