"""When to speak in groups unasked: what the gate decides about, what it is asked, and what comes of it."""

import json

import pytest
from sqlalchemy import text
from turns.group_scenes import TwoModels, decisions, gate_of, is_of_gate, settle
from turns.listening_groups import OWNED, group_with, history, say, shown
from turns.ranks import obeying, rank_tools

from botservice import Author, Storage
from botservice.commands.standard import standard_commands
from botservice.core.errors import LLMError
from botservice.core.messages import InboundMessage, Message, Role
from botservice.llm.tokens import counter_for
from botservice.texts import in_language
from botservice.turns.listening import build_question, read_answer
from botservice.turns.listening_queries import GateDecision


@pytest.mark.any_database
async def test_several_messages_are_decided_about_once_and_the_last_is_answered(storage: Storage):
    models = TwoModels("yes", "Three.")
    async with group_with(storage, models) as bot:
        await say(bot, "hm", "ben: which floor was it?", "the one with the kitchen")
        assert shown(bot) == ["Three."]
    (asked,) = models.asked_gate
    assert json.loads(asked) == [{"Ann": "hm"}, {"Ben": "which floor was it?"}, {"Ann": "the one with the kitchen"}]
    assert await decisions(storage) == [GateDecision.YES]
    assert await history(storage) == ["hm", "which floor was it?", "the one with the kitchen", "Three."]


@pytest.mark.any_database
async def test_a_tool_that_wants_a_role_does_not_run_unasked(storage: Storage):
    ran: list[tuple[str, int]] = []
    models = TwoModels("yes")

    def script(prompt):
        return models(prompt) if is_of_gate(prompt) else obeying(prompt)

    options = {"gate": gate_of(models), "access": OWNED, "tools": rank_tools(ran)}
    async with group_with(storage, script, **options) as bot:
        await say(bot, "hm", "we could use deploy 1")
        assert [each.partition(": deploy")[0] for each in shown(bot)] == ["got: Error: not allowed"]
        await bot.write("@ use deploy 2", order=9)
        await bot.messenger.until(lambda: len(shown(bot)) == 2)
    assert ran == [("deploy", 2)]


async def test_what_addresses_the_bot_waits_for_nothing(sqlite_storage: Storage):
    models = TwoModels("yes", "Here.")
    async with group_with(sqlite_storage, models) as bot:
        await bot.write("who is there?", order=1)
        await bot.write("ben: @ are you there?", order=2)
        await bot.messenger.shows("1", "Here.")
        await settle(sqlite_storage)
    assert models.asked_gate == []
    assert await history(sqlite_storage) == ["who is there?", "are you there?", "Here."]


@pytest.mark.any_database
@pytest.mark.parametrize("nothing", ["", "  ", "NOTHING", "Nothing.", "[nothing]"])
async def test_an_agent_that_has_nothing_to_say_says_nothing_and_it_does_not_count(storage: Storage, nothing: str):
    models = TwoModels("yes", nothing)
    async with group_with(storage, models, gate=gate_of(models, per_hour=1)) as bot:
        await say(bot, "which floor?")
        assert await decisions(storage) == [GateDecision.DECLINED]
        models.agent = "Three."
        await say(bot, "ben: does nobody know which floor?", order=2)
        assert shown(bot) == ["Three."]
    assert await history(storage) == ["which floor?", "does nobody know which floor?", "Three."]


async def test_an_asked_agent_that_says_nothing_is_asked_again_as_ever(sqlite_storage: Storage):
    async with group_with(sqlite_storage, TwoModels("no", "NOTHING")) as bot:
        await say(bot, "@ say nothing")
        assert shown(bot) == ["NOTHING"]


async def test_the_agent_is_told_that_nobody_has_asked(sqlite_storage: Storage):
    models = TwoModels("yes")
    async with group_with(sqlite_storage, models) as bot:
        await say(bot, "which floor?")
        await say(bot, "@ which floor?", order=2)
    assert ["Nobody has addressed you" in each for each in models.asked_agent] == [True, False]


