"""People of other organisations, guests, and organisations of many workspaces: who is who, and who is let in."""

from typing import Any

import pytest
from slack_sdk.oauth.installation_store import Installation
from sqlalchemy import select
from standins.slack_api import BOT_USER, Refuse, SlackApi
from standins.slack_api.world import BOT_ID

from botservice import Storage
from botservice.agent.remembering import remember
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.storage.encryption import Cipher
from botservice.storage.tables.conversations import messages
from botservice.storage.tables.services import slack_refusals
from botservice.texts import LANGUAGES, in_language
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.installations import InstallationStore
from transports.slack.installing import OAuthApp
from transports.slack.refusals import HOLDS_FOR, Feature, SlackRefusals

APP = OAuthApp("client.1", "client-secret-1", Cipher("k" * 32), "https://bot.example.com")
MENTION = f"<@{BOT_USER}>"
ORGANISATION = "xoxb-of-the-organisation"


def add_person(api: SlackApi, user: str, **about: Any) -> None:
    with api.condition:
        api.world.users[user] = {"id": user, "profile": {"display_name": user.title()}, "locale": "en-US", **about}
        api.world.channels["C0GENERAL"].add(user)


async def authors(storage: Storage) -> list[str]:
    query = select(messages.c.author_id).where(messages.c.role == "user").order_by(messages.c.id)
    return await storage.read(lambda connection: list(connection.execute(query).scalars()))


async def test_somebody_of_another_organisation_is_known_by_the_workspace_that_hears_them(
    api: SlackApi, bot_on, typist, sqlite_storage: Storage
) -> None:
    add_person(api, "U9CAROL", team_id="T9OTHER", is_stranger=True)
    async with bot_on(api, typist):
        shared = {"user_team": "T9OTHER", "source_team": "T9OTHER", "team": "T9OTHER"}
        api.person_says(f"{MENTION} hello", channel="C0GENERAL", user="U9CAROL", **shared)
        typist.write("Hello to you. ")
        await api.until(lambda: api.calls("chat.startStream"))
        typist.finish()
        await api.until(lambda: api.said("C0GENERAL"))
        start = api.calls("chat.startStream")[0]
    assert (start["recipient_team_id"], start["recipient_user_id"]) == ("T9OTHER", "U9CAROL")
    assert await authors(sqlite_storage) == ["T0001:U9CAROL"]


@pytest.mark.parametrize("about", [{"is_stranger": True}, {"is_restricted": True}, {"is_ultra_restricted": True}])
async def test_guests_and_strangers_are_let_in_like_anybody_and_no_more(api: SlackApi, bot_on, about) -> None:
    add_person(api, "U9CAROL", **about)
    async with bot_on(api, access=Access(AccessMode.ALLOW, owners=frozenset({"slack:T0001:U0ALICE"}))):
        api.person_says(f"{MENTION} hello", channel="C0GENERAL", user="U9CAROL")
        await api.until(lambda: api.said("C0GENERAL"))
    refusals = {in_language("access.group", language) for language in LANGUAGES}
    assert api.said("C0GENERAL")[0].replace("!", "/") in {each.replace("!", "/") for each in refusals}


async def test_what_is_known_of_a_person_is_not_told_to_a_stranger(api: SlackApi, bot_on) -> None:
    add_person(api, "U9CAROL", is_stranger=True)
    async with bot_on(api, tools=[remember]) as bot:
        api.person_says("My locker is 4711, keep that to yourself")
        await api.until(api.said)
        api.person_says(f"{MENTION} what is the locker?", channel="C0GENERAL", user="U9CAROL")
        await api.until(lambda: api.said("C0GENERAL"))
        assert "4711" not in str(bot.llm.prompts[-1])


