"""A bot that listens in a group on Telegram: unasked answers only where a scene says so, within the limit."""

import pytest
from standins.bot_api import BotApi
from standins.bot_api.chats import Person
from standins.clocks import LastingMinute
from turns.group_scenes import LANGUAGES, TwoModels, decisions, gate_of, play, read_scenes, settle

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.cli.doctor import check_everything
from botservice.config.settings import Settings
from botservice.people.access import Access
from botservice.texts import in_language
from botservice.transport_plugins import TransportSetup

GROUP = -1001000000001
PEOPLE = {"Ann": Person(42, "Ann"), "Ben": Person(43, "Ben")}
OWNED = Access(owners=frozenset({"telegram:42"}))


def in_group(api: BotApi, **options):
    api.add_group(GROUP, members=tuple(PEOPLE.values()), **options)
    return lambda who, text: api.person_says(text, chat_id=GROUP, user=PEOPLE[who])


@pytest.mark.any_database
@pytest.mark.parametrize("language", LANGUAGES)
async def test_unasked_answers_come_where_the_scene_says_so(api: BotApi, bot_in, storage: Storage, language: str):
    models, clock, say = TwoModels(), LastingMinute(), in_group(api)
    async with bot_in(api, storage, models, clock=clock, gate=gate_of(models)):
        await play(read_scenes(language), models, storage, clock, say, lambda: api.visible_texts(GROUP))


async def test_an_unasked_answer_replies_to_what_it_is_about_and_shows_nothing_before(api, bot_on, sqlite_storage):
    models, clock, say = TwoModels("yes"), LastingMinute(), in_group(api)
    async with bot_on(api, models, clock=clock, gate=gate_of(models)):
        asked = say("Ann", "Which floor is it?")
        await settle(sqlite_storage, events=1, is_whole=False)
        clock.pass_(seconds=5)
        await api.until(lambda: bool(api.visible_texts(GROUP)))
        (answer,) = api.visible_messages(GROUP, from_bot=True)
        assert answer.wire["reply_to_message"]["message_id"] == asked.message_id
        assert api.calls("sendChatAction") == []


async def test_listen_says_that_privacy_mode_keeps_messages_from_it(api: BotApi, bot_on, sqlite_storage):
    models, say = TwoModels("yes"), in_group(api)
    api.privacy_mode = True
    async with bot_on(api, models, access=OWNED, gate=gate_of(models, listens=False)):
        say("Ann", "/listen on")
        await api.until(lambda: bool(api.visible_texts(GROUP)))
        assert in_language("listen.privacy", "en") in api.visible_texts(GROUP)[0]
        say("Ben", "Which floor is it?")
        say("Ben", "/listen off")
        await api.until(lambda: len(api.visible_texts(GROUP)) == 2)
        assert "Only an administrator" in api.visible_texts(GROUP)[1]
    assert await decisions(sqlite_storage) == []


async def test_neither_bots_nor_forwards_nor_channels_are_answered_unasked(api: BotApi, bot_on, sqlite_storage):
    models, clock, say = TwoModels("yes"), LastingMinute(), in_group(api)
    bot = {"id": 99, "is_bot": True, "first_name": "Other"}
    async with bot_on(api, models, clock=clock, gate=gate_of(models)):
        api.person_says("Which floor?", chat_id=GROUP, user=PEOPLE["Ann"], extra={"from": bot})
        api.person_forwards(["Which floor?"], chat_id=GROUP, user=PEOPLE["Ann"])
        channel = {"id": GROUP, "type": "supergroup", "title": "Team"}
        api.person_says("Which floor?", chat_id=GROUP, user=PEOPLE["Ann"], extra={"sender_chat": channel})
        await settle(sqlite_storage, events=3)
        assert models.asked_gate == []
        say("Ann", "Which floor?")
        await settle(sqlite_storage, events=4, is_whole=False)
        clock.pass_(seconds=5)
        await api.until(lambda: bool(api.visible_texts(GROUP)))
    assert len(models.asked_gate) == 1


@pytest.mark.parametrize("privacy", [True, False])
async def test_doctor_says_what_privacy_mode_means_for_a_bot_that_listens(api: BotApi, privacy: bool):
    api.privacy_mode = privacy
    wires = {"telegram_bot_token": api.token, "telegram_api_url": api.url, "port": 0}
    found = await check_everything(Settings.load(None, **wires, group_answers="listening"))
    (telegram,) = [each for each in found if each.name == "telegram"]
    assert ("GROUP_ANSWERS=listening works only" in telegram.text) is privacy


@pytest.mark.parametrize("command", ["/listen on", "/pause", "/access", "/roles"])
async def test_a_served_bot_takes_the_commands_of_owners_in_a_group(api: BotApi, bot_on, command: str):
    say, service = in_group(api), AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM("Fine.")))
    commands = TransportSetup(Settings.load(None), service).commands
    async with bot_on(api, access=OWNED, commands=commands, gate=gate_of("no")):
        say("Ben", "/ban somebody")  # a command of another bot
        say("Ann", command)
        await api.until(lambda: bool(api.visible_texts(GROUP)))
        assert "/ban" not in str(api.visible_texts(GROUP))
    assert {each.name for each in service.commands.offered(service.agent.tools)} < {each.name for each in commands}
