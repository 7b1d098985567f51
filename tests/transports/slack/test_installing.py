"""Other workspaces install the bot: their tokens are kept encrypted, and go when it is removed."""

import httpx
import pytest
from sqlalchemy import select
from standins.slack_api import SlackApi

from botservice import Storage
from botservice.core.errors import SettingsError, StorageError
from botservice.storage.encryption import Cipher
from botservice.storage.tables.services import slack_installations
from transports.slack.client import SlackClient
from transports.slack.installations import InstallationStore, StateStore
from transports.slack.installing import OAuthApp, bot_scopes

KEY, OTHER_KEY = "k" * 32, "o" * 32
APP = OAuthApp("client.1", "client-secret-1", Cipher(KEY), "https://bot.example.com")


async def installed(storage: Storage) -> list[tuple[str, bytes]]:
    query = select(slack_installations.c.team_id, slack_installations.c.token)
    return await storage.read(lambda connection: [tuple(row) for row in connection.execute(query)])


async def install(api: SlackApi, url: str, team: str) -> httpx.Response:
    """Go the way of a person who installs the bot, and return the last page."""
    api.world.codes[f"code-{team}"] = team
    async with httpx.AsyncClient(verify=False) as client:
        begun = await client.get(f"{url}/slack/install")
        assert begun.status_code == 302
        address = httpx.URL(begun.headers["location"])
        assert address.params["client_id"] == "client.1"
        assert address.params["scope"].split(",") == bot_scopes()
        assert address.params["redirect_uri"] == "https://bot.example.com/slack/oauth_redirect"
        state = address.params["state"]
        cookie = {"cookie": f"slack-app-oauth-state={state}"}
        params = {"code": f"code-{team}", "state": state}
        return await client.get(f"{url}/slack/oauth_redirect", params=params, headers=cookie)


async def test_a_workspace_installs_the_bot_is_answered_and_removes_it(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, token=None, oauth=APP) as bot:
        page = await install(api, bot.url, "T0777")
        assert page.status_code == 200
        assert "Team T0777" in page.text
        assert 'href="https://slack.com/app_redirect?app=' in page.text
        api.person_says("hello", team="T0777")
        await api.until(api.said)
        [(team, token)] = await installed(sqlite_storage)
        assert (team, b"xoxb" in token) == ("T0777", False)
        assert api.calls("chat.postMessage")[0]["token"] == "xoxb-of-T0777"
        api.send_event({"type": "app_uninstalled"}, team="T0777")
        await api.until(lambda: len(api.events.tries) == 2)
        assert await installed(sqlite_storage) == []
        api.person_says("anybody?", team="T0777")
        await api.until(lambda: len(api.events.tries) == 3)
    assert api.said() == ["You said: hello"]
    assert {each.status for each in api.events.tries} == {200}


async def test_the_own_token_and_installations_live_side_by_side(api: SlackApi, bot_on) -> None:
    async with bot_on(api, oauth=APP) as bot:
        await install(api, bot.url, "T0777")
        api.person_says("one", channel="D0ALICE")
        await api.until(lambda: len(api.said()) == 1)
        api.person_says("two", channel="D0BOB", user="U0BOB", team="T0777")
        await api.until(lambda: api.said("D0BOB"))
    tokens = [call["token"] for call in api.calls("chat.postMessage")]
    assert tokens == [api.bot_token, "xoxb-of-T0777"]


async def test_a_new_installation_takes_the_place_of_the_old_one(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, token=None, oauth=APP) as bot:
        await install(api, bot.url, "T0777")
        await install(api, bot.url, "T0777")
        await install(api, bot.url, "T0888")
    assert sorted(team for team, _ in await installed(sqlite_storage)) == ["T0777", "T0888"]


async def test_only_a_persons_token_revoked_leaves_the_bot(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, token=None, oauth=APP) as bot:
        await install(api, bot.url, "T0777")
        api.send_event({"type": "tokens_revoked", "tokens": {"oauth": ["U0ALICE"]}}, team="T0777")
        await api.until(lambda: len(api.events.tries) == 1)
        assert len(await installed(sqlite_storage)) == 1
        api.send_event({"type": "tokens_revoked", "tokens": {"bot": ["U0BOT"]}}, team="T0777")
        await api.until(lambda: len(api.events.tries) == 2)
    assert await installed(sqlite_storage) == []


@pytest.mark.parametrize(
    ("params", "cookie", "status"),
    [
        ({"error": "access_denied"}, None, 200),
        ({"code": "c", "state": "forged"}, "forged", 401),
        ({"code": "c", "state": "forged"}, None, 400),
        ({}, None, 400),
    ],
)
async def test_a_return_that_nobody_began_installs_nothing(
    api: SlackApi, bot_on, sqlite_storage: Storage, params: dict, cookie: str | None, status: int
) -> None:
    api.world.codes["c"] = "T0777"
    async with bot_on(api, token=None, oauth=APP) as bot, httpx.AsyncClient(verify=False) as client:
        headers = {"cookie": f"slack-app-oauth-state={cookie}"} if cookie else {}
        answer = await client.get(f"{bot.url}/slack/oauth_redirect", params=params, headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert '<main class="card">' in answer.text
    assert '<a class="button" href="/slack/install">Start again</a>' in answer.text
    assert ("cancelled" in answer.text) == ("error" in params)
    assert await installed(sqlite_storage) == []


async def test_a_state_is_good_for_one_return(storage: Storage) -> None:
    states = StateStore()
    states.open(storage)
    state = await states.async_issue()
    assert await states.async_consume(state)
    assert not await states.async_consume(state)
    assert not await states.async_consume("never issued")


async def test_installations_are_the_same_on_both_databases(storage: Storage) -> None:
    from slack_sdk.oauth.installation_store import Installation

    store = InstallationStore(SlackClient("http://127.0.0.1"), Cipher(KEY))
    store.open(storage)
    own = Installation(user_id="U1", team_id="T1", enterprise_id="E1", bot_token="xoxb-1", bot_user_id="UB")
    whole = Installation(
        user_id="U1", enterprise_id="E1", bot_token="xoxb-2", bot_user_id="UB", is_enterprise_install=True
    )
    await store.async_save(own)
    await store.async_save(whole)
    assert (await store.find("T1", "E1")).token == "xoxb-1"
    assert (await store.find("T2", "E1")).token == "xoxb-2"
    assert await store.find("T2", "E2") is None
    assert await store.find("T2", None) is None
    await store.remove("T1", "E1")
    assert (await store.find("T1", "E1")).token == "xoxb-2"


def test_what_is_encrypted_opens_with_the_right_key_alone() -> None:
    secret = Cipher(KEY).encrypt(b"xoxb-1")
    assert b"xoxb" not in secret
    assert Cipher(f"{OTHER_KEY}, {KEY}").decrypt(secret) == b"xoxb-1"
    with pytest.raises(StorageError, match="ENCRYPTION_KEY"):
        Cipher(OTHER_KEY).decrypt(secret)
    with pytest.raises(StorageError):
        Cipher(KEY).decrypt(secret[:-4] + b"AAAA")
    with pytest.raises(SettingsError, match="32"):
        Cipher("short")
