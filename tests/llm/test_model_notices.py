"""A model that ends, or is not there, is noticed; what a server does not say worries nobody."""

from collections.abc import AsyncIterator
from datetime import date, timedelta

import pytest
from standins.openai_api import Failure, OpenAIApi, not_json
from standins.openai_catalogue import may_not_list, wrong_key

from botservice.config.settings import OPENAI_API_URL, ModelSettings
from botservice.llm.model_notices import NOTICE_DAYS, UsedModel, _shutdown, _tools_notice, examine_models
from botservice.llm.openai.catalogue import TABLE_DATE, Lifetime, Shutdown, known_shutdown, read_date
from botservice.llm.openai.http_client import OpenAIClients

TODAY = date(2026, 11, 22)


@pytest.fixture
async def clients(api: OpenAIApi) -> AsyncIterator[OpenAIClients]:
    made = OpenAIClients(ModelSettings.load(), base_url=api.base_url, api_key=None)
    yield made
    await made.close()


async def texts(clients: OpenAIClients, *names: str) -> list[str]:
    models = [UsedModel(name, "OPENAI_MODEL", clients) for name in names]
    return [notice.text for notice in await examine_models(models, TODAY)]


@pytest.mark.parametrize(
    ("days", "says"),
    [
        (-1, "the model m has ended on 2026-11-21: set OPENAI_MODEL to another one"),
        (0, "the model m has ended on 2026-11-22: set OPENAI_MODEL to another one"),
        (1, "the model m ends on 2026-11-23, in 1 day: set OPENAI_MODEL to another one"),
        (NOTICE_DAYS, "the model m ends on 2027-01-21, in 60 days: set OPENAI_MODEL to another one"),
        (NOTICE_DAYS + 1, None),
    ],
)
async def test_an_end_is_noticed_sixty_days_before(
    api: OpenAIApi, clients: OpenAIClients, days: int, says: str | None
) -> None:
    api.shutdowns = {"m": str(TODAY + timedelta(days=days))}
    assert await texts(clients, "m") == ([says] if says else [])


async def test_what_is_recommended_instead_is_said_where_it_is_known(api: OpenAIApi, clients: OpenAIClients) -> None:
    api.shutdowns = {"gpt-5-mini-2025-08-07": "2026-12-11"}
    (text,) = await texts(clients, "gpt-5-mini-2025-08-07")
    assert text.endswith("set OPENAI_MODEL to gpt-6.1-terra")


async def test_a_model_that_is_not_listed_and_there_all_the_same_is_known(
    api: OpenAIApi, clients: OpenAIClients
) -> None:
    assert await texts(clients, "ft:gpt-6-luna:me") == []


async def test_a_model_that_is_not_there_is_noticed_once_with_near_names(
    api: OpenAIApi, clients: OpenAIClients
) -> None:
    api.models = ("gpt-6.1-terra", "gpt-6.1-sol", "text-embedding-3-small")
    (near, far) = await texts(clients, "gpt-6.1-terra", "gpt-6.1-sool", "zzz")
    assert near.endswith("set OPENAI_MODEL to gpt-6.1-sol or gpt-6.1-terra")
    assert far.endswith("set OPENAI_MODEL to one that is there")


@pytest.mark.parametrize(
    "failure", [Failure(404, "404 page not found"), Failure(500, "oops"), Failure(405, "no"), not_json(200)]
)
async def test_a_server_without_a_list_is_passed_over_in_silence(
    api: OpenAIApi, clients: OpenAIClients, failure: Failure
) -> None:
    api.no_list = failure
    assert await texts(clients, "gpt-4o", "whisper-1") == []


async def test_a_server_that_is_not_there_is_passed_over_in_silence() -> None:
    clients = OpenAIClients(ModelSettings.load(), base_url="http://127.0.0.1:1/v1", api_key=None)
    assert await texts(clients, "m") == []
    await clients.close()


@pytest.mark.parametrize(("failure", "says"), [(wrong_key(), "(401)"), (may_not_list(), "(403)")])
async def test_a_key_without_rights_is_noticed_once(
    api: OpenAIApi, clients: OpenAIClients, failure: Failure, says: str
) -> None:
    api.no_list = failure
    (text,) = await texts(clients, "a", "b")
    assert says in text
    assert "OPENAI_API_KEY" in text


def test_the_table_counts_for_openai_alone_and_knows_snapshots() -> None:
    assert known_shutdown("gpt-4o-2024-11-20") == known_shutdown("gpt-4o") is not None
    assert known_shutdown("gpt-6.1-terra") is None
    assert known_shutdown("gpt-4o-audio") is None
    assert TABLE_DATE <= TODAY


@pytest.mark.parametrize(
    ("url", "lifetime", "shutdown"),
    [
        (OPENAI_API_URL, Lifetime(), known_shutdown("gpt-4o")),
        (OPENAI_API_URL, Lifetime(None, is_told=True), None),
        (OPENAI_API_URL, Lifetime(date(2028, 1, 1), is_told=True), Shutdown(date(2028, 1, 1), "gpt-6-luna")),
        ("http://127.0.0.1:1/v1", Lifetime(), None),
    ],
)
def test_what_the_server_says_counts_before_the_table(url: str, lifetime: Lifetime, shutdown: Shutdown | None) -> None:
    clients = OpenAIClients(ModelSettings.load(), base_url=url, api_key="sk-test-key")
    assert _shutdown(UsedModel("gpt-4o", "OPENAI_MODEL", clients), lifetime) == shutdown


def test_a_gateway_to_openai_says_nothing_of_ends_and_the_table_counts() -> None:
    clients = OpenAIClients(ModelSettings.load(), base_url="http://127.0.0.1:1/v1", api_key="sk-test-key")
    for name in ("gpt-4o", "openai/gpt-4o"):
        model = UsedModel(name, "OPENAI_MODEL", clients, is_gateway=True)
        assert _shutdown(model, Lifetime()) == known_shutdown("gpt-4o") is not None


@pytest.mark.parametrize("value", [None, "", "soon", 20270114, "2027-13-01", [], {}])
def test_a_date_that_is_none_is_none(value: object) -> None:
    assert read_date(value) is None


@pytest.mark.parametrize(
    ("name", "wants"),
    [("gpt-5.5", False), ("gpt-5.6-sol", True), ("gpt-6-luna", True), ("gpt-6.1-terra", True), ("llama", False)],
)
async def test_a_model_that_takes_no_tools_by_chat_completions_is_noticed(name: str, wants: bool) -> None:
    clients = OpenAIClients(ModelSettings.load(), base_url=OPENAI_API_URL, api_key="sk-test-key")
    notices = _tools_notice(UsedModel(name, "OPENAI_MODEL", clients, takes_tools_by_chat=True))
    assert [notice.text for notice in notices] == (
        [f"the model {name} takes no tools by chat.completions: set OPENAI_API=auto"] if wants else []
    )
    assert _tools_notice(UsedModel(name, "OPENAI_MODEL", clients)) == []