async def install_for_all(api: SlackApi, storage: Storage) -> None:
    store = InstallationStore(SlackClient("http://127.0.0.1"), APP.cipher)
    store.open(storage)
    installation = Installation(
        user_id="U0OWNER",
        app_id="A1",
        enterprise_id="E1",
        team_id=None,
        bot_token=ORGANISATION,
        bot_id=BOT_ID,
        bot_user_id=BOT_USER,
        bot_scopes=["chat:write"],
        is_enterprise_install=True,
        installed_at=0.0,
    )
    await store.async_save(installation)
    with api.condition:
        api.world.tokens[ORGANISATION] = "T0001"


def say(api: SlackApi, text: str, team: str, **where: Any) -> None:
    """Have a person write in one of the organisation's workspaces."""
    ts = api.person_says(text, deliver=False, **where)
    with api.condition:
        event = api.message_event(next(each for each in api.world.posts if each.ts == ts))
    shown_to = [{"enterprise_id": "E1", "team_id": team, "user_id": BOT_USER, "is_bot": True}]
    api.send_event(event, team=team, enterprise_id="E1", authorizations=shown_to)


async def test_an_organisation_that_has_installed_the_bot_is_answered_in_each_of_its_workspaces(
    api: SlackApi, bot_on_both, storage: Storage
) -> None:
    async with bot_on_both(api, token=None, oauth=APP):
        await install_for_all(api, storage)
        for number, team in enumerate(("T0771", "T0772"), start=1):
            say(api, f"hello from {team}", team)
            await api.until(lambda number=number: len(api.said()) == number)
    assert {call["token"] for call in api.calls("chat.postMessage")} == {ORGANISATION}
    assert await authors(storage) == ["T0771:U0ALICE", "T0772:U0ALICE"], "two accounts, until their owner links them"


async def test_an_answer_that_is_owed_to_an_organisation_is_sent_by_the_next_process(
    api: SlackApi, bot_on_both, storage: Storage
) -> None:

    async with bot_on_both(api, token=None, oauth=APP):
        await install_for_all(api, storage)
        order = api.order(Refuse("service_unavailable"), "chat.postMessage", times=None)
        say(api, "hello", "T0771")
        await api.until(lambda: order.used)
    order.cancel()
    async with bot_on_both(api, token=None, oauth=APP):
        await api.until(api.said)
    assert api.said() == ["You said: hello"]


async def test_another_organisation_has_no_part_in_an_installation(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, token=None, oauth=APP):
        await install_for_all(api, sqlite_storage)
        api.person_says("hello", team="T0666")
        await api.all_taken()
        say(api, "hello", "T0771")
        await api.until(api.said)
    assert len(api.said()) == 1


async def test_a_new_installation_tries_again_what_was_refused(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, token=None, oauth=APP):
        refusals = SlackRefusals(lambda: sqlite_storage)
        await refusals.note("T0001", Feature.CANVASES, SlackFailure("missing_scope"))
        store = InstallationStore(SlackClient("http://127.0.0.1"), APP.cipher)
        store.open(sqlite_storage)
        await store.async_save(
            Installation(user_id="U1", bot_token="xoxb-new", team_id="T0001", bot_id="B", bot_user_id=BOT_USER)
        )
        left = await sqlite_storage.read(lambda connection: connection.execute(select(slack_refusals)).all())
    assert left == []


async def test_a_refusal_holds_for_a_week(storage: Storage) -> None:
    refusals = SlackRefusals(lambda: storage)
    await refusals.note("T0001", Feature.CHARTS, SlackFailure("invalid_blocks"))
    assert not await SlackRefusals(lambda: storage).takes("T0001", Feature.CHARTS)
    old = storage.now() - HOLDS_FOR
    await storage.write(lambda connection: connection.execute(slack_refusals.update().values(refused_at=old)))
    again = SlackRefusals(lambda: storage)
    assert await again.takes("T0001", Feature.CHARTS)
    await again.note("T0001", Feature.CHARTS, SlackFailure("invalid_blocks"))
    assert not await SlackRefusals(lambda: storage).takes("T0001", Feature.CHARTS)
