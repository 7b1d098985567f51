"""What models cost: known of OpenAI's own, told by the owner for all others, and what was cached or written counts."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from botservice import TokenUsage
from botservice.config.known_prices import KNOWN_ON, KNOWN_PRICES
from botservice.config.settings import Settings
from botservice.core.errors import SettingsError
from botservice.core.policies import NANO, Price, parse_prices, price_of
from botservice.people.budgets import Budgets
from botservice.people.usage import Payer, UsageBy
from botservice.people.usage_queries import list_usage, record_call
from botservice.storage.database import Storage

MILLION = 1_000_000
MODEL = re.compile(r"gpt-([0-9.]+)")
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def settings(**values: Any) -> Settings:
    return Settings(**{"_env_file": None, "openai_api_key": "sk-test", "openai_base_url": None, **values})


def cost(budgets: Budgets, model: str, usage: TokenUsage) -> float:
    return budgets.price(model, usage).cost / NANO


def test_what_was_read_before_and_what_is_kept_have_prices_of_their_own() -> None:
    price = parse_prices("m=1/5/0.05/1.25")["m"]
    assert price == Price(NANO, 5 * NANO, NANO // 20, 5 * NANO // 4)
    assert price.of(MILLION, 0) == NANO
    assert price.of(MILLION, 0, MILLION) == NANO // 20
    assert price.of(MILLION, 0, 0, MILLION) == 5 * NANO // 4
    assert price.of(MILLION, MILLION, 600_000, 300_000) == round((0.1 * 1 + 0.6 * 0.05 + 0.3 * 1.25 + 5) * NANO)
    assert price.of(100, 0, 1000, 1000) == price.of(100, 0, 100), "never more than there is"


def test_without_a_price_of_writing_it_costs_like_any_other_input() -> None:
    for text in ("m=1/5", "m=1/5/0.5"):
        assert parse_prices(text)["m"].of(100, 0, 0, 100) == parse_prices(text)["m"].of(100, 0)


def test_a_long_prompt_costs_twice_as_much_and_its_answer_half_as_much_again() -> None:
    price = KNOWN_PRICES["gpt-6.1-terra"]
    assert price.of(272_000, 1000) == round((0.272 + 0.005) * NANO)
    assert price.of(272_001, 1000, 272_001) == -(-(2 * 272_001 * 50_000_000 + 1000 * 7_500_000_000) // MILLION)


@pytest.mark.parametrize("page", ["access", "reference"])
def test_the_documents_name_the_models_whose_prices_are_known(page: str) -> None:
    versions = sorted([*map(int, found[1].split("."))] for found in map(MODEL.match, KNOWN_PRICES) if found)
    first, last = (".".join(map(str, version)) for version in (versions[0], versions[-1]))
    text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text()
    assert re.findall(r"gpt-[0-9.]+ to gpt-[0-9.]+[0-9]", text) == [f"gpt-{first} to gpt-{last}"]


def test_openais_models_have_prices_from_the_start() -> None:
    budgets = Budgets.of(settings(budget_service="1 money/day"))
    for model in ("gpt-5.5", "gpt-5.6-luna", "gpt-6-astra", "gpt-6-sol", "gpt-6.1-terra"):
        budgets.check_model(model)
    assert cost(budgets, "gpt-6.1-terra", TokenUsage(MILLION // 10, 0)) == 0.1
    assert datetime.fromisoformat(KNOWN_ON).year == 2026


@pytest.mark.parametrize("name", ["gpt-6.1-terra-2026-10-26", "gpt-6.1-terra-20261026", "gpt-6.1-terra-latest"])
def test_a_dated_name_costs_what_its_family_does(name: str) -> None:
    assert price_of(KNOWN_PRICES, name) == KNOWN_PRICES["gpt-6.1-terra"]
    owners = parse_prices("gpt-6.1-terra=7/8")
    assert price_of(owners, name) == owners["gpt-6.1-terra"]


@pytest.mark.parametrize("name", ["gpt-6.1-terra-mini", "gpt-6.1", "gpt-7", "terra", ""])
def test_a_model_that_is_not_known_has_no_price(name: str) -> None:
    budgets = Budgets.of(settings(budget_service="1 money/day"))
    assert not budgets.has_price(name)
    assert cost(budgets, name, TokenUsage(100, 100)) == 0
    with pytest.raises(SettingsError, match="PRICES must say"):
        budgets.check_model(name)


@pytest.mark.parametrize(
    "other", [{"openai_base_url": "http://localhost:11434/v1"}, {"currency": "EUR"}, {"prices": "*=3/4"}]
)
def test_another_server_currency_or_word_of_the_owner_leaves_known_prices_out(other: dict[str, Any]) -> None:
    budgets = Budgets.of(settings(**other))
    expected = 3e-6 if "prices" in other else 0
    assert cost(budgets, "gpt-6.1-terra", TokenUsage(1, 0)) == expected


def test_the_owner_may_say_otherwise_for_one_model() -> None:
    budgets = Budgets.of(settings(prices="gpt-6.1-terra=2/2"))
    assert cost(budgets, "gpt-6.1-terra", TokenUsage(MILLION, 0)) == 2
    assert cost(budgets, "gpt-6-luna", TokenUsage(MILLION // 10, 0)) == pytest.approx(0.01)


async def test_what_was_cached_and_written_is_in_what_was_used(storage: Storage) -> None:
    budgets = Budgets(prices=parse_prices("m=1/5/0.05/1.25"))
    payer = Payer(1, "telegram:1", "telegram:1")
    for usage in (TokenUsage(1000, 10, 0, None, 900), TokenUsage(1100, 10, 900, None, 150)):
        call = budgets.price("m", usage)
        await storage.write(lambda connection, call=call: record_call(connection, payer, call, NOW))
    (line,) = await storage.read(lambda connection: list_usage(connection, UsageBy.MODEL, NOW))
    assert (line.input_tokens, line.cached_tokens, line.cache_write_tokens) == (2100, 900, 1050)
    assert line.as_dict()["cache_write_tokens"] == 1050
    assert line.cost == 100_000 + 1_125_000 + 50_000 + 45_000 + 50_000 + 187_500 + 50_000
