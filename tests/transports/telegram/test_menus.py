"""The menus of commands: for each kind of chat, set once for each change, and in nobody's way."""

from typing import Any

import pytest
from standins.bot_api import BotApi, Refuse, flood

from botservice.commands.command import Command
from botservice.commands.standard import standard_commands
from botservice.texts import LANGUAGES

SCOPES = {"default", "all_group_chats", "all_chat_administrators"}


def shown(api: BotApi, scope: str, language: str = "") -> set[str]:
    """Return the commands of a menu at Telegram."""
    (found,) = [menu for (kept, code), menu in api.commands.items() if f'"{scope}"' in kept and code == language]
    return {each["command"] for each in found}


async def all_set(api: BotApi, bot: Any) -> None:
    await api.until(lambda: len(api.commands) == len(SCOPES) * len(LANGUAGES))
    await api.until(lambda: api.calls("getUpdates"))


async def test_each_kind_of_chat_is_shown_what_can_be_done_there(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, knows_menus=False) as bot:
        await all_set(api, bot)
    private, groups = shown(api, "default"), shown(api, "all_group_chats", "de")
    assert {"new", "link", "persona", "export"} <= private
    assert private - groups == {"start", "link", "unlink", "export", "persona"}
    assert shown(api, "all_chat_administrators", "ru") - groups == {"persona"}


async def test_menus_are_set_once_and_again_only_when_they_change(api: BotApi, bot_on: Any) -> None:
    async def tell(_: Any) -> str:
        return "now"

    for _ in range(2):
        async with bot_on(api, knows_menus=False) as bot:
            await all_set(api, bot)
            api.person_says("hello", chat_id=42)
            await api.message(42)
    count = len(SCOPES) * len(LANGUAGES)
    assert len(api.calls("setMyCommands")) == count
    more = [*standard_commands(), Command("now", tell, menu="What time it is")]
    async with bot_on(api, commands=more):
        await api.until(lambda: len(api.calls("setMyCommands")) == 2 * count)
        await api.until(lambda: "now" in shown(api, "all_chat_administrators", "ru"))


@pytest.mark.parametrize("fault", [flood(1), Refuse(500, "Internal Server Error")])
async def test_a_bot_whose_menus_cannot_be_set_answers_all_the_same(api: BotApi, bot_on: Any, fault: Any) -> None:
    api.order(fault, "setMyCommands", times=None if fault != flood(1) else 1)
    async with bot_on(api, knows_menus=False) as bot:
        api.person_says("hello", chat_id=42)
        await api.message(42, "You said: hello")
        if fault == flood(1):
            await all_set(api, bot)


async def test_that_inline_mode_is_on_at_telegram_is_said(api: BotApi, bot_on: Any, caplog: Any) -> None:
    api.abilities["supports_inline_queries"] = True
    async with bot_on(api, knows_menus=False):
        api.person_says("hello", chat_id=42)
        await api.message(42)
    assert [each.msg for each in caplog.records].count("telegram.inline_is_on") == 1
