"""A bot that listens in a channel of Slack: unasked answers only where a scene says so, within the limit."""

import pytest
from standins.clocks import LastingMinute
from standins.slack_api import SlackApi
from standins.slack_api.world import TEAM
from turns.group_scenes import LANGUAGES, TwoModels, decisions, gate_of, play, read_scenes, settle

from botservice import Storage
from botservice.cli.doctor import check_everything
from botservice.config.setting_choices import SlackListen
from botservice.config.settings import Settings
from botservice.people.access import Access
from botservice.texts import in_language
from transports.slack.context import Manners
from transports.slack.installing import bot_scopes

PEOPLE = {"Ann": "U0ALICE", "Ben": "U0BOB"}
LISTENING = Manners(listening=SlackListen.CHANNELS)
OWNED = Access(owners=frozenset({f"slack:{TEAM}:U0ALICE"}))


def in_channel(api: SlackApi):
    return lambda who, text: api.person_says(text, channel="C0GENERAL", user=PEOPLE[who])


@pytest.mark.any_database
@pytest.mark.parametrize("language", LANGUAGES)
async def test_unasked_answers_come_where_the_scene_says_so(api: SlackApi, bot_on_both, storage: Storage, language):
    models, clock = TwoModels(), LastingMinute()
    async with bot_on_both(api, models, clock=clock, manners=LISTENING, gate=gate_of(models)):
        await play(read_scenes(language), models, storage, clock, in_channel(api), lambda: api.said("C0GENERAL"))
        threads = {each.thread_ts for each in api.bot_posts("C0GENERAL")}
        assert threads == {None}, "what is said in the channel stays there"


async def test_in_a_thread_an_unasked_answer_stands_in_the_thread(api: SlackApi, bot_on, sqlite_storage: Storage):
    models, clock = TwoModels("yes"), LastingMinute()
    async with bot_on(api, models, clock=clock, manners=LISTENING, gate=gate_of(models)):
        ts = api.person_says("A thread about floors", channel="C0GENERAL")
        await settle(sqlite_storage, events=1, is_whole=False)
        models.gate = "no"
        clock.pass_(seconds=5)
        await settle(sqlite_storage, events=1)
        models.gate = "yes"
        api.person_says("Which floor?", channel="C0GENERAL", thread_ts=ts, user="U0BOB")
        await settle(sqlite_storage, events=2, is_whole=False)
        clock.pass_(seconds=5)
        await api.until(lambda: bool(api.said("C0GENERAL")))
        assert [each.thread_ts for each in api.bot_posts("C0GENERAL")] == [ts]


async def test_listen_says_that_only_threads_are_read_unless_channels_are(api: SlackApi, bot_on, sqlite_storage):
    models = TwoModels("yes")
    async with bot_on(api, models, access=OWNED, gate=gate_of(models, listens=False)):
        api.person_says("<@U0BOT> !listen on", channel="C0GENERAL")
        await api.until(lambda: bool(api.said("C0GENERAL")))
        assert in_language("listen.threads", "en") in api.said("C0GENERAL")[0]
        api.person_says("Which floor?", channel="C0GENERAL", user="U0BOB")
        await api.until(lambda: len(api.events.tries) == 2)
    assert await decisions(sqlite_storage) == []


async def test_an_unasked_answer_makes_nobody_in_the_thread_one_who_has_asked(api: SlackApi, bot_on, sqlite_storage):
    models, clock = TwoModels("no"), LastingMinute()
    async with bot_on(api, models, clock=clock, manners=LISTENING, gate=gate_of(models)):
        ts, said = api.person_says("A thread about floors", channel="C0GENERAL"), 1
        for gate, text in (("yes", "Which floor?"), ("no", "Thanks"), ("no", "Bye")):
            await settle(sqlite_storage, events=said, is_whole=False)
            clock.pass_(seconds=5)
            await settle(sqlite_storage, events=said)
            models.gate, said = gate, said + 1
            api.person_says(text, channel="C0GENERAL", thread_ts=ts, user="U0BOB")
        await settle(sqlite_storage, events=said, is_whole=False)
        clock.pass_(seconds=5)
        await settle(sqlite_storage, events=said)
        assert len(api.said("C0GENERAL")) == 1
    assert [str(each) for each in await decisions(sqlite_storage)] == ["no", "yes", "no", "no"]


async def test_who_asks_in_a_thread_below_an_unasked_answer_is_understood(api: SlackApi, bot_on, sqlite_storage):
    models, clock = TwoModels("yes", "On the third floor."), LastingMinute()
    async with bot_on(api, models, clock=clock, manners=LISTENING, gate=gate_of(models)):
        api.person_says("Which floor?", channel="C0GENERAL")
        await settle(sqlite_storage, events=1, is_whole=False)
        clock.pass_(seconds=5)
        await settle(sqlite_storage, events=1)
        (answer,) = api.bot_posts("C0GENERAL")
        api.person_says("<@U0BOT> and which room?", channel="C0GENERAL", thread_ts=answer.ts, user="U0BOB")
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
    assert "On the third floor." in models.asked_agent[-1]


@pytest.mark.parametrize(("listen", "is_wrong"), [("threads", True), ("channels", False)])
async def test_doctor_names_the_setting_without_which_channels_are_not_read(api: SlackApi, listen: str, is_wrong: bool):
    api.world.scopes = set(bot_scopes())
    wires = {"slack_bot_token": api.bot_token, "slack_api_url": api.url, "slack_app_token": api.app_token, "port": 0}
    found = await check_everything(Settings.load(None, **wires, group_answers="listening", slack_listen=listen))
    (slack,) = [each for each in found if each.name == "slack"]
    assert (slack.is_wrong, "SLACK_LISTEN=channels" in slack.text) == (is_wrong, is_wrong)


async def test_a_command_of_another_bot_or_without_a_mention_leads_to_no_decision(api, bot_on, sqlite_storage: Storage):
    models, clock = TwoModels("yes"), LastingMinute()
    async with bot_on(api, models, clock=clock, manners=LISTENING, gate=gate_of(models)):
        for text in ("!listen off", "!deploy now"):
            api.person_says(text, channel="C0GENERAL", user="U0BOB")
        await settle(sqlite_storage, events=2)
        assert models.asked_gate == []
