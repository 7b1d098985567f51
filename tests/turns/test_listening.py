"""When to speak in groups unasked: what the gate decides about, what it is asked, and what comes of it."""

import asyncio
import contextlib
import json
from dataclasses import replace

import pytest
from sqlalchemy import text
from standins.clocks import LastingMinute
from standins.patience import PATIENT
from turns.group_scenes import TwoModels, count_calls, decisions, gate_of, is_of_gate, settle
from turns.messenger import Messenger, office
from turns.ranks import obeying, rank_tools

from botservice import AgentContext, Author, Storage
from botservice.commands.standard import standard_commands
from botservice.conversation.pausing import Pause, set_pause
from botservice.core.errors import LLMError
from botservice.core.messages import InboundMessage, Message, Role
from botservice.core.policies import AccessMode, Scope, parse_limits
from botservice.llm.tokens import counter_for
from botservice.people.access import Access
from botservice.people.access_queries import grant, move_chat, note_departure, read_listening, set_listening
from botservice.people.access_values import AccessRole, Subject, SubjectKind
from botservice.people.budgets import Budgets
from botservice.texts import in_language
from botservice.turns.commands import parse_command
from botservice.turns.listening import build_question, read_answer
from botservice.turns.listening_queries import GateDecision, begin_decision, count_unasked, move_decisions
from botservice.turns.turn import InboundEvent

PEOPLE = {"ann": "7", "ben": "8"}
GROUP = {"transport": "messenger", "chat_id": "1"}
CHAT = "messenger:1"
OWNED = Access(owners=frozenset({"messenger:7"}))


class Group(Messenger):
    """A group of Ann, who may own the bot, and Ben: "ben: text" is Ben's, and "@ text" addresses the bot."""

    is_private = False

    async def read(self, event):
        who, _, said = event.raw.decode().rpartition(": ")
        is_addressed = said.startswith(("@ ", "/"))
        message = InboundMessage(
            said.removeprefix("@ "),
            Author(self.name, PEOPLE[who or "ann"], (who or "ann").title()),
            is_addressed=is_addressed,
            is_private=self.is_private,
        )
        return replace(message, command=parse_command(said))


@contextlib.asynccontextmanager
async def group_with(storage, models, *, clock=None, gate=None, **options):
    clock = clock or LastingMinute()
    gate = gate or gate_of(models)
    async with office(storage, models, messenger=Group(), clock=clock, gate=gate, **options) as bot:
        bot.clock = clock
        yield bot


async def say(bot, *texts, order=1):
    """Have people say something, and nothing more for a while."""
    for number, each in enumerate(texts):
        await bot.write(each, order=order + number)
    await settle(bot.storage, is_whole=False)
    bot.clock.pass_(seconds=5)
    await settle(bot.storage)


async def history(storage):
    context = await AgentContext.get_or_create(storage, GROUP)
    return [each.text for each in await context.chat_history.messages()]


def shown(bot):
    return bot.messenger.visible.get("1", [])


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


@pytest.mark.any_database
async def test_a_budget_that_is_used_up_makes_the_gate_silent(storage: Storage):
    models = TwoModels("yes")
    budgets = Budgets({Scope.CHAT: parse_limits("5000 tokens/day")}, answer_tokens=4096)
    async with group_with(storage, models, budgets=budgets, gate=gate_of(models, budgets=budgets)) as bot:
        await say(bot, "which floor?")
        assert await decisions(storage) == [GateDecision.OVER_BUDGET]
        assert shown(bot) == []
        await say(bot, "@ which floor?", order=2)
        assert shown(bot) == ["An answer."], "a fifth is left to answers"
    assert models.asked_gate == []


async def test_an_unasked_answer_beyond_the_budget_is_not_told(sqlite_storage: Storage):
    models = TwoModels("yes")
    budgets = Budgets({Scope.CHAT: parse_limits("100 tokens/day")}, answer_tokens=50)
    async with group_with(sqlite_storage, models, budgets=budgets) as bot:  # the gate's own has no limit
        await say(bot, "which floor?")
        assert shown(bot) == []
    assert await decisions(sqlite_storage) == [GateDecision.YES]


