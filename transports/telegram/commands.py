"""The menus of commands that Telegram shows: in every language, for private chats, groups and who runs them."""

import hashlib
import json
import logging
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from telegram.error import RetryAfter

from botservice.commands.command import Command
from botservice.storage.database import Storage
from botservice.texts import DEFAULT_LANGUAGE, LANGUAGES
from transports.common.connected_transport import insist
from transports.telegram.client import BotClient
from transports.telegram.failures import wait_of
from transports.telegram.queries import find_menus_digest, store_menus_digest

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


def menus(commands: Iterable[Command]) -> list[dict[str, Any]]:
    """Return the menus of every kind of chat and language; of each kind first the one for all other languages.

    Each is what setMyCommands takes.
    """
    known = [command for command in commands if command.is_listed]
    languages = [None, *(code for code in LANGUAGES if code != DEFAULT_LANGUAGE)]
    return [
        {
            "commands": [
                {"command": each.name, "description": each.description(language)}
                for each in known
                if each.name not in left_out
            ],
            "language_code": language,
            "scope": None if scope is None else {"type": scope},
        }
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
    if await storage.read(lambda connection: find_menus_digest(connection, bot_id)) == digest:
        return
    for menu in wanted:
        await insist(partial(client.call, "setMyCommands", **menu), RetryAfter, _wait)
    now = storage.now()
    await storage.write(lambda connection: store_menus_digest(connection, bot_id, digest, now))
    logger.info("telegram.menus_set", extra={"menus": len(wanted)})


def _wait(error: Exception, pause_seconds: float) -> float:
    """Return how long Telegram asks to wait, unless that is too long."""
    wait = wait_of(error) if isinstance(error, RetryAfter) else pause_seconds
    if wait > _LONGEST_WAIT_SECONDS:
        raise error
    return wait


def _digest(wanted: list[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
