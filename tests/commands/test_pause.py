"""Hand-over: /pause, /resume and the tool hand_over, and what is said meanwhile."""

import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from commands.test_conversations import CHAT, Commanded
from turns.bots import call
from turns.messenger import SetClock, office

from botservice import AgentContext, Author, SteadyWindowMessageSelector
from botservice.agent.reminding import Reminders
from botservice.commands.standard import standard_commands
from botservice.config.settings import Settings
from botservice.conversation.pausing import Pause, read_duration, set_pause
from botservice.core.chat_addresses import ChatAddress
from botservice.factories import build_hand_over
from botservice.people.access import Access
from botservice.privacy.forgetting import forget_chat
from botservice.texts import in_language
from botservice.turns.hand_over_tool import HandOver

OWNERS = Access(owners=frozenset({"messenger:7"}))
TOLD = in_language("pause.told", "en")


class Team(Commanded):
    """A messenger with a private chat "9" of the owner; elsewhere "bob: text" is said by Bob, who is none."""

    async def read(self, event):
        message = await super().read(event)
        return replace(message, is_addressed=not message.text.startswith("~"))


def said(prompt) -> str:
    return f"re: {prompt[-1]['content']}"


@contextlib.asynccontextmanager
async def bot_with(storage, script=said, *, tools=(), **options):
    messenger = Team()
    messenger.is_private = options.pop("is_private", True)
    made = office(
        storage, script, messenger=messenger, access=OWNERS, commands=standard_commands(), tools=tools, **options
    )
    async with made as bot:
        yield bot


async def history(storage, chat="1") -> list[str]:
    context = await AgentContext.get_or_create(storage, {**CHAT, "chat_id": chat})
    return [each.text for each in await context.chat_history.messages()]


async def pause_by_hand(storage, **pause) -> None:
    context = await AgentContext.get_or_create(storage, CHAT)
    await storage.write(lambda connection: set_pause(connection, context.id, Pause(storage.now(), **pause)))


@pytest.mark.any_database
@pytest.mark.parametrize("is_private", [True, False])
async def test_what_is_said_in_a_pause_is_kept_and_is_not_answered_later_either(storage, is_private):
    async with bot_with(storage, is_private=is_private) as bot:
        await bot.write("hello", order=1)
        await bot.write("/pause", order=2)
        await bot.write("bob: are you there?", order=3)
        await bot.write("here I am, Bob", order=4)
        await bot.write("/resume", order=5)
        await bot.write("bob: and you?", order=6)
        paused, resumed = (in_language(key, "en") for key in ("pause.done", "resume.done"))
        await bot.messenger.shows("1", "re: hello", paused, resumed, "re: bob: and you?")
    assert await history(storage) == [
        "hello",
        "re: hello",
        "are you there?",
        "here I am, Bob",
        "and you?",
        "re: bob: and you?",
    ]


@pytest.mark.any_database
async def test_messages_that_waited_together_with_the_commands_are_kept_by_their_order(storage):
    async with bot_with(storage, is_started=False) as bot:
        texts = ["/pause", "bob: in the pause", "/resume", "bob: after it"]
        for order, text in enumerate([*(f"~{number}" for number in range(9)), *texts], 1):
            await bot.write(text, order=order)
        await bot.worker.start()
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("1", [])) == 3)
        assert bot.messenger.visible["1"][2].endswith("bob: after it")
        assert (await history(storage)).count("in the pause") == 1


@pytest.mark.any_database
async def test_a_message_before_a_shared_resume_is_not_answered(storage):
    await pause_by_hand(storage)
    async with bot_with(storage, is_started=False) as bot:
        for order, text in enumerate([*(f"~{number}" for number in range(9)), "~x", "bob: kept", "/resume"], 1):
            await bot.write(text, order=order)
        await bot.worker.start()
        await bot.messenger.until(lambda: in_language("resume.done", "en") in bot.messenger.visible.get("1", []))
        assert "re: " not in str(bot.messenger.visible)
    assert (await history(storage))[-1] == "kept"


async def test_the_model_sees_afterwards_what_people_said_in_the_pause(storage):
    prompts = []

    def script(prompt):
        prompts.append(str(prompt))
        return "hm"

    async with bot_with(storage, script, selector=SteadyWindowMessageSelector(1000)) as bot:
        for order, text in enumerate(["/pause", "bob: my order is 77", "/resume", "bob: which one?"], 1):
            await bot.write(text, order=order)
        await bot.messenger.until(lambda: "hm" in bot.messenger.visible.get("1", []))
    assert len(prompts) == 1
    assert "my order is 77" in prompts[0]


@pytest.mark.any_database
async def test_the_people_are_told_once_of_a_pause_that_was_begun_elsewhere(storage):
    await pause_by_hand(storage)
    async with bot_with(storage) as bot:
        await bot.write("~not for the bot", order=1)
        await bot.write("bob: one", order=2)
        await bot.write("bob: two", order=3)
        await bot.write("/resume", order=4)
        await bot.messenger.shows("1", TOLD, in_language("resume.done", "en"))


