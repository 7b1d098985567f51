"""A turn that a budget does not reach for ends politely; one that it reaches for is paid for, once."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from people.gatehouse import Clock, Crowd, outcomes, say, saying, until_done
from sqlalchemy import func, select
from standins.patience import PATIENT
from turns.bots import add, call, make_service
from turns.messenger import echo, office

from botservice import (
    AgentContext,
    AgentService,
    Author,
    ChatResponse,
    FallbackLLM,
    FunctionsBasedAgent,
    LLMError,
    ScriptedChatLLM,
    SettingsError,
    Storage,
    TokenUsage,
)
from botservice.commands.standard import standard_commands
from botservice.config.settings import Settings
from botservice.core.errors import BudgetExceeded
from botservice.core.policies import Scope, parse_limits, parse_prices
from botservice.core.states import EventKind
from botservice.factories import govern
from botservice.people.budgets import Budgets, nearly_used_text, used_up_text
from botservice.people.usage import UsageBy, UsageLine
from botservice.people.usage_queries import list_usage
from botservice.storage.tables.conversations import messages
from botservice.storage.tables.people import budget_reservations
from botservice.texts import in_language

ALICE, BOB = "1", "2"
TOMORROW = datetime(2026, 3, 3, tzinfo=UTC)


def budgets(*, answer_tokens: int = 100, prices: str = "", **limits: str) -> Budgets:
    parsed = {Scope(scope): parse_limits(text) for scope, text in limits.items()}
    return Budgets(parsed, parse_prices(prices), answer_tokens=answer_tokens)


def taking(input_tokens: int, output_tokens: int) -> Callable[[list[Any]], ChatResponse]:
    """Return a model that takes so much for every answer."""

    def answer(prompt: list[Any]) -> ChatResponse:
        return ChatResponse(f"re: {prompt[-1]['content']}", usage=TokenUsage(input_tokens, output_tokens))

    return answer


def shop(storage: Storage, script: Any, owner: Budgets, clock: Clock | None = None, **options: Any):
    return office(
        storage,
        script,
        messenger=Crowd(),
        clock=clock or Clock(),
        budgets=owner,
        commands=standard_commands(),
        **options,
    )


async def usage(storage: Storage, by: UsageBy | None = None) -> list[UsageLine]:
    return await storage.read(lambda connection: list_usage(connection, by, datetime(2020, 1, 1, tzinfo=UTC)))


async def reserved(storage: Storage) -> int:
    query = select(func.count()).select_from(budget_reservations)
    return await storage.read(lambda connection: int(connection.execute(query).scalar_one()))


@pytest.mark.any_database
async def test_what_models_took_is_counted_also_where_nothing_is_limited(storage: Storage) -> None:
    script = [
        ChatResponse("", (call("add", "x", a=1, b=1),), TokenUsage(10, 2)),
        ChatResponse("2", usage=TokenUsage(20, 3, 15)),
        "for bob",
    ]
    async with shop(storage, script, budgets(prices="scripted=1/2/0.1"), tools=[add]) as bot:
        await say(bot, "one and one?", ALICE, "-100")
        await say(bot, "hello", BOB)
    (alice, bob) = sorted(await usage(storage, UsageBy.PERSON), key=lambda line: line.subject or "")
    assert (alice.subject, alice.calls, alice.input_tokens, alice.output_tokens) == ("crowd:1", 2, 30, 5)
    assert (alice.cached_tokens, alice.cost) == (15, 15_000 + 1_500 + 10_000)
    assert (bob.subject, bob.calls) == ("crowd:2", 1)
    assert {line.subject for line in await usage(storage, UsageBy.CHAT)} == {"crowd:-100", "crowd:2"}


async def test_beyond_the_budget_a_question_is_kept_and_refused_politely_until_the_next_day(storage: Storage) -> None:
    clock = Clock()
    async with shop(storage, taking(900, 50), budgets(person="1000 tokens/day"), clock) as bot:
        await say(bot, "first", ALICE)
        await say(bot, "second", ALICE, language="de")
        await say(bot, "hello", BOB)
        told = used_up_text("person", TOMORROW, "de", Clock().now).plain
        assert "morgen, 00:00 UTC" in told
        assert bot.messenger.visible[ALICE][2] == told
        assert len(bot.messenger.visible[BOB]) == 2, "the answer, and that most of the budget is used"
        clock.now = TOMORROW
        await say(bot, "third", ALICE)
        assert bot.messenger.visible[ALICE][3] == "re: third"
    assert (await outcomes(storage)) == ["answered", "refused", "answered", "answered"]
    query = select(messages.c.text).where(messages.c.author_id == ALICE).order_by(messages.c.id)
    kept = await storage.read(lambda connection: list(connection.execute(query).scalars()))
    assert kept == ["first", "second", "third"]
    assert await reserved(storage) == 0


@pytest.mark.any_database
async def test_the_model_is_not_asked_for_what_is_refused(storage: Storage) -> None:
    asked = []

    def model(prompt: list[Any]) -> ChatResponse:
        asked.append(prompt[-1]["content"])
        return ChatResponse("yes", usage=TokenUsage(950, 0))

    async with shop(storage, model, budgets(chat="1000 tokens/day")) as bot:
        await say(bot, "first", ALICE, "-100")
        await say(bot, "second", BOB, "-100")
    assert asked == ["first"]


async def test_most_of_a_budget_is_said_once_behind_an_answer_and_not_kept(storage: Storage) -> None:
    warning = nearly_used_text("person", TOMORROW, "en", Clock().now).plain
    async with shop(storage, taking(1700, 0), budgets(person="4200 tokens/day")) as bot:
        await say(bot, "a", ALICE)
        await say(bot, "b", ALICE)
        assert bot.messenger.visible[ALICE] == ["re: a", "re: b", warning]
    async with shop(storage, taking(10, 0), budgets(person="4200 tokens/day")) as bot:
        await say(bot, "c", ALICE)
        assert bot.messenger.visible[ALICE] == ["re: c"]
    query = select(messages.c.text).where(messages.c.role == "assistant").order_by(messages.c.id)
    assert await storage.read(lambda connection: list(connection.execute(query).scalars())) == [
        "re: a",
        "re: b",
        "re: c",
    ]


@pytest.mark.any_database
async def test_a_call_that_fails_is_not_paid_and_gives_its_room_back(storage: Storage) -> None:
    script: list[Any] = [LLMError("down", is_transient=False), taking(10, 1)]
    async with shop(storage, script, budgets(person="300 tokens/day")) as bot:
        await say(bot, "first", ALICE)
        assert await reserved(storage) == 0
        await say(bot, "second", ALICE)
        assert bot.messenger.visible[ALICE][1] == "re: second"
    (line,) = await usage(storage)
    assert (line.calls, line.input_tokens, line.output_tokens) == (1, 10, 1)


@pytest.mark.any_database
async def test_a_call_that_is_stopped_is_paid_as_far_as_it_went(storage: Storage) -> None:
    asked = asyncio.Event()

    async def model(_: list[Any]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    async with shop(storage, model, budgets(person="1000 tokens/day")) as bot:
        event = saying("tell me a long story", ALICE)
        await bot.inbox.accept("crowd", [event])
        await asked.wait()
        stop = replace(saying("/stop", ALICE), kind=EventKind.STOP)
        await bot.inbox.accept("crowd", [stop])
        await until_done(bot, event.key)
    (line,) = await usage(storage)
    assert line.calls == 1
    assert line.input_tokens > 0
    assert await reserved(storage) == 0


@pytest.mark.any_database
async def test_a_server_that_does_not_count_is_counted_for(storage: Storage) -> None:
    script = [ChatResponse("an answer of some words", usage=None)]
    async with shop(storage, script, budgets(person="1000 tokens/day")) as bot:
        await say(bot, "hello", ALICE)
    (line,) = await usage(storage)
    assert line.input_tokens > 0
    assert line.output_tokens > 3


@pytest.mark.any_database
async def test_too_many_messages_in_a_minute_are_kept_and_answered_no_more(storage: Storage) -> None:
    clock = Clock()
    async with shop(storage, echo, budgets(person="2 messages/minute"), clock) as bot:
        for text in ("a", "b", "c", "d"):
            await say(bot, text, ALICE)
        await say(bot, "/help", ALICE)
        shown = bot.messenger.visible[ALICE]
        assert shown[:3] == ["re: a", "re: b", in_language("budgets.too_fast", "en", when="12:01 UTC")]
        assert len(shown) == 4, "told once; commands are answered"
        clock.pass_(minutes=1)
        await say(bot, "e", ALICE)
        assert shown[4] == "re: e"
    assert await outcomes(storage) == ["answered", "answered", "listened", "listened", "answered", "answered"]


@pytest.mark.any_database
async def test_what_is_answered_together_counts_as_one_message(storage: Storage) -> None:
    clock = Clock()
    async with shop(storage, echo, budgets(person="2 messages/minute"), clock) as bot:
        album = [replace(saying(f"picture {number}", ALICE), group_key="album") for number in range(5)]
        await bot.inbox.accept("crowd", album)
        clock.pass_(seconds=2)  # its parts are waited for
        await until_done(bot, album[0].key)
        await say(bot, "and this", ALICE)
        assert len(bot.messenger.visible[ALICE]) == 2
        assert bot.messenger.visible[ALICE][1] == "re: and this"


@pytest.mark.any_database
async def test_a_prompt_of_a_program_raises_and_can_be_resumed_when_there_is_room(storage: Storage) -> None:
    clock = Clock()
    service, _ = make_service(storage, [taking(850, 0), "and now"])
    service.options = type(service.options)(
        service.agent,
        service.options.callbacks,
        10,
        clock,
        service.options.model_retries,
        budgets(person="1000 tokens/day"),
    )
    context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
    author = Author("program", "1")
    await service.prompt(context, "first", author=author)
    with pytest.raises(BudgetExceeded, match="resets at 2026-03-03 00:00 UTC"):
        await service.prompt(context, "second", author=author)
    clock.now = TOMORROW
    run = await service.resume(context)
    assert run is not None
    assert (await run.finish()).text == "and now"


@pytest.mark.slow
async def test_a_hundred_turns_at_once_never_take_more_than_there_is(storage_url: str) -> None:
    limit = 7_500
    owner = f"{limit} tokens/day"
    async with contextlib.AsyncExitStack() as stack:
        # Two replicas where the database allows it, each with books of its own.
        count = 2 if storage_url.startswith("postgres") else 1
        stores = [await stack.enter_async_context(Storage.open(storage_url, limits=PATIENT)) for _ in range(count)]
        bots = [
            await stack.enter_async_context(shop(each, taking(9, 90), budgets(service=owner), is_started=False))
            for each in stores
        ]
        said = [saying(f"question {number}", str(number % 50), f"{number}0") for number in range(100)]
        await bots[0].inbox.accept("crowd", said)
        for bot in bots:
            await bot.worker.start()
        await asyncio.gather(*(until_done(bots[0], event.key) for event in said))
        (line,) = await usage(stores[0])
        taken = line.input_tokens + line.output_tokens
        assert taken <= limit
        assert line.calls >= 25
        assert sorted(set(await outcomes(stores[0])), key=str) == ["answered", "refused"]
        assert await reserved(stores[0]) == 0


async def test_usage_tells_a_person_what_is_used_and_left(storage: Storage) -> None:
    owner = budgets(person="1000 tokens/day, 1 money/month", prices="scripted=10/20")
    async with shop(storage, taking(100, 50), owner) as bot:
        await say(bot, "hello", ALICE)
        await say(bot, "/usage", ALICE)
        await say(bot, "/usage", BOB)
        assert bot.messenger.visible[ALICE][1] == (
            "Today: 150 tokens in 1 model call, 0.0020 USD\n"
            "This month: 150 tokens in 1 model call, 0.0020 USD\n\n"
            "- You: 150 of 1,000 tokens per day (15%). Resets: tomorrow, 00:00 UTC\n"
            "- You: 0.0020 USD of 1.0000 USD per month (0%). Resets: Apr 1, 00:00 UTC\n\n"
            "Days and months are in UTC."
        )
        assert "Today: 0 tokens in 0 model calls" in bot.messenger.visible[BOB][0]


def pair(*failures: Any) -> FallbackLLM:
    """Return two models, of which the first fails."""

    def answer(_: list[Any]) -> ChatResponse:
        return ChatResponse("here", usage=TokenUsage(1000, 100))

    return FallbackLLM([ScriptedChatLLM(failures, model="cheap"), ScriptedChatLLM(answer, model="dear")])


@pytest.mark.any_database
async def test_a_call_costs_what_the_model_costs_that_answered(storage: Storage, context: AgentContext) -> None:
    owner = budgets(prices="cheap=1/1, dear=10/10", service="1 money/day")
    agent = FunctionsBasedAgent(llm=pair(LLMError("down")), search_k=0)
    await AgentService(agent, storage, budgets=owner).prompt(context, "hello")
    (line,) = await usage(storage, UsageBy.MODEL)
    assert (line.subject, line.input_tokens, line.cost) == ("dear", 1000, 11_000_000)
    assert await reserved(storage) == 0


@pytest.mark.any_database
async def test_what_the_most_expensive_model_may_cost_has_to_fit(storage: Storage, context: AgentContext) -> None:
    owner = budgets(prices="cheap=1/1, dear=100000/100000", service="1 money/day")
    agent = FunctionsBasedAgent(llm=pair("never"), search_k=0)
    with pytest.raises(BudgetExceeded):
        await AgentService(agent, storage, budgets=owner).prompt(context, "hello")


@pytest.mark.any_database
async def test_money_is_limited_only_where_every_model_has_a_price(storage: Storage, context: AgentContext) -> None:
    owner = budgets(prices="cheap=1/1", service="1 money/day")
    agent = FunctionsBasedAgent(llm=pair("never"), search_k=0)
    with pytest.raises(SettingsError, match="PRICES must say what dear costs"):
        await AgentService(agent, storage, budgets=owner).prompt(context, "hello")
    with pytest.raises(SettingsError, match="PRICES must say what dear costs"):
        govern(Settings(_env_file=None), AgentService(agent, storage, budgets=owner))