@pytest.mark.any_database
async def test_what_people_say_to_each_other_does_not_count_towards_their_messages_a_minute(storage: Storage):
    models = TwoModels("yes")
    budgets = Budgets({Scope.PERSON: parse_limits("1 messages/minute")})
    async with group_with(storage, models, budgets=budgets, gate=gate_of(models, budgets=budgets)) as bot:
        for order in range(1, 5):
            await say(bot, f"ben: which floor was it again, for the {order}. time?", order=order)
        await say(bot, "ben: @ which floor?", order=5)
        assert shown(bot) == ["An answer."] * 4, "three of an hour nobody asked for, and the one that Ben asked for"
        await say(bot, "ben: @ and which room?", order=6)
        assert "An answer." not in shown(bot)[4:]
    assert len(models.asked_gate) == 3


async def test_in_a_pause_nothing_is_decided(sqlite_storage: Storage):
    models = TwoModels("yes")
    context = await AgentContext.get_or_create(sqlite_storage, GROUP)
    async with group_with(sqlite_storage, models) as bot:
        pause = Pause(bot.clock())
        await sqlite_storage.write(lambda connection: set_pause(connection, context.id, pause))
        await say(bot, "which floor?")
    assert (models.asked_gate, await history(sqlite_storage)) == ([], ["which floor?"])


async def test_what_is_said_while_a_turn_runs_is_decided_about_after_it(sqlite_storage: Storage):
    begun, go_on, models = asyncio.Event(), asyncio.Event(), TwoModels("no", "Slowly.")

    async def slow(prompt):
        if not is_of_gate(prompt):
            begun.set()
            await go_on.wait()
        return models(prompt)

    async with group_with(sqlite_storage, slow) as bot:
        await bot.write("@ think", order=1)
        await begun.wait()
        await bot.write("ben: which floor?", order=2)
        bot.clock.pass_(seconds=5)
        await bot.write("ben: anybody?", order=3)
        bot.clock.pass_(seconds=5)
        assert models.asked_gate == []
        go_on.set()
        await settle(sqlite_storage)
    assert len(models.asked_gate) == 1
    assert "Slowly." in models.asked_gate[0]


async def test_the_words_of_people_without_access_trigger_nothing(sqlite_storage: Storage):
    models, clock = TwoModels("yes"), LastingMinute()
    blocked = Subject(SubjectKind.PERSON, "messenger:8")
    await sqlite_storage.write(lambda c: grant(c, blocked, AccessRole.BLOCKED, "messenger:7", clock()))
    access = Access(AccessMode.OPEN, owners=frozenset({"messenger:7"}))
    async with group_with(sqlite_storage, models, clock=clock, access=access) as bot:
        await say(bot, "ben: which floor?")
        assert models.asked_gate == []
        await say(bot, "which floor?", order=2)
        assert shown(bot) == ["An answer."]
    assert "Ben" not in models.asked_gate[0]


@pytest.mark.any_database
async def test_the_limit_of_a_chat_is_exact_in_all_of_its_threads_and_processes(storage: Storage, storage_url: str):
    models, clock, threads = TwoModels("yes"), LastingMinute(), [str(number) for number in range(8)]
    async with contextlib.AsyncExitStack() as stack:
        bots = [await stack.enter_async_context(group_with(storage, models, clock=clock))]
        if storage_url.startswith("postgres"):  # of SQLite, one process works on a file
            other = await stack.enter_async_context(Storage.open(storage_url, limits=PATIENT))
            bots.append(await stack.enter_async_context(group_with(other, models, clock=clock)))
        for number in threads:
            event = InboundEvent(f"e{number}", {**GROUP, "thread_id": number}, 1, b"which floor?")
            await bots[int(number) % len(bots)].inbox.accept("messenger", [event])
        clock.pass_(seconds=5)
        await settle(storage, events=len(threads))
        assert sum(len(shown(bot)) for bot in bots) == 3
        clock.pass_(minutes=61)
        event = InboundEvent("later", {**GROUP, "thread_id": "0"}, 2, b"which floor?")
        await bots[0].inbox.accept("messenger", [event])
        clock.pass_(seconds=5)
        await settle(storage, events=len(threads) + 1)
        assert sum(len(shown(bot)) for bot in bots) == 4
    found = await decisions(storage)
    assert sorted(found) == [GateDecision.LIMIT] * 5 + [GateDecision.YES] * 4
    assert await count_calls(storage) == len(models.asked_gate)


