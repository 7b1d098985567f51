"""What may be used is kept for each call before it is made, exactly, however many are made at once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection
from standins.patience import PATIENT
from storage.effort import Efforts

from botservice import AgentContext, Author, Storage
from botservice.core.errors import BudgetExceeded, SettingsError
from botservice.core.messages import TokenUsage
from botservice.core.policies import Scope, parse_limits, parse_prices
from botservice.core.states import Outcome, TurnStatus
from botservice.people.budgets import Budgets
from botservice.people.queries import ensure_identity, join_identities
from botservice.people.usage import ModelCall, Payer, UsageBy
from botservice.people.usage_queries import list_usage, record_call
from botservice.turns.queries import finish_turn, insert_turn

NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)
ALICE = Author("telegram", "42", "Alice")
MODEL = "gpt-test"


async def begin(storage: Storage, chat: str = "1", author: Author = ALICE) -> tuple[int, Payer]:
    """Return a turn that runs, and who pays for it."""
    keys = {"transport": "telegram", "chat_id": chat}
    context = await AgentContext.get_or_create(storage, keys)
    turn_id = await storage.write(
        lambda connection: insert_turn(connection, context.id, "telegram", NOON, status=TurnStatus.RUNNING)
    )
    return turn_id, Payer.of(context.id, keys, author)


def budgets(*, answer_tokens: int = 100, prices: str = "", **limits: str) -> Budgets:
    parsed = {Scope(scope): parse_limits(text) for scope, text in limits.items()}
    return Budgets(parsed, parse_prices(prices), answer_tokens=answer_tokens)


async def spend(
    storage: Storage, owner: Budgets, tokens: int, *, chat: str = "1", author: Author = ALICE, now: datetime = NOON
) -> int:
    """Make a call that reserves tokens + 100 and takes tokens in all; return its turn."""
    turn_id, payer = await begin(storage, chat, author)
    await owner.reserve(storage, turn_id, payer, MODEL, tokens, now)
    call = owner.price(MODEL, TokenUsage(tokens, 0))
    await storage.write(lambda connection: owner.settle(connection, turn_id, payer, call, now))
    return turn_id


async def used_tokens(storage: Storage, since: datetime = NOON) -> int:
    (line,) = await storage.read(lambda connection: list_usage(connection, None, since))
    return line.input_tokens + line.output_tokens


async def test_a_call_that_does_not_fit_is_refused_and_says_when_the_budget_begins_anew(storage: Storage) -> None:
    owner = budgets(person="1000 tokens/day")
    await spend(storage, owner, 850)
    turn_id, payer = await begin(storage)
    with pytest.raises(BudgetExceeded, match="the person's budget of 1,000 tokens a day") as refused:
        await owner.reserve(storage, turn_id, payer, MODEL, 100, NOON)
    assert refused.value.scope == "person"
    assert refused.value.ends_at == datetime(2026, 4, 1, tzinfo=UTC)
    await owner.reserve(storage, turn_id, payer, MODEL, 50, NOON)


async def test_what_is_reserved_counts_until_it_is_settled_or_given_back(storage: Storage) -> None:
    owner = budgets(service="1000 tokens/day")
    first, payer = await begin(storage, "1")
    second, other = await begin(storage, "2", Author("telegram", "7"))
    await owner.reserve(storage, first, payer, MODEL, 600, NOON)
    with pytest.raises(BudgetExceeded):
        await owner.reserve(storage, second, other, MODEL, 300, NOON)
    await owner.release(storage, first)
    await owner.reserve(storage, second, other, MODEL, 300, NOON)
    with pytest.raises(BudgetExceeded):
        await owner.reserve(storage, first, payer, MODEL, 600, NOON)
    call = ModelCall(MODEL, 50, 10)
    await storage.write(lambda connection: owner.settle(connection, second, other, call, NOON))
    await owner.reserve(storage, first, payer, MODEL, 600, NOON)
    assert await used_tokens(storage) == 60


async def test_what_a_killed_process_had_reserved_is_free_when_its_turn_goes_on_or_ends(storage: Storage) -> None:
    owner = budgets(service="1000 tokens/day")
    cut_off, payer = await begin(storage)
    await owner.reserve(storage, cut_off, payer, MODEL, 800, NOON)
    await owner.reserve(storage, cut_off, payer, MODEL, 800, NOON)  # the same turn, resumed
    waiting, _ = await begin(storage)
    with pytest.raises(BudgetExceeded):
        await owner.reserve(storage, waiting, payer, MODEL, 800, NOON)
    await storage.write(lambda connection: finish_turn(connection, cut_off, NOON, Outcome.FAILED))
    await owner.reserve(storage, waiting, payer, MODEL, 800, NOON)


async def test_what_a_process_that_never_came_back_had_reserved_is_free_in_the_end(storage: Storage) -> None:
    owner = budgets(service="1000 tokens/day")
    lost, payer = await begin(storage)
    await owner.reserve(storage, lost, payer, MODEL, 800, NOON)
    other, _ = await begin(storage)
    later = NOON + timedelta(hours=1, seconds=1)
    await owner.reserve(storage, other, payer, MODEL, 800, later)


async def test_days_and_months_are_those_of_utc_and_each_has_its_own_limit(storage: Storage) -> None:
    owner = budgets(person="1000 tokens/day, 1500 tokens/month", service="1500 tokens/month")
    await spend(storage, owner, 800, now=datetime(2026, 3, 30, 23, 59, tzinfo=UTC))
    await spend(storage, owner, 500, now=NOON)
    turn_id, payer = await begin(storage)
    with pytest.raises(BudgetExceeded) as refused:
        await owner.reserve(storage, turn_id, payer, MODEL, 300, NOON)
    assert refused.value.ends_at == datetime(2026, 4, 1, tzinfo=UTC)
    with pytest.raises(BudgetExceeded, match="a month"):
        await owner.reserve(storage, turn_id, payer, MODEL, 101, datetime(2026, 3, 31, 23, 59, tzinfo=UTC))
    await owner.reserve(storage, turn_id, payer, MODEL, 800, datetime(2026, 4, 1, tzinfo=UTC))


async def test_the_threads_of_a_chat_share_its_budget_and_other_people_have_their_own(storage: Storage) -> None:
    owner = budgets(chat="1000 tokens/day", person="1500 tokens/day")
    await spend(storage, owner, 800, chat="-100")
    keys = {"transport": "telegram", "chat_id": "-100", "thread_id": "5"}
    topic = await AgentContext.get_or_create(storage, keys)
    payer = Payer.of(topic.id, keys, Author("telegram", "7"))
    turn_id, _ = await begin(storage)
    with pytest.raises(BudgetExceeded) as refused:
        await owner.reserve(storage, turn_id, payer, MODEL, 200, NOON)
    assert refused.value.scope == "chat"
    await spend(storage, owner, 600, chat="2")
    with pytest.raises(BudgetExceeded) as refused:
        await spend(storage, owner, 200, chat="3")
    assert refused.value.scope == "person"
    await spend(storage, owner, 200, chat="3", author=Author("telegram", "7"))


async def test_money_is_limited_by_the_prices_of_the_models(storage: Storage) -> None:
    owner = budgets(person="0.001 money/day", prices=f"{MODEL}=1/5/0.1")  # a reservation of 100 out: 0.0005
    await spend(storage, owner, 400)  # 0.0004
    with pytest.raises(BudgetExceeded, match=r"0\.001 money a day"):
        await spend(storage, owner, 101)
    turn_id, payer = await begin(storage)
    await owner.reserve(storage, turn_id, payer, MODEL, 100, NOON)
    cached = owner.price(MODEL, TokenUsage(1000, 10, 900))
    assert cached.cost == 100_000 + 90_000 + 50_000
    with pytest.raises(SettingsError, match="PRICES must say what another-model costs"):
        await owner.reserve(storage, turn_id, payer, "another-model", 1, NOON)


def test_a_limit_below_the_length_of_an_answer_is_a_wrong_setting() -> None:
    with pytest.raises(SettingsError, match="MAX_ANSWER_TOKENS"):
        budgets(person="100 tokens/day")


@pytest.mark.slow
async def test_two_hundred_calls_at_once_never_take_more_than_there_is(storage_url: str) -> None:
    # Two replicas where the database allows it; each call takes less than it reserved, so that room comes back.
    kinds = 2 if storage_url.startswith("postgres") else 1
    owners = [budgets(service="20000 tokens/day", person="15000 tokens/day") for _ in range(kinds)]
    async with Storage.open(storage_url, limits=PATIENT) as one, Storage.open(storage_url, limits=PATIENT) as two:
        stores = [one, two][:kinds]
        begun = [await begin(stores[0], str(number % 20)) for number in range(200)]

        async def call(number: int) -> int:
            owner, storage = owners[number % kinds], stores[number % kinds]
            turn_id, payer = begun[number]
            try:
                await owner.reserve(storage, turn_id, payer, MODEL, 100 + number % 7, NOON)
            except BudgetExceeded:
                return 0
            used = ModelCall(MODEL, 100 + number % 7, number % 100)
            await asyncio.sleep(0)
            await storage.write(lambda connection: owner.settle(connection, turn_id, payer, used, NOON))
            return used.input_tokens + used.output_tokens

        taken = sum(await asyncio.gather(*map(call, range(200))))
        assert taken == await used_tokens(one)
        assert 7_000 < taken <= 15_000, "as many as fitted at once were let through, and no token too many"


async def test_messages_are_counted_by_the_minute(storage: Storage) -> None:
    owner = budgets(person="3 messages/minute", service="5 messages/minute")
    _, alice = await begin(storage)
    _, bob = await begin(storage, "2", Author("telegram", "7"))
    assert [await owner.count_message(storage, alice, NOON) for _ in range(3)] == [None] * 3
    refused = await owner.count_message(storage, alice, NOON)
    assert refused is not None
    assert (refused.scope, refused.ends_at) == (Scope.PERSON, NOON + timedelta(minutes=1))
    assert [await owner.count_message(storage, bob, NOON) for _ in range(2)] == [None] * 2
    beyond = await owner.count_message(storage, bob, NOON)
    assert beyond is not None
    assert beyond.scope is Scope.SERVICE
    assert await owner.count_message(storage, alice, NOON + timedelta(minutes=1)) is None


async def test_messages_at_once_are_counted_exactly(storage: Storage) -> None:
    owner = budgets(person="30 messages/minute")
    _, alice = await begin(storage)
    found = await asyncio.gather(*(owner.count_message(storage, alice, NOON) for _ in range(100)))
    assert sum(each is None for each in found) == 30


async def test_usage_is_listed_by_person_chat_model_and_day(storage: Storage) -> None:
    owner = budgets(prices=f"{MODEL}=2/4")
    await spend(storage, owner, 10)
    await spend(storage, owner, 20, chat="2", author=Author("slack", "T1:U1"), now=NOON + timedelta(days=1))
    lists = {
        by: await storage.read(lambda connection, by=by: list_usage(connection, by, NOON))  # type: ignore[misc]
        for by in UsageBy
    }
    subjects = {by.value: [line.subject for line in lines] for by, lines in lists.items()}
    assert subjects == {
        "person": ["slack:T1:U1", "telegram:42"],
        "chat": ["telegram:2", "telegram:1"],
        "model": [MODEL],
        "day": ["2026-03-31", "2026-04-01"],
    }
    (line,) = lists[UsageBy.MODEL]
    assert (line.calls, line.input_tokens, line.as_dict()["cost"]) == (2, 30, 0.00006)


async def test_accounts_that_were_linked_spend_from_one_budget(storage: Storage) -> None:
    owner = budgets(person="1000 tokens/day")
    slack = Author("slack", "U1")
    await spend(storage, owner, 600)
    await spend(storage, owner, 600, chat="2", author=slack)

    def link(connection: Connection) -> None:
        first, second = (ensure_identity(connection, account, NOON) for account in (ALICE, slack))
        assert first is not None
        assert second is not None
        join_identities(connection, first, second)

    await storage.write(link)
    with pytest.raises(BudgetExceeded):
        await spend(storage, owner, 1, chat="3")


async def test_what_the_service_used_is_asked_as_quickly_with_many_chats_as_with_few(sqlite_storage: Storage) -> None:
    owner, efforts, costs = budgets(service="1000000 tokens/day"), Efforts(sqlite_storage), []
    turn_id, payer = await begin(sqlite_storage)

    def use(connection: Connection, chats: range) -> None:
        for chat in chats:
            record_call(connection, Payer(chat, f"telegram:{chat}", f"telegram:{chat}"), ModelCall(MODEL, 10), NOON)

    for chats in (range(20), range(20, 500)):
        await sqlite_storage.write(lambda connection, chats=chats: use(connection, chats))  # type: ignore[misc]  # bound at once
        efforts.most()
        await owner.reserve(sqlite_storage, turn_id, payer, MODEL, 100, NOON)
        [standing] = await owner.standings(sqlite_storage, payer, NOON)
        assert standing.used == await used_tokens(sqlite_storage) >= 10 * len(chats)
        costs.append(max(efforts.most()))
    assert costs[1] < 1.5 * costs[0] + 1000