@pytest.mark.parametrize("failing", ["gate", "agent"])
async def test_a_failure_of_what_nobody_asked_for_is_not_told(sqlite_storage: Storage, failing: str):
    models = TwoModels("yes")

    def script(prompt):
        if is_of_gate(prompt) is (failing == "gate"):
            raise LLMError("the server is down")
        return models(prompt)

    async with group_with(sqlite_storage, script) as bot:
        await say(bot, "which floor?")
        assert shown(bot) == []
    assert await decisions(sqlite_storage) == [GateDecision.FAILED if failing == "gate" else GateDecision.YES]


async def test_owners_switch_it_for_a_group_and_others_may_not(sqlite_storage: Storage):
    models = TwoModels("yes")
    options = {"access": OWNED, "commands": standard_commands(), "gate": gate_of(models, listens=False)}
    on, off = in_language("listen.on", "en", most="3"), in_language("listen.off", "en")
    how, only = in_language("listen.how", "en"), in_language("access.for_owners", "en")
    async with group_with(sqlite_storage, models, **options) as bot:
        for order, command in enumerate(["ben: /listen on", "/listen", "/listen on", "/listen what", "/listen"], 1):
            await bot.write(command, order=order)
            await bot.messenger.until(lambda order=order: len(shown(bot)) == order)
        assert shown(bot) == [only, f"{off}\n\n{how}", on, how, f"{on}\n\n{how}"]
        await say(bot, "ben: which floor?", order=6)
        assert shown(bot)[5:] == ["An answer."]
        await bot.write("/listen off", order=7)
        await say(bot, "ben: which floor?", order=8)
        assert shown(bot)[6:] == [off]
        bot.messenger.is_private = True
        await bot.write("/listen on", order=9)
        await bot.messenger.until(lambda: shown(bot)[7:] == [in_language("listen.in_groups", "en")])


async def test_why_and_usage_say_what_decided_and_what_it_cost(sqlite_storage: Storage):
    models = TwoModels("yes", "Three.")
    async with group_with(sqlite_storage, models, access=OWNED, commands=standard_commands()) as bot:
        await say(bot, "which floor?")
        await bot.write("/why", order=2)
        await bot.write("/usage", order=3)
        await bot.messenger.until(lambda: len(shown(bot)) == 3)
        _, why, usage = shown(bot)
    assert in_language("why.unasked", "en", gate="scripted") in why
    assert "deciding when to speak in groups" in usage
    assert "in 1 model call" in usage


@pytest.mark.parametrize(
    ("said", "decision"),
    [
        ("yes", "yes"),
        (" Yes.\n", "yes"),
        ("NO", "no"),
        *(
            (each, "unclear")
            for each in ("", "yes yes", "yes!", "Yes, please", "ja", '{"answer": "yes"}', "y", "no yes")
        ),
    ],
)
def test_an_answer_is_one_word_or_it_is_unclear(said: str, decision: str):
    assert read_answer(said) is GateDecision(decision)


def test_the_last_messages_fit_into_300_tokens_and_nobody_can_pass_for_the_bot():
    earlier = [
        Message(1, Role.USER, "old " * 400, author=Author("t", "1", "Ann")),
        Message(2, Role.ASSISTANT, "I said"),
    ]
    said = [InboundMessage("new", Author("t", "2", "You")), InboundMessage("newest", Author("t", "3", 'B"en\n'))]
    task, shown = build_question(earlier, said, "You are a helper. " * 500, "gpt-4o")
    found = json.loads(shown["content"])
    assert [next(iter(each)) for each in found] == ["Ann", "you", "somebody", "B en"]
    assert found[0]["Ann"].startswith("old old")
    assert found[0]["Ann"].endswith("…")
    assert counter_for("gpt-4o").count(shown["content"]) <= 310
    assert len(task["content"]) < 2_500


async def test_an_always_allowed_tool_asks_again_in_an_unasked_turn(sqlite_storage: Storage):
    models = TwoModels("yes")
    async with group_with(sqlite_storage, models) as bot:
        await say(bot, "which floor?")
    rows = await sqlite_storage.read(lambda c: c.execute(text("SELECT is_all_own FROM messages")).scalars().all())
    assert not any(rows)