@pytest.mark.any_database
async def test_an_agent_that_never_has_anything_to_say_is_not_asked_without_end(storage: Storage):
    models = TwoModels("yes", "NOTHING")
    async with group_with(storage, models, gate=gate_of(models, per_hour=1)) as bot:
        for order in range(1, 6):
            await say(bot, f"ben: say nothing, number {order}", order=order)
        assert len(models.asked_agent) == len(models.asked_gate) == 3
        bot.clock.pass_(minutes=61)
        await say(bot, "ben: which floor?", order=6)
    assert len(models.asked_agent) == 4


@pytest.mark.any_database
async def test_a_flood_in_many_threads_is_decided_about_so_many_times_a_minute(storage: Storage):
    models = TwoModels("no")
    async with group_with(storage, models) as bot:
        for number in range(60):
            event = InboundEvent(f"e{number}", {**GROUP, "thread_id": str(number)}, 1, b"which floor?")
            await bot.inbox.accept("messenger", [event])
        bot.clock.pass_(seconds=5)
        await settle(storage, events=60)
        assert sorted(set(await decisions(storage))) == [GateDecision.LIMIT, GateDecision.NO]
        assert len(models.asked_gate) < 60
        bot.clock.pass_(minutes=2)
        await say(bot, "which floor?", order=2)
        assert json.loads(models.asked_gate[-1]) == [{"Ann": "which floor?"}]
    assert (await decisions(storage)).count(GateDecision.NO) == len(models.asked_gate)


@pytest.mark.any_database
@pytest.mark.parametrize("by", ["a pause", "/listen off"])
async def test_who_silences_the_bot_while_it_decides_hears_nothing(storage: Storage, by: str):
    models = TwoModels("yes")
    context = await AgentContext.get_or_create(storage, GROUP)

    def silence(connection):
        if by == "a pause":
            set_pause(connection, context.id, Pause(storage.now()))
        else:
            set_listening(connection, CHAT, storage.now(), is_on=False)

    async def decide(prompt):
        await storage.write(silence)
        return models(prompt)

    async with group_with(storage, models, gate=gate_of(decide)) as bot:
        await say(bot, "which floor?")
        assert shown(bot) == []
    assert await decisions(storage) == [GateDecision.SILENCED]