async def test_only_owners_pause_and_resume(storage):
    async with bot_with(storage) as bot:
        await bot.write("bob: /pause", order=1)
        await bot.write("bob: hello", order=2)
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("1", [])) == 2)
        assert "Only an owner" in bot.messenger.visible["1"][0]
        assert bot.messenger.visible["1"][1] == "re: hello"
        await bot.write("/pause", order=3)
        await bot.write("bob: /resume", order=4)
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) == 4)
        assert "Only an owner" in bot.messenger.visible["1"][3]
        await bot.write("bob: hello?", order=5)
        await bot.write("/resume", order=6)
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) == 5)
    assert "re: hello?" not in await history(storage)


@pytest.mark.any_database
async def test_a_pause_ends_by_itself_and_what_was_said_in_it_stays_unanswered(storage):
    clock = SetClock(datetime(2026, 11, 27, 12, tzinfo=UTC))
    async with bot_with(storage, clock=clock) as bot:
        await bot.write("/pause 1h", order=1)
        await bot.messenger.until(lambda: "until" in str(bot.messenger.visible))
        clock.now += timedelta(minutes=59)
        await bot.worker.stop()
        await bot.write("bob: in the pause", order=2)
    clock.now += timedelta(minutes=2)
    async with bot_with(storage, clock=clock) as bot:
        await bot.write("bob: after it", order=3)
        await bot.messenger.shows("1", "re: after it")
        assert await history(storage) == ["in the pause", "after it", "re: after it"]
        await bot.write("/resume", order=4)
        await bot.messenger.shows("1", "re: after it", in_language("resume.nothing", "en"))


async def test_what_is_no_duration_pauses_nothing(storage):
    async with bot_with(storage) as bot:
        await bot.write("/pause for ever", order=1)
        await bot.write("bob: hello", order=2)
        await bot.messenger.shows("1", in_language("pause.how", "en"), "re: hello")
    hours = [read_duration(text) for text in ("30m", "1h", "2 d", "90 min", "0h", "1", "1w", "366d", "-1h", "999999d")]
    assert hours == [timedelta(minutes=30), timedelta(hours=1), timedelta(days=2), timedelta(minutes=90), *[None] * 6]


@pytest.mark.any_database
async def test_commands_work_in_a_pause_and_retry_takes_no_answer_away(storage):
    async with bot_with(storage) as bot:
        await bot.write("bob: hello", order=1)
        await bot.write("/pause", order=2)
        await bot.write("bob: /retry", order=3)
        await bot.write("bob: /reminders", order=4)
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("1", [])) == 4)
        assert bot.messenger.visible["1"][2] == in_language("pause.stands", "en")
        assert "No reminders" in bot.messenger.visible["1"][3]
        await bot.stop_turn(order=5)
        await bot.write("/resume", order=6)
        await bot.messenger.until(lambda: in_language("resume.done", "en") in bot.messenger.visible["1"])
    assert await history(storage) == ["hello", "re: hello"]


@pytest.mark.any_database
async def test_a_forgotten_chat_has_no_pause(storage):
    await pause_by_hand(storage)
    context = await AgentContext.get_or_create(storage, CHAT)
    await forget_chat(storage, context.id)
    async with bot_with(storage) as bot:
        await bot.write("bob: hello", order=1)
        await bot.messenger.shows("1", "re: hello")


async def test_a_program_that_replaces_the_metadata_leaves_the_pause(storage):
    await pause_by_hand(storage)
    context = await AgentContext.get_or_create(storage, CHAT)
    context.metadata = {"mine": 1}
    await context.save_metadata()
    kept = (await AgentContext.get_or_create(storage, CHAT)).metadata
    assert kept["mine"] == 1
    assert Pause.of(kept) is not None
    assert Pause.of({"pause": "a program's own"}) is None


@pytest.mark.any_database
async def test_a_reminder_waits_for_the_end_of_the_pause(storage):
    clock = SetClock(datetime(2026, 11, 27, 12, tzinfo=UTC))
    script = [call("remind_me", text="tea", in_minutes=5), "yes", "hm"]
    async with bot_with(storage, script, clock=clock, tools=Reminders(clock).tools()) as bot:
        await bot.write("bob: remind me", order=1)
        await bot.write("/pause", order=2)
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("1", [])) == 2)
        clock.now += timedelta(hours=1)
        context = await AgentContext.get_or_create(storage, CHAT)
        await bot.messenger.until_tried(2)
        await bot.write("/reminders", order=3)
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) == 3)
        assert "⏰" not in str(bot.messenger.visible)
        await storage.write(lambda connection: set_pause(connection, context.id, None))
        clock.now += timedelta(minutes=1)
        await bot.messenger.until(lambda: "⏰ tea" in str(bot.messenger.visible))


def handing_over(chat: str | None = None):
    return HandOver(OWNERS, ChatAddress.parse(chat) if chat else None, "https://bot.example").tool()


