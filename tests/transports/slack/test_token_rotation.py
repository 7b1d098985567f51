"""Installations whose tokens end after 12 hours: a new token is there before that, however many processes ask."""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update
from standins.slack_api import Refuse, SlackApi

from botservice import Storage
from botservice.storage.encryption import Cipher
from botservice.storage.tables.services import slack_installations
from transports.slack.client import SlackClient
from transports.slack.installing import Installing, OAuthApp

TEAM = "T0777"
APP = OAuthApp("client.1", "client-secret-1", Cipher("k" * 32), "https://bot.example.com")


async def install(api: SlackApi, url: str, team: str) -> httpx.Response:
    """Go the way of a person who installs the bot, and return the last page."""
    api.world.codes[f"code-{team}"] = team
    async with httpx.AsyncClient(verify=False) as client:
        begun = await client.get(f"{url}/slack/install")
        state = httpx.URL(begun.headers["location"]).params["state"]
        cookie = {"cookie": f"slack-app-oauth-state={state}"}
        return await client.get(
            f"{url}/slack/oauth_redirect", params={"code": f"code-{team}", "state": state}, headers=cookie
        )


async def ends_in(storage: Storage, left: timedelta) -> None:
    """Let the token of the installation end so soon."""
    ends_at = storage.now() + left
    await storage.write(
        lambda connection: connection.execute(update(slack_installations).values(token_expires_at=ends_at))
    )


async def kept(storage: Storage) -> Any:
    return await storage.read(lambda connection: connection.execute(select(slack_installations)).one())


def refreshes(api: SlackApi) -> int:
    return sum(each.get("grant_type") == "refresh_token" for each in api.calls("oauth.v2.access"))


async def test_an_installation_goes_on_after_its_token_has_ended(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    api.world.rotates = True
    async with bot_on(api, token=None, oauth=APP) as bot:
        assert (await install(api, bot.url, TEAM)).status_code == 200
        row = await kept(sqlite_storage)
        assert b"xoxe" not in row.token + row.refresh_token
        assert row.token_expires_at > datetime.now(row.token_expires_at.tzinfo) + timedelta(hours=11)
        first = next(token for token in api.world.tokens if TEAM in token)
        await ends_in(sqlite_storage, timedelta(hours=1))
        del api.world.tokens[first]  # whoever uses it now is refused
        api.person_says("hello", team=TEAM)
        await api.until(api.said)
    assert refreshes(api) == 1
    assert api.calls("chat.postMessage")[-1]["token"] != first
    assert (await kept(sqlite_storage)).refreshing_until is None


async def test_two_processes_ask_for_one_new_token(api: SlackApi, bot_on_both, storage: Storage) -> None:
    api.world.rotates = True
    async with bot_on_both(api, token=None, oauth=APP) as bot:
        await install(api, bot.url, TEAM)
        stores = []
        for _ in range(4):
            installing = Installing(APP, SlackClient(api.url))
            installing.open(storage)
            stores.append(installing.store)
        for left in (timedelta(hours=1), timedelta(hours=-1)):
            before = refreshes(api)
            await ends_in(storage, left)
            found = await asyncio.gather(*(store.find(TEAM, None) for store in stores))
            assert refreshes(api) == before + 1
            assert all(each is not None and each.token in api.world.tokens for each in found)
        assert len({each.token for each in found if each is not None}) == 1


@pytest.mark.parametrize("code", ["invalid_refresh_token", "internal_error"])
async def test_a_token_that_cannot_be_refreshed_is_used_as_long_as_it_is_good(
    api: SlackApi, bot_on, sqlite_storage: Storage, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    api.world.rotates = True
    caplog.set_level(logging.WARNING)
    async with bot_on(api, token=None, oauth=APP) as bot:
        await install(api, bot.url, TEAM)
        await ends_in(sqlite_storage, timedelta(hours=1))
        api.order(Refuse(code), "oauth.v2.access", times=None)
        api.person_says("hello", team=TEAM)
        await api.until(api.said)
    (record,) = [each for each in caplog.records if each.msg == "slack.token_not_refreshed"]
    assert (record.__dict__["reason"], record.__dict__["team"]) == (code, TEAM)
    assert "xoxe" not in caplog.text


async def test_an_installation_without_rotation_is_never_refreshed(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, token=None, oauth=APP) as bot:
        await install(api, bot.url, TEAM)
        row = await kept(sqlite_storage)
        api.person_says("hello", team=TEAM)
        await api.until(api.said)
    assert (row.refresh_token, row.token_expires_at, refreshes(api)) == (None, None, 0)


async def test_a_bot_s_own_token_that_ends_is_warned_about_with_the_remedy(
    api: SlackApi, bot_on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    token = "xoxe.xoxb-1-own"
    api.world.tokens[token] = "T0001"
    with caplog.at_level(logging.WARNING):
        async with bot_on(api, token=token):
            api.person_says("hello")
            await api.until(lambda: api.said("D0ALICE"))
    told = [each for each in caplog.records if each.message == "slack.token_expires"]
    assert len(told) == 1
    assert "token_rotation_enabled" in told[0].advice
    assert token not in caplog.text


async def test_a_token_that_lasts_is_not_warned_about(
    api: SlackApi, bot_on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with bot_on(api):
        api.person_says("hello")
        await api.until(lambda: api.said("D0ALICE"))
    assert "slack.token_expires" not in caplog.text