@contextlib.asynccontextmanager
async def deciding(storage: Storage, models: TwoModels, **options):
    """Give a bot whose gate has been asked about a question of Ben, and answers when the block ends."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def decide(prompt):
        asked.set()
        await go_on.wait()
        return models(prompt)

    async with group_with(storage, models, gate=gate_of(decide), **options) as bot:
        await bot.write("ben: which floor?", order=1)
        await settle(storage, events=1, is_whole=False)
        bot.clock.pass_(seconds=5)
        await asked.wait()
        yield bot
        go_on.set()
        await settle(storage)
        assert shown(bot) == []


@pytest.mark.any_database
@pytest.mark.parametrize("mode", [AccessMode.OPEN, AccessMode.ALLOW])
async def test_who_is_blocked_while_the_bot_decides_about_their_words_is_not_answered(
    storage: Storage, mode: AccessMode
):
    access = Access(mode, owners=frozenset({"messenger:7"}), allowed=frozenset({CHAT}))
    async with deciding(storage, TwoModels("yes"), access=access) as bot:
        await storage.write(lambda each: access.revoke(each, "messenger:8", "messenger:7", bot.clock()))
    assert await decisions(storage) == [GateDecision.SILENCED]


@pytest.mark.any_database
async def test_a_group_that_is_thrown_out_while_the_bot_decides_is_not_answered(storage: Storage):
    access = Access(AccessMode.ALLOW, owners=frozenset({"messenger:7"}))
    group = Subject(SubjectKind.CHAT, CHAT)
    await storage.write(lambda each: grant(each, group, AccessRole.MEMBER, "messenger:7", storage.now()))
    async with deciding(storage, TwoModels("yes"), access=access) as bot:
        await storage.write(lambda each: access.revoke(each, CHAT, "messenger:7", bot.clock(), kind=SubjectKind.CHAT))
    assert await decisions(storage) == [GateDecision.SILENCED]


@pytest.mark.any_database
async def test_who_stops_the_bot_while_it_decides_is_not_answered_and_no_agent_is_asked(storage: Storage):
    models = TwoModels("yes")
    async with deciding(storage, models) as bot:
        await bot.stop_turn(order=2)
    assert (models.asked_agent, await history(storage)) == ([], ["which floor?"])


@pytest.mark.any_database
async def test_who_addresses_the_bot_while_it_decides_is_answered_and_nobody_else(storage: Storage):
    models, asked, go_on = TwoModels("yes"), asyncio.Event(), asyncio.Event()

    async def decide(prompt):
        asked.set()
        await go_on.wait()
        return models(prompt)

    async with group_with(storage, models, gate=gate_of(decide)) as bot:
        await bot.write("which floor?", order=1)
        await settle(storage, events=1, is_whole=False)
        bot.clock.pass_(seconds=5)
        await asked.wait()
        await bot.write("ben: @ which floor?", order=2)
        go_on.set()
        await settle(storage, events=2)
        assert shown(bot) == ["An answer."]
    assert await decisions(storage) == [GateDecision.SILENCED]
    assert await history(storage) == ["which floor?", "which floor?", "An answer."]


@pytest.mark.any_database
async def test_a_model_is_asked_at_most_twice_about_a_turn(storage: Storage):
    models = TwoModels("no")
    async with group_with(storage, models) as bot:
        await say(bot, "which floor?")
    (turn_id,) = await storage.read(lambda c: c.execute(text("SELECT turn_id FROM gate_decisions")).scalars().all())
    await storage.write(lambda c: c.execute(text("UPDATE gate_decisions SET decision = NULL")))
    again = [await storage.write(lambda c: begin_decision(c, turn_id, CHAT, bot.clock(), per_hour=3)) for _ in range(2)]
    assert again == [None, GateDecision.FAILED]


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


@pytest.mark.any_database
async def test_a_group_that_becomes_a_supergroup_keeps_its_setting_and_its_limit(storage: Storage):
    models = TwoModels("yes")
    async with group_with(storage, models) as bot:
        await say(bot, "which floor?")
        now = bot.clock()

    def move(connection):
        set_listening(connection, CHAT, now, is_on=True)
        move_chat(connection, CHAT, "messenger:2")
        move_decisions(connection, CHAT, "messenger:2")
        found = (read_listening(connection, "messenger:2"), count_unasked(connection, "messenger:2", now))
        note_departure(connection, "messenger:2")
        return found, read_listening(connection, "messenger:2")

    assert await storage.write(move) == ((True, 1), None)


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


async def test_a_pause_that_begins_before_the_decision_keeps_it_from_being_made(sqlite_storage: Storage):
    models = TwoModels("yes")
    context = await AgentContext.get_or_create(sqlite_storage, GROUP)
    async with group_with(sqlite_storage, models) as bot:
        await bot.write("which floor?", order=1)
        deferred = text("SELECT count(*) FROM turns WHERE status = 'queued' AND attempts = 1")
        async with asyncio.timeout(60):
            while not await sqlite_storage.read(lambda c: c.execute(deferred).scalar_one()):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
        pause = Pause(bot.clock())
        await sqlite_storage.write(lambda connection: set_pause(connection, context.id, pause))
        bot.clock.pass_(seconds=5)
        await settle(sqlite_storage, events=1)
    assert (models.asked_gate, await history(sqlite_storage)) == ([], ["which floor?"])


@pytest.mark.any_database
async def test_a_message_that_waits_for_its_decision_is_decided_about_by_the_next_process(storage: Storage):
    models, clock = TwoModels("yes", "Three."), LastingMinute()
    async with group_with(storage, models, clock=clock) as bot:
        await bot.write("which floor?", order=1)
    assert models.asked_gate == []
    clock.pass_(minutes=3)
    async with group_with(storage, models, clock=clock) as bot:
        await bot.messenger.shows("1", "Three.")
    assert len(models.asked_gate) == 1