@pytest.mark.any_database
@pytest.mark.parametrize("chat", [None, "transport=messenger chat_id=77"])
async def test_the_agent_hands_over_and_the_owner_is_told_why_and_where(storage, chat):
    script = [said, call("hand_over", reason="Wants a ```refund``` of order 77"), "Somebody comes."]
    async with bot_with(storage, script, tools=[handing_over(chat)]) as bot:
        await bot.write("I am the owner", chat="9", order=1)
        await bot.messenger.until(lambda: "9" in bot.messenger.visible)
        await bot.write("bob: a human please", order=2)
        await bot.messenger.shows("1", "Somebody comes.")
        await bot.write("bob: hello?", order=3)
        await bot.write("bob: anybody?", order=4)
        await bot.messenger.shows("1", "Somebody comes.", TOLD)
        told = "77" if chat else "9"
        await bot.messenger.until(lambda: "🙋" in str(bot.messenger.visible.get(told)))
        context = await AgentContext.get_or_create(storage, CHAT)
        text = bot.messenger.visible[told][-1]
        assert "Wants a '''refund''' of order 77" in text
        assert f"https://bot.example/inspect/{context.id}" in text
        await bot.write("/resume", order=5)
        await bot.messenger.shows("1", "Somebody comes.", TOLD, in_language("resume.done", "en"))
    assert str(bot.messenger.visible).count("🙋") == 1


async def test_nobody_is_called_and_nothing_paused_where_no_owner_has_written(storage):
    results = []

    def script(prompt):
        results.append(prompt[-1]["content"])
        return call("hand_over", reason="help") if len(results) == 1 else "I go on."

    async with bot_with(storage, script, tools=[handing_over()]) as bot:
        await bot.write("bob: a human please", order=1)
        await bot.messenger.shows("1", "I go on.")
        await bot.write("bob: hello", order=2)
        await bot.messenger.shows("1", "I go on.", "I go on.")
    assert "no owner has written" in results[1]


async def test_a_call_that_is_made_again_tells_the_owners_once(storage):
    owners = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "77"})
    context = await AgentContext.get_or_create(storage, CHAT)
    tool = HandOver(OWNERS, ChatAddress(owners.id, {}), "https://bot.example")
    answers = [await tool.hand_over(context, "help") for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(await owners.chat_history.messages()) == 1


@pytest.mark.any_database
async def test_one_person_has_the_owners_called_so_many_times_an_hour(storage, monkeypatch):
    clock = SetClock(datetime(2026, 11, 27, 12, tzinfo=UTC))
    monkeypatch.setattr(storage, "now", clock)
    owners = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "77"})
    tool = HandOver(OWNERS, ChatAddress(owners.id, {}), "https://bot.example")

    async def call_from(chat: str, who: str) -> str:
        context = await AgentContext.get_or_create(storage, {**CHAT, "chat_id": chat})
        await context.chat_history.append_user_message("a human please", author=Author("messenger", who))
        return await tool.hand_over(context, "help")

    said = [await call_from(chat, "bob") for chat in ("1", "2", "3", "4", "4", "3")]
    assert ["too often" in each for each in said] == [False, False, False, True, True, False], "the last is paused"
    assert "too often" not in await call_from("5", "eve")
    assert len(await owners.chat_history.messages()) == 4
    clock.now += timedelta(hours=1)
    assert "too often" not in await call_from("4", "bob")


async def test_a_conversation_of_a_program_is_handed_to_nobody(storage):
    context = await AgentContext.get_or_create(storage, {"job": 1})
    said = await HandOver(OWNERS, None, "https://bot.example").hand_over(context, "help")
    assert "in no chat" in said
    assert context.metadata == {}


async def test_an_owner_is_told_in_the_private_chat_in_which_they_wrote_last(storage):
    script = [said, said, call("hand_over", reason="help"), "Somebody comes."]
    async with bot_with(storage, script, tools=[handing_over()]) as bot:
        for order, chat in enumerate(("8", "9"), 1):
            await bot.write("I am the owner", chat=chat, order=order)
            await bot.messenger.until(lambda chat=chat: chat in bot.messenger.visible)
        await bot.write("bob: a human please", order=3)
        await bot.messenger.until(lambda: "🙋" in str(bot.messenger.visible.get("9")))
        assert "🙋" not in str(bot.messenger.visible["8"])


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, []),
        ({"OWNERS": "telegram:42"}, ["hand_over"]),
        ({"ALERTS_TO": "telegram:-100"}, ["hand_over"]),
        ({"OWNERS": "telegram:42", "TOOLS": "time"}, []),
        ({"TOOLS": "hand_over"}, []),
    ],
)
def test_the_tool_is_there_where_the_settings_say_who_can_be_told(monkeypatch, tmp_path, settings, names):
    monkeypatch.chdir(tmp_path)
    for name in ("OWNERS", "ALERTS_TO", "TOOLS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert [each.name for each in build_hand_over(Settings.load())] == names
