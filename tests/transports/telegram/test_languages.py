"""What the service says itself, in the language that a person's Telegram is set to; English where it has no texts."""

from typing import Any

import pytest
from standins.bot_api import BotApi, Person

from botservice import LLMError
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.texts import LANGUAGES, in_language
from transports.telegram.commands import menus

SPOKEN = [("de", "de"), ("pt-br", "pt"), ("tlh", "en"), (None, "en")]


def person(language: str | None) -> Person:
    return Person(42, first_name="Alice", language_code=language)


@pytest.mark.parametrize(("language", "told_in"), SPOKEN)
async def test_an_apology_is_in_the_language_of_who_asked(
    api: BotApi, bot_on: Any, language: str | None, told_in: str
) -> None:
    async with bot_on(api, [LLMError("no such model", is_transient=False)]):
        api.person_says("hello", chat_id=42, user=person(language))
        await api.message(42, in_language("answer.apology", told_in, error_id="T1"))


async def test_a_turn_that_goes_on_after_a_restart_knows_the_language_still(
    api: BotApi, bot_on: Any, typist: Any
) -> None:
    async with bot_on(api, typist) as bot:
        api.person_says("hello", chat_id=42, user=person("ko"))
        await api.until(lambda: typist.prompts)
        await bot.worker.stop(grace_seconds=0)
    async with bot_on(api, [LLMError("no such model", is_transient=False)]):
        await api.message(42, in_language("answer.apology", "ko", error_id="T1"))


@pytest.mark.parametrize(("language", "told_in"), SPOKEN)
async def test_usage_is_told_in_the_language_of_who_asks(
    api: BotApi, bot_on: Any, language: str | None, told_in: str
) -> None:
    tokens = in_language("usage.tokens", told_in, count=0)
    nothing = in_language("usage.used", told_in, tokens=tokens, count=0, cached="", cost="")
    told = [
        in_language("usage.today", told_in, used=nothing),
        in_language("usage.this_month", told_in, used=nothing),
        "",
        in_language("usage.utc", told_in),
    ]
    async with bot_on(api):
        api.person_says("/usage", chat_id=42, user=person(language))
        await api.message(42, "\n".join(told))


@pytest.mark.parametrize(("language", "told_in"), SPOKEN)
async def test_an_owner_is_told_of_access_in_their_language(
    api: BotApi, bot_on: Any, language: str | None, told_in: str
) -> None:
    def say(key: str, **values: object) -> str:
        return in_language(key, told_in, **values).replace("`", "")  # names are shown as code

    access = Access(AccessMode.ALLOW, owners=frozenset({"telegram:42"}))
    kind, role = say("access.person"), say("access.owner")
    expected = {
        "/approve": say("approve.how"),
        "/approve ABCD2345": say("approve.nobody"),
        "/approve telegram:7": say("approve.done", who="telegram:7"),
        "/revoke nobody": say("revoke.how"),
        "/revoke telegram:42": say("revoke.by_setting", name="telegram:42"),
        "/revoke telegram:7": say("revoke.done", name="telegram:7"),
        "/access": say("access.entry_by", name="telegram:42", kind=kind, role=role, source="OWNERS"),
    }
    async with bot_on(api, access=access):
        for number, (command, told) in enumerate(expected.items(), 1):
            api.person_says(command, chat_id=42, user=person(language))
            await api.until(lambda number=number: len(api.visible_texts(42)) == number)
            assert told in api.visible_texts(42)[-1]


async def test_whoever_is_no_owner_is_told_so_in_their_language(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api):
        api.person_says("/approve telegram:7", chat_id=42, user=person("zh-hans"))
        await api.message(42, in_language("access.for_owners", "zh"))


def test_telegram_is_given_a_menu_in_every_language() -> None:
    from botservice.commands.standard import standard_commands

    found = {each["language_code"]: each["commands"] for each in menus(standard_commands()) if each["scope"] is None}
    assert found.keys() == {None, *LANGUAGES} - {"en"}
    assert {"command": "usage", "description": in_language("usage.menu", "ru")} in found["ru"]
    assert {"command": "usage", "description": in_language("usage.menu", "en")} in found[None]
